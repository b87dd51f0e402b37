//! The blocks of the mapping table's journal on flash.
//!
//! Page `n` goes to die `n` modulo the dies, and each die writes its pages in order, block after block.
//! So pages become garbage in the order in which they were written, and nothing is ever moved: a block is
//! erased when its last page is garbage. A page whose program fails is programmed again in another block,
//! before any later one; a power cut that tears a page costs that page.
//!
//! The journal's blocks are kept back like those of mapping pages, and mapping pages are written back
//! without changing an entry. So whatever waits for the journal to be shorter, its being shortened waits
//! for nothing. If a die still has no block left, because too many have gone bad at once, the whole
//! journal is made garbage.

use std::collections::VecDeque;

use leyden_nand::{BlockId, Content, DieId, Geometry, Health, Medium, Ppn};
use serde::{Deserialize, Serialize};

use crate::map::MapLog;
use crate::page_mapped::data::{BlockState, Blocks};

/// A block of journal pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct JournalBlock {
    block: BlockId,
    /// One past the number of the last page that was handed to it.
    end: u64,
    /// A program in it failed: it is retired instead of erased.
    failed: bool,
}

/// One die's blocks of journal pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct JournalDie {
    /// The block that is being filled: the last one of `blocks`.
    open: Option<BlockId>,
    /// In the order they were filled.
    blocks: VecDeque<JournalBlock>,
}

impl JournalDie {
    /// Where the block is that holds garbage only, if pages before `first` are.
    fn garbage(&self, first: u64) -> Option<usize> {
        self.blocks
            .iter()
            .position(|&JournalBlock { block, end, .. }| end <= first && self.open != Some(block))
    }
}

/// The journal's blocks. Empty if the table's changes are not logged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JournalBlocks {
    dies: Vec<JournalDie>,
}

impl JournalBlocks {
    /// The blocks that `medium` holds pages of the journal in.
    pub(super) fn new<C: Content>(medium: &Medium<C>, blocks: &Blocks, are_used: bool) -> Self {
        let geometry = medium.geometry();
        let mut dies =
            vec![JournalDie::default(); if are_used { geometry.dies() as usize } else { 0 }];
        let all = (0..geometry.blocks()).map(BlockId);
        for block in all.filter(|&block| blocks.state(block) == BlockState::Journal) {
            let die = &mut dies[geometry.die_of(block).index()];
            let failed = medium.health(block) == Health::Failing;
            let is_open =
                !failed && !medium.is_poisoned(block) && medium.next_page(block).is_some();
            if is_open {
                die.open = Some(block);
            }
            let numbers = medium.meta_pages(block).map(|(_, page)| page.number);
            let end = numbers.max().map_or(0, |last| last + 1);
            die.blocks.push_back(JournalBlock { block, end, failed });
        }
        for JournalDie { open, blocks } in &mut dies {
            let open = *open;
            blocks.make_contiguous().sort_by_key(|b| (open == Some(b.block), b.end));
        }
        Self { dies }
    }

    #[inline]
    pub(super) fn are_unused(&self) -> bool {
        self.dies.is_empty()
    }

    /// One past the last page that any die was handed.
    pub(super) fn end(&self) -> u64 {
        let blocks = self.dies.iter().flat_map(|die| &die.blocks);
        blocks.map(|block| block.end).max().unwrap_or(0)
    }

    /// Dies that can program a page of `log`, or erase a block that is garbage.
    pub(super) fn busy_dies(&self, log: &MapLog) -> impl Iterator<Item = DieId> {
        let dies = (0..self.dies.len() as u32).map(DieId);
        dies.filter(|&die| {
            log.next_waiting(die).is_some()
                || self.dies[die.index()].garbage(log.first_page()).is_some()
        })
    }

    /// A block of `die` that holds garbage only, if pages before `first` are; and whether a program in it
    /// failed.
    pub(super) fn take_garbage(&mut self, die: DieId, first: u64) -> Option<(BlockId, bool)> {
        let die = &mut self.dies[die.index()];
        let garbage = die.blocks.remove(die.garbage(first)?)?;
        Some((garbage.block, garbage.failed))
    }

    /// Where `die`'s next page, which has this number, goes.
    pub(super) fn place<C: Content>(
        &mut self,
        die: DieId,
        number: u64,
        medium: &Medium<C>,
        blocks: &mut Blocks,
    ) -> Option<Ppn> {
        let state = &mut self.dies[die.index()];
        let mut page = state.open.and_then(|open| medium.next_page(open));
        if page.is_none() {
            state.open = None;
            let block = blocks.take_kept(die, BlockState::Journal)?;
            state.open = Some(block);
            state.blocks.push_back(JournalBlock { block, end: 0, failed: false });
            page = medium.next_page(block);
        }
        state.blocks.back_mut().expect("a block is open").end = number + 1;
        page
    }

    /// The number of the page that `die` programs: it has one at a time.
    pub(super) fn number_on(&self, die: DieId) -> u64 {
        self.dies[die.index()].blocks.back().map_or(0, |block| block.end - 1)
    }

    /// The program of `die`'s page failed.
    pub(super) fn failed(&mut self, die: DieId) {
        let state = &mut self.dies[die.index()];
        state.blocks.back_mut().expect("a block is open").failed = true;
        state.open = None;
    }

    /// The pages of `log` lie where blocks are for them, and every such block is known.
    pub(super) fn check(
        &self,
        log: &MapLog,
        geometry: &Geometry,
        blocks: &Blocks,
    ) -> Result<(), String> {
        let is_journal = |block| blocks.state(block) == BlockState::Journal;
        for (number, place) in log.places() {
            let block = geometry.block_of_page(place);
            let die = &self.dies[log.die_of(number).index()];
            let holds = die.blocks.iter().any(|other| other.block == block && number < other.end);
            if !holds || !is_journal(block) {
                let state = blocks.state(block);
                return Err(format!("page {number} of the journal lies in {block:?}, {state:?}"));
            }
        }
        for (index, die) in self.dies.iter().enumerate() {
            let is_good = |&JournalBlock { block, .. }: &JournalBlock| {
                geometry.die_of(block).index() == index && is_journal(block)
            };
            let last = die.blocks.back().map(|block| block.block);
            if !die.blocks.iter().all(is_good) || (die.open.is_some() && die.open != last) {
                return Err(format!("die {index} has no such journal blocks: {die:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.dies.len() == other.dies.len()
    }
}

//! The mapping table's journal on flash: which changes are logged, and the blocks of its pages.
//!
//! Page `n` goes to die `n` modulo the dies, and each die writes its pages in order, block after block.
//! So pages become garbage in the order in which they were written, and nothing is ever moved: a block is
//! erased when its last page is garbage. A page whose program fails is programmed again in another block,
//! before any later one; a power cut that tears a page costs that page.
//!
//! The journal's blocks are kept back like those of mapping pages, and mapping pages are written back
//! without changing an entry. So whatever waits for the journal to be shorter, its being shortened waits
//! for nothing. If a die has no block left all the same, because too many have gone bad at once, the whole
//! journal is made garbage.

use std::collections::VecDeque;

use leyden_nand::{BlockId, Content, DieId, Kind, Lpn, Operation, Outcome, Ppa, Ppn};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use super::blocks::BlockState;
use super::check::Violation;
use super::ftl::{Ftl, ProgramCause};
use super::inflight::{NO_VERSION, NOTHING};

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
pub(crate) struct JournalDie {
    /// The block that is being filled: the last one of `blocks`.
    open: Option<BlockId>,
    /// In the order they were filled.
    blocks: VecDeque<JournalBlock>,
}

impl JournalDie {
    /// Has `block` erased, whose erase was broken off.
    pub(crate) fn erase_again(&mut self, block: BlockId) {
        self.blocks.push_front(JournalBlock { block, end: 0, failed: false });
    }
    /// One past the last page that this die was handed.
    pub(crate) fn end(&self) -> u64 {
        self.blocks.iter().map(|block| block.end).max().unwrap_or(0)
    }
    /// Where the block is that holds garbage only, if pages before `first` are.
    fn garbage(&self, first: u64) -> Option<usize> {
        self.blocks
            .iter()
            .position(|&JournalBlock { block, end, .. }| end <= first && self.open != Some(block))
    }
}

impl<C: Content> Ftl<C> {
    /// Logs that the entry of `lpn` has changed, if changes are logged.
    #[inline]
    pub(crate) fn log_change(&mut self, lpn: Lpn, unit: Option<Ppa>) {
        if !self.journal_dies.is_empty()
            && let Some(number) = self.store.record(self.map.page_of(lpn), lpn, unit)
        {
            self.journal_page_full(number);
        }
    }

    fn journal_page_full(&mut self, number: u64) {
        let log = self.store.log().expect("it has a page");
        self.wake.push(log.die_of(number));
        self.shorten_journal(false);
    }

    /// Writes back what keeps the journal too long, or, with `all`, what keeps any of it.
    pub(crate) fn shorten_journal(&mut self, all: bool) {
        for page in self.store.make_log_shorter(all) {
            self.queue_writeback(page);
        }
    }

    /// The records that the units of an ended program would add.
    pub(crate) fn records_of(&self, outcome: &Outcome) -> u32 {
        let units = 0..self.geometry.units_per_page();
        let tag = outcome.operation.tag;
        units.filter(|&unit| self.inflight.source(tag, unit) != NOTHING).count() as u32
    }

    /// How many records there have been.
    pub(crate) fn records_so_far(&self) -> u64 {
        self.store.log().map_or(0, crate::map::MapLog::next)
    }

    /// The journal may have become shorter, or a page of it has reached flash: lets the dies look that
    /// may have waited for that, and the programs at the gate.
    pub(crate) fn look_at_journal(&mut self, now: Time) {
        for die in (0..self.journal_dies.len() as u32).map(DieId) {
            if self.has_journal_work(die) {
                self.wake.push(die);
            }
        }
        if !self.journal_dies.is_empty() && !self.gate.is_empty() {
            self.gate.open_at = Some(now);
        }
    }

    pub(crate) fn has_journal_work(&self, die: DieId) -> bool {
        self.store.log().is_some_and(|log| {
            log.next_waiting(die).is_some()
                || self.journal_dies[die.index()].garbage(log.first_page()).is_some()
        })
    }

    /// Erases a block of `die` that holds only garbage of the journal, or programs its next page of it.
    /// True if it started.
    #[inline]
    pub(crate) fn journal_step(&mut self, now: Time, die: DieId) -> bool {
        !self.journal_dies.is_empty()
            && (self.free_journal_block(now, die) || self.write_journal_page(now, die))
    }

    fn free_journal_block(&mut self, now: Time, die: DieId) -> bool {
        let Some(first) = self.store.log().map(crate::map::MapLog::first_page) else {
            return false;
        };
        while let Some(at) = self.journal_dies[die.index()].garbage(first) {
            let garbage = self.journal_dies[die.index()].blocks.remove(at).expect("it is there");
            if garbage.failed {
                self.blocks.retire(garbage.block);
            } else {
                let kind = Kind::Erase(garbage.block);
                self.flash.submit(now, Operation { kind, bytes: 0, tag: 0 });
                return true;
            }
        }
        false
    }

    fn write_journal_page(&mut self, now: Time, die: DieId) -> bool {
        let Some(number) = self.store.log().and_then(|log| log.next_waiting(die)) else {
            return false;
        };
        let Some(place) = self.journal_place(die) else {
            self.shorten_journal(true);
            return false;
        };
        let state = &mut self.journal_dies[die.index()];
        state.blocks.back_mut().expect("a block is open").end = number + 1;
        self.store.log_mut().expect("it has a page").hand_over(number);
        self.store.count_journal_page();
        let tag = self.inflight.insert(ProgramCause::Journal, NO_VERSION);
        let sources = self.inflight.sources_mut(tag);
        sources[0] = number as u32;
        // Its records are kept beside the cells (`MapLog`): its out-of-band area is nobody's.
        self.make_unreadable(place, false);
        let bytes = self.geometry.page_bytes();
        self.flash.submit(now, Operation { kind: Kind::Program(place), bytes, tag });
        if !self.gate.is_empty() {
            self.gate.open_at = Some(now); // there is room in DRAM
        }
        true
    }

    /// Where `die`'s next page of the journal goes.
    fn journal_place(&mut self, die: DieId) -> Option<Ppn> {
        let state = &mut self.journal_dies[die.index()];
        if let Some(open) = state.open {
            if let Some(page) = self.blocks.next_page(open) {
                return Some(page);
            }
            state.open = None;
        }
        let block = self.blocks.take_kept(die, BlockState::Journal)?;
        state.open = Some(block);
        state.blocks.push_back(JournalBlock { block, end: 0, failed: false });
        self.blocks.next_page(block)
    }

    /// The number of the journal's page that program `tag` writes: a die has one at a time.
    fn journal_page_of(&self, tag: u32, die: DieId) -> u64 {
        let number = self.journal_dies[die.index()].blocks.back().map_or(0, |block| block.end - 1);
        debug_assert_eq!(number as u32, self.inflight.source(tag, 0), "two pages of a journal");
        number
    }

    /// A page of the journal has been programmed, or not.
    pub(crate) fn end_journal_write(&mut self, place: Ppn, tag: u32, failed: bool) {
        let die = self.geometry.die_of_page(place);
        let number = self.journal_page_of(tag, die);
        self.inflight.remove(tag);
        let log = self.store.log_mut().expect("a page of it was programmed");
        if failed {
            log.program_failed(number);
            let state = &mut self.journal_dies[die.index()];
            state.blocks.back_mut().expect("a block is open").failed = true;
            state.open = None;
        } else {
            log.programmed(number, place);
        }
    }

    /// What became of a program of the journal that a power cut has found on its way.
    pub(crate) fn settle_journal_program(&mut self, place: Ppn, tag: u32, ended: bool) {
        let number = self.journal_page_of(tag, self.geometry.die_of_page(place));
        let log = self.store.log_mut().expect("a page of it was on its way");
        if ended {
            log.programmed(number, place);
        } else {
            log.program_failed(number);
        }
    }

    /// The number of the journal's page that a die programs.
    pub(crate) fn journal_page_on(&self, operation: &Operation, die: DieId) -> Option<u64> {
        let is_program = matches!(operation.kind, Kind::Program(_));
        let is_journal = is_program && self.inflight.cause(operation.tag) == ProgramCause::Journal;
        is_journal.then(|| self.journal_page_of(operation.tag, die))
    }

    /// The log is right, its pages lie where blocks are for them, and every such block is known.
    pub(crate) fn check_journal(&self) -> Result<(), Violation> {
        let Some(log) = self.store.log() else { return Ok(()) };
        log.check(|page| self.store.is_dirty(page)).map_err(Violation)?;
        for (number, place) in log.places() {
            let block = self.geometry.block_of_page(place);
            let die = &self.journal_dies[log.die_of(number).index()];
            let holds = die.blocks.iter().any(|other| other.block == block && number < other.end);
            if !holds || self.blocks.state(block) != BlockState::Journal {
                let state = self.blocks.state(block);
                let problem = format!("page {number} of the journal lies in {block:?}, {state:?}");
                return Err(Violation(problem));
            }
        }
        for (index, die) in self.journal_dies.iter().enumerate() {
            let of_die = |block: BlockId| self.geometry.die_of(block).index() == index;
            let is_good = |block: &JournalBlock| {
                of_die(block.block) && self.blocks.state(block.block) == BlockState::Journal
            };
            let last = die.blocks.back().map(|block| block.block);
            if !die.blocks.iter().all(is_good) || (die.open.is_some() && die.open != last) {
                return Err(Violation(format!("die {index} has no such journal blocks: {die:?}")));
            }
        }
        Ok(())
    }
}

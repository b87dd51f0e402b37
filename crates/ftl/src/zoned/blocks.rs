//! Blocks that no zone has: free, kept back for dumps, and to be erased.
//!
//! **Invariants**: a block of good health is in a zone's set, holds a dump, or is in exactly one of the
//! queues here. Blocks that are erased refill what is kept back for dumps first.

use std::collections::VecDeque;

use leyden_nand::{BlockId, BlockUse, Content, DieId, Geometry, Health, Medium, PageKind};
use serde::{Deserialize, Serialize};

use super::place::{DieView, PlacePolicy};
use crate::dump_area::DumpBlocks;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct DieBlocks {
    /// Erased; the one that was erased first is used first.
    free: VecDeque<BlockId>,
    kept: Vec<BlockId>,
    to_erase: VecDeque<BlockId>,
    /// Sets on this die that are being filled.
    open_sets: u32,
}

/// See the module's documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blocks {
    dies: Vec<DieBlocks>,
    /// Blocks of each die to keep back for dumps.
    keep: u32,
    /// The die that a set got last.
    last: DieId,
}

impl DumpBlocks for Blocks {
    fn take_for_dump(&mut self, die: DieId) -> Option<BlockId> {
        self.dies[die.index()].kept.pop()
    }
}

impl Blocks {
    /// The blocks of `medium`, before it is known which are in zones: those that hold data are
    /// handed to `with_data`.
    pub(super) fn new<C: Content>(
        medium: &Medium<C>,
        keep: u32,
        mut with_data: impl FnMut(BlockId),
    ) -> Self {
        let geometry = medium.geometry();
        let dies = vec![DieBlocks::default(); geometry.dies() as usize];
        let mut blocks = Self { dies, keep, last: DieId(geometry.dies() - 1) };
        for block in (0..geometry.blocks()).map(BlockId) {
            if medium.health(block) == Health::Bad {
                continue;
            }
            let die = geometry.die_of(block);
            match medium.used_for(block) {
                _ if medium.is_poisoned(block) => blocks.erase_later(die, block),
                Some(BlockUse { kind: PageKind::Data, .. }) => with_data(block),
                Some(_) => {} // of a dump: the dump area knows it
                None => blocks.erased(die, block),
            }
        }
        blocks
    }

    /// A block is erased, and can be used.
    pub(super) fn erased(&mut self, die: DieId, block: BlockId) {
        let keep = self.keep as usize;
        let blocks = &mut self.dies[die.index()];
        if blocks.kept.len() < keep {
            blocks.kept.push(block);
        } else {
            blocks.free.push_back(block);
        }
    }

    /// Queues `block`, whose data is not needed, to be erased.
    pub(super) fn erase_later(&mut self, die: DieId, block: BlockId) {
        self.dies[die.index()].to_erase.push_back(block);
    }

    /// The blocks of `die` that are to be erased, in this order.
    pub(super) fn to_erase(&self, die: DieId) -> impl Iterator<Item = BlockId> + '_ {
        self.dies[die.index()].to_erase.iter().copied()
    }

    /// The next block of `die` to erase.
    pub(super) fn take_to_erase(&mut self, die: DieId) -> Option<BlockId> {
        self.dies[die.index()].to_erase.pop_front()
    }

    /// True if `die` has blocks to erase and no free one.
    #[inline]
    pub(super) fn is_short(&self, die: DieId) -> bool {
        let blocks = &self.dies[die.index()];
        blocks.free.is_empty() && !blocks.to_erase.is_empty()
    }

    /// Free blocks of `die`.
    pub fn free(&self, die: DieId) -> u32 {
        self.dies[die.index()].free.len() as u32
    }

    /// Blocks kept back for dumps on `die`.
    pub fn kept(&self, die: DieId) -> u32 {
        self.dies[die.index()].kept.len() as u32
    }

    /// A matrix of free blocks, on `lanes` dies and `levels` deep if there are so many; a smaller one if
    /// there aren't. `None` if there is no free block at all.
    pub(super) fn take_set<C: Content>(
        &mut self,
        medium: &Medium<C>,
        policy: &dyn PlacePolicy,
        lanes: u32,
        levels: u32,
    ) -> Option<(u32, Vec<BlockId>)> {
        let count = |levels: u32| {
            self.dies.iter().filter(|die| die.free.len() as u32 >= levels).count() as u32
        };
        let levels = (1..=levels).rev().find(|&levels| count(levels) >= lanes);
        let levels = levels.unwrap_or(1);
        let lanes = lanes.min(count(levels));
        let mut chosen = Vec::with_capacity(lanes as usize);
        for _ in 0..lanes {
            let views = self.views(medium, levels, &chosen);
            let die = policy.die(&views)?;
            self.last = die;
            chosen.push(die);
        }
        let mut blocks = Vec::with_capacity((lanes * levels) as usize);
        for _ in 0..levels {
            for die in &chosen {
                blocks.extend(self.dies[die.index()].free.pop_front());
            }
        }
        self.opened_set(chosen.iter().copied());
        (!blocks.is_empty()).then_some((lanes, blocks))
    }

    /// A set on these dies will be filled.
    pub(super) fn opened_set(&mut self, dies: impl Iterator<Item = DieId>) {
        dies.for_each(|die| self.dies[die.index()].open_sets += 1);
    }

    /// A set on these dies is filled, or given up.
    pub(super) fn closed_set(&mut self, dies: impl Iterator<Item = DieId>) {
        for die in dies {
            self.dies[die.index()].open_sets -= 1;
        }
    }

    fn views<C: Content>(&self, medium: &Medium<C>, levels: u32, not: &[DieId]) -> Vec<DieView> {
        let count = self.dies.len() as u32;
        let view = |(die, blocks): (DieId, &DieBlocks)| {
            let &next = blocks.free.front()?;
            let is_left = blocks.free.len() as u32 >= levels && !not.contains(&die);
            is_left.then(|| DieView {
                die,
                distance: (die.0 + count - self.last.0 - 1) % count,
                erases: medium.erases(next),
                open_sets: blocks.open_sets,
            })
        };
        (0..).map(DieId).zip(&self.dies).filter_map(view).collect()
    }

    /// Forgets the blocks that are not to be kept: a zone has them.
    pub(super) fn retain(&mut self, keep: impl Fn(BlockId) -> bool) {
        let target = self.keep as usize;
        for die in &mut self.dies {
            die.free.retain(|&block| keep(block));
            die.kept.retain(|&block| keep(block));
            die.to_erase.retain(|&block| keep(block));
            while die.kept.len() < target
                && let Some(block) = die.free.pop_front()
            {
                die.kept.push(block);
            }
        }
    }

    /// Whether these can be the blocks of a drive on flash of this shape that keeps back `keep` of each die.
    pub(super) fn fits(&self, geometry: &Geometry, keep: u32) -> bool {
        let is_right = |(die, blocks): (DieId, &DieBlocks)| {
            let all = blocks.free.iter().chain(&blocks.kept).chain(&blocks.to_erase);
            let mut all = all.copied();
            all.all(|block| block.0 < geometry.blocks() && geometry.die_of(block) == die)
        };
        self.keep == keep
            && self.dies.len() == geometry.dies() as usize
            && self.last.index() < self.dies.len()
            && (0..).map(DieId).zip(&self.dies).all(is_right)
    }

    /// Sets on each die that are being filled.
    pub(super) fn open_sets(&self) -> impl Iterator<Item = u32> + '_ {
        self.dies.iter().map(|die| die.open_sets)
    }

    /// All blocks in the queues.
    pub(super) fn all(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.dies
            .iter()
            .flat_map(|die| die.free.iter().chain(&die.kept).chain(&die.to_erase).copied())
    }
}

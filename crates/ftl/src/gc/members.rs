//! The blocks of each die that could be collected, in an array without gaps: for policies that draw
//! blocks at random.
//!
//! It changes only when a block comes or goes, and not when one loses a unit, which is far more often.
//!
//! Invariants: each block is at most once among its own die's, at the place that is noted for it.

use leyden_nand::{BlockId, DieId, Geometry};
use leyden_sim::Divisor;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Members {
    blocks_per_die: Divisor,
    /// For each die its blocks, in no particular order; as long as if all were there.
    blocks: Vec<BlockId>,
    /// By block: its place among its die's, if it is one of them.
    places: Vec<u32>,
    /// By die.
    counts: Vec<u32>,
}

impl Members {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self {
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            blocks: (0..geometry.blocks()).map(BlockId).collect(),
            places: vec![0; geometry.blocks() as usize],
            counts: vec![0; geometry.dies() as usize],
        }
    }

    #[inline]
    pub(super) fn count(&self, die: DieId) -> u32 {
        self.counts[die.index()]
    }

    #[inline]
    pub(super) fn nth(&self, die: DieId, n: u32) -> BlockId {
        let count = self.count(die);
        assert!(n < count, "block {n} of {count}");
        self.blocks[self.from(die) + n as usize]
    }

    pub(super) fn add(&mut self, block: BlockId) {
        let die = self.die_of(block);
        let (from, place) = (self.from(die), self.count(die));
        self.blocks[from + place as usize] = block;
        self.places[block.index()] = place;
        self.counts[die.index()] = place + 1;
    }

    /// The last one takes its place.
    pub(super) fn remove(&mut self, block: BlockId) {
        let die = self.die_of(block);
        let (from, place) = (self.from(die), self.places[block.index()]);
        let last = self.count(die) - 1;
        let moved = self.blocks[from + last as usize];
        self.blocks[from + place as usize] = moved;
        self.places[moved.index()] = place;
        self.counts[die.index()] = last;
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (size_of_val(self.blocks.as_slice()) + size_of_val(self.places.as_slice())) as u64
    }

    /// True if this was made for `geometry`, and holds just the blocks that `is_member` names.
    pub(super) fn fits(&self, geometry: &Geometry, is_member: impl Fn(BlockId) -> bool) -> bool {
        let blocks = geometry.blocks() as usize;
        self.blocks_per_die.get() == geometry.blocks_per_die()
            && self.blocks.len() == blocks
            && self.places.len() == blocks
            && self.counts.len() == geometry.dies() as usize
            && (0..).map(DieId).zip(&self.counts).all(|(die, &count)| {
                let first = die.0 * geometry.blocks_per_die();
                let all = (first..first + geometry.blocks_per_die()).map(BlockId);
                count <= geometry.blocks_per_die()
                    && all.clone().filter(|&block| is_member(block)).count() == count as usize
                    && all.filter(|&block| is_member(block)).all(|block| {
                        let place = self.places[block.index()];
                        place < count && self.nth(die, place) == block
                    })
            })
    }

    #[inline]
    fn die_of(&self, block: BlockId) -> DieId {
        DieId(self.blocks_per_die.divide(block.0))
    }

    #[inline]
    fn from(&self, die: DieId) -> usize {
        (die.0 * self.blocks_per_die.get()) as usize
    }
}

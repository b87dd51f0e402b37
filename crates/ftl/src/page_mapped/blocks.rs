//! The life of blocks: free, open, closed, collected, erased; and when none of that works, bad.

use std::collections::VecDeque;

use leyden_nand::{BlockId, DieId, Geometry, Ppn};
use leyden_sim::{Divisor, Ratio, Rng};
use serde::{Deserialize, Serialize};

use crate::place::StreamId;

/// Where a block is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockState {
    /// Erased, in the pool of its die.
    Free,
    /// Being filled, page by page.
    Open,
    /// Full; a candidate for collection.
    Closed,
    /// A program in it failed: no longer written, to be emptied and retired.
    Failing,
    /// Chosen by garbage collection; waits until nothing in it is valid.
    Collected,
    /// Never used again.
    Bad,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    state: BlockState,
    stream: u8,
    /// Valid units.
    valid: u32,
    /// Pages handed out for programming since the last erase.
    written_pages: u32,
    erases: u32,
}

/// All blocks, and each die's pool and write points.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the field's terms")]
pub struct Blocks {
    blocks: Vec<Block>,
    blocks_per_die: Divisor,
    pages_per_block: u32,
    /// Free blocks, first erased first: spreads wear over the pool.
    free: Vec<VecDeque<BlockId>>,
    /// The open block of each stream of each die, if it has one.
    open: Vec<Option<BlockId>>,
    /// Blocks that wait to be emptied and retired.
    failing: Vec<Vec<BlockId>>,
    streams: u8,
    bad: u64,
}

impl Blocks {
    /// Erased blocks, but for those bad from the factory.
    pub(crate) fn new(geometry: &Geometry, streams: u8, factory_bad: Ratio, seed: u64) -> Self {
        let mut rng = Rng::new(seed, "ftl.factory_bad_blocks");
        let block =
            Block { state: BlockState::Free, stream: 0, valid: 0, written_pages: 0, erases: 0 };
        let mut blocks = Self {
            blocks: vec![block; geometry.blocks() as usize],
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            pages_per_block: geometry.pages_per_block(),
            free: vec![VecDeque::new(); geometry.dies() as usize],
            open: vec![None; geometry.dies() as usize * usize::from(streams)],
            failing: vec![Vec::new(); geometry.dies() as usize],
            streams,
            bad: 0,
        };
        for id in (0..geometry.blocks()).map(BlockId) {
            if factory_bad > Ratio::ZERO && rng.chance(factory_bad) {
                blocks.blocks[id.index()].state = BlockState::Bad;
                blocks.bad += 1;
            } else {
                blocks.free[geometry.die_of(id).index()].push_back(id);
            }
        }
        blocks
    }

    /// Where `block` is in its life.
    #[inline]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.blocks[block.index()].state
    }

    /// Valid units of `block`.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].valid
    }

    /// The stream whose data `block` holds.
    #[inline]
    pub fn stream(&self, block: BlockId) -> StreamId {
        StreamId(self.blocks[block.index()].stream)
    }

    /// Erases of `block`; `None` if it is bad.
    pub fn erases(&self, block: BlockId) -> Option<u32> {
        let block = &self.blocks[block.index()];
        (block.state != BlockState::Bad).then_some(block.erases)
    }

    /// Erases of every block, in order; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        (0..self.blocks.len() as u32).map(|block| self.erases(BlockId(block)))
    }

    /// Blocks that are bad.
    pub const fn bad(&self) -> u64 {
        self.bad
    }

    /// Free blocks of `die`.
    #[inline]
    pub fn free(&self, die: DieId) -> u32 {
        self.free[die.index()].len() as u32
    }

    /// Pages left in the open block of `stream` on `die`.
    #[inline]
    pub fn open_pages(&self, die: DieId, stream: StreamId) -> u32 {
        self.open[self.write_point(die, stream)]
            .map_or(0, |open| self.pages_per_block - self.blocks[open.index()].written_pages)
    }

    /// Pages handed out in `block` since its last erase.
    #[inline]
    pub(crate) fn written_pages(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].written_pages
    }

    /// The next page of `stream` on `die`, opening a free block if need be; `None` if there is none.
    #[inline]
    pub(crate) fn allocate(&mut self, die: DieId, stream: StreamId) -> Option<Ppn> {
        let point = self.write_point(die, stream);
        let open = match self.open[point] {
            Some(open) if self.blocks[open.index()].written_pages < self.pages_per_block => open,
            _ => {
                let free = self.free[die.index()].pop_front()?;
                let block = &mut self.blocks[free.index()];
                assert_eq!((block.state, block.valid), (BlockState::Free, 0), "{free:?}");
                block.state = BlockState::Open;
                block.stream = stream.0;
                self.open[point] = Some(free);
                free
            }
        };
        let block = &mut self.blocks[open.index()];
        let page = Ppn(open.0 * self.pages_per_block + block.written_pages);
        block.written_pages += 1;
        Some(page)
    }

    /// Closes `block`, if its last page has been handed out. True if it did.
    #[inline]
    pub(crate) fn close_if_full(&mut self, block: BlockId) -> bool {
        let full = &mut self.blocks[block.index()];
        if full.state != BlockState::Open || full.written_pages < self.pages_per_block {
            return false;
        }
        full.state = BlockState::Closed;
        self.forget_open(block);
        true
    }

    /// Stops writing to `block`, where a program has failed.
    pub(crate) fn fail(&mut self, block: BlockId) {
        assert_eq!(self.state(block), BlockState::Open, "a program in a block that is not open");
        self.blocks[block.index()].state = BlockState::Failing;
        self.forget_open(block);
        self.failing[self.blocks_per_die.divide(block.0) as usize].push(block);
    }

    /// The next block of `die` to empty and retire.
    pub(crate) fn next_failing(&self, die: DieId) -> Option<BlockId> {
        self.failing[die.index()].first().copied()
    }

    /// Marks `block` as chosen by garbage collection.
    pub(crate) fn collect(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()].state;
        match *state {
            BlockState::Closed => *state = BlockState::Collected,
            // Stays failing, so that it is retired and not erased; but is chosen no more.
            BlockState::Failing => {
                self.failing[self.blocks_per_die.divide(block.0) as usize]
                    .retain(|&id| id != block);
            }
            other => unreachable!("collected {block:?}, which is {other:?}"),
        }
    }

    /// Returns an erased block to its pool.
    pub(crate) fn erased(&mut self, block: BlockId) {
        let erased = &mut self.blocks[block.index()];
        assert_eq!((erased.state, erased.valid), (BlockState::Collected, 0), "erased {block:?}");
        erased.state = BlockState::Free;
        erased.written_pages = 0;
        erased.erases += 1;
        self.free[self.blocks_per_die.divide(block.0) as usize].push_back(block);
    }

    /// Never uses `block` again.
    pub(crate) fn retire(&mut self, block: BlockId) {
        let retired = &mut self.blocks[block.index()];
        assert_eq!(retired.valid, 0, "retired {block:?} with valid data");
        retired.state = BlockState::Bad;
        self.bad += 1;
    }

    /// Never uses `block`, which is free, again.
    pub(crate) fn wear_out(&mut self, block: BlockId) {
        self.free[self.blocks_per_die.divide(block.0) as usize].retain(|&id| id != block);
        self.retire(block);
    }

    #[inline]
    pub(crate) fn add_valid(&mut self, block: BlockId) {
        self.blocks[block.index()].valid += 1;
    }

    #[inline]
    pub(crate) fn remove_valid(&mut self, block: BlockId) {
        self.blocks[block.index()].valid -= 1;
    }

    pub(crate) fn fits(&self, geometry: &Geometry, streams: u8) -> bool {
        self.blocks.len() == geometry.blocks() as usize
            && self.blocks_per_die.get() == geometry.blocks_per_die()
            && self.pages_per_block == geometry.pages_per_block()
            && self.streams == streams
            && self.free.len() == geometry.dies() as usize
            && self.open.len() == self.free.len() * usize::from(streams)
            && self.failing.len() == self.free.len()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.as_slice()) as u64
    }

    #[inline]
    fn write_point(&self, die: DieId, stream: StreamId) -> usize {
        die.index() * usize::from(self.streams) + stream.index()
    }

    fn forget_open(&mut self, block: BlockId) {
        let die = DieId(self.blocks_per_die.divide(block.0));
        let point = self.write_point(die, self.stream(block));
        assert_eq!(
            self.open[point].take(),
            Some(block),
            "{block:?} is not its stream's open block"
        );
    }
}

//! The life of blocks: free, open, closed, collected, erased; and when none of that works, bad.

use std::collections::VecDeque;

use leyden_nand::{BlockId, DieId, Geometry, Ppn};
use leyden_sim::canary::{Canary, is_planted};
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
    /// Holds mapping pages.
    Map,
    /// Holds pages of the mapping table's journal.
    Journal,
    /// Holds what was dumped when the power failed.
    Dump,
    /// Never used again.
    Bad,
}

impl BlockState {
    /// True if the block is one of those kept back from data, in use.
    pub const fn is_kept(self) -> bool {
        matches!(self, Self::Map | Self::Journal | Self::Dump)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    state: BlockState,
    stream: u8,
    /// Pages handed out whose program has not ended, or waits to change the map.
    pending: u16,
    /// Valid units.
    valid: u32,
    /// Pages handed out for programming since the last erase.
    written_pages: u32,
    erases: u32,
}

/// How many blocks of each die are kept back from data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBlocks {
    /// For mapping pages.
    pub map: u32,
    /// For the mapping table's journal.
    pub journal: u32,
    /// For a dump.
    pub dump: u32,
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
    /// Free blocks of each die that are kept back for mapping pages.
    kept_for_map: Vec<u32>,
    /// Free blocks of each die that are kept back for the journal.
    kept_for_journal: Vec<u32>,
    /// Free blocks of each die that are kept back for a dump.
    kept_for_dump: Vec<u32>,
    /// Blocks that wait to be emptied and retired.
    failing: Vec<Vec<BlockId>>,
    streams: u8,
    bad: u64,
    /// What each die keeps back when it holds no mapping pages and no dump.
    kept: KeptBlocks,
    /// It keeps some back.
    keeps_any: bool,
}

impl Blocks {
    /// Erased blocks, but for those bad from the factory.
    pub(crate) fn new(
        geometry: &Geometry,
        streams: u8,
        kept: KeptBlocks,
        factory_bad: Ratio,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed, "ftl.factory_bad_blocks");
        let block = Block {
            state: BlockState::Free,
            stream: 0,
            pending: 0,
            valid: 0,
            written_pages: 0,
            erases: 0,
        };
        let mut blocks = Self {
            blocks: vec![block; geometry.blocks() as usize],
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            pages_per_block: geometry.pages_per_block(),
            free: vec![VecDeque::new(); geometry.dies() as usize],
            open: vec![None; geometry.dies() as usize * usize::from(streams)],
            kept_for_map: vec![kept.map; geometry.dies() as usize],
            kept_for_journal: vec![kept.journal; geometry.dies() as usize],
            kept_for_dump: vec![kept.dump; geometry.dies() as usize],
            failing: vec![Vec::new(); geometry.dies() as usize],
            streams,
            bad: 0,
            kept,
            keeps_any: kept != KeptBlocks::default(),
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

    /// Free blocks of `die` that data may have.
    #[inline]
    pub fn free(&self, die: DieId) -> u32 {
        if !self.keeps_any {
            return self.free[die.index()].len() as u32;
        }
        let kept = self.kept_for_map[die.index()]
            + self.kept_for_journal[die.index()]
            + self.kept_for_dump[die.index()];
        (self.free[die.index()].len() as u32).saturating_sub(kept)
    }

    /// Free blocks of `die` that are kept back for mapping pages.
    pub(crate) fn kept_for_map(&self, die: DieId) -> u32 {
        self.kept_for_map[die.index()]
    }

    /// Free blocks of `die` that a dump may have. Fewer than are kept back if blocks have gone bad.
    pub(crate) fn dump_blocks(&self, die: DieId) -> u32 {
        self.kept_for_dump[die.index()].min(self.free[die.index()].len() as u32)
    }

    /// Takes a block of those kept back; `None` if there is none.
    pub(crate) fn take_kept(&mut self, die: DieId, state: BlockState) -> Option<BlockId> {
        let kept = match state {
            BlockState::Map => &self.kept_for_map,
            BlockState::Journal => &self.kept_for_journal,
            BlockState::Dump => &self.kept_for_dump,
            other => unreachable!("no block is kept for {other:?}"),
        };
        let left = kept[die.index()].checked_sub(1)?;
        let spare = match state {
            BlockState::Dump => 0,
            _ => self.kept_for_dump[die.index()] as usize,
        };
        if self.free[die.index()].len() <= spare {
            return None; // blocks have gone bad, and a dump needs what is left more
        }
        let block = self.free[die.index()].pop_front()?;
        match state {
            BlockState::Map => self.kept_for_map[die.index()] = left,
            BlockState::Journal => self.kept_for_journal[die.index()] = left,
            _ => self.kept_for_dump[die.index()] = left,
        }
        self.blocks[block.index()].state = state;
        Some(block)
    }

    /// True if blocks are kept back for dumps.
    #[inline]
    pub(crate) const fn keeps_for_dumps(&self) -> bool {
        self.kept.dump > 0
    }

    /// The next page of a block that was kept back; `None` if it is full.
    pub(crate) fn next_page(&mut self, id: BlockId) -> Option<Ppn> {
        let block = &mut self.blocks[id.index()];
        debug_assert!(block.state.is_kept(), "{id:?}");
        if block.written_pages == self.pages_per_block {
            return None;
        }
        let page = Ppn(id.0 * self.pages_per_block + block.written_pages);
        block.written_pages += 1;
        Some(page)
    }

    /// A block that was kept back is used no more: it, or another one, is kept back again.
    fn keep_again(&mut self, die: usize, state: BlockState) {
        match state {
            BlockState::Map => self.kept_for_map[die] += 1,
            BlockState::Journal => self.kept_for_journal[die] += 1,
            BlockState::Dump => self.kept_for_dump[die] += 1,
            _ => {}
        }
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
            _ => self.open_next(die, stream)?,
        };
        let block = &mut self.blocks[open.index()];
        let page = Ppn(open.0 * self.pages_per_block + block.written_pages);
        block.written_pages += 1;
        block.pending += 1;
        Some(page)
    }

    /// Opens a free block for `stream` on `die`, whose last one is full; `None` if there is none.
    pub(crate) fn open_next(&mut self, die: DieId, stream: StreamId) -> Option<BlockId> {
        if self.free(die) == 0 {
            return None;
        }
        let free = self.free[die.index()].pop_front()?;
        let block = &mut self.blocks[free.index()];
        assert_eq!((block.state, block.valid), (BlockState::Free, 0), "{free:?}");
        block.state = BlockState::Open;
        block.stream = stream.0;
        let point = self.write_point(die, stream);
        self.open[point] = Some(free);
        Some(free)
    }

    /// A program in `block` has ended, and has changed the map as far as it will. Closes the block if
    /// it was the last one; true if it did.
    #[inline]
    pub(crate) fn page_ended(&mut self, block: BlockId) -> bool {
        let full = &mut self.blocks[block.index()];
        full.pending -= 1;
        if full.pending > 0
            || full.state != BlockState::Open
            || full.written_pages < self.pages_per_block
        {
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
        let first = self.failing[die.index()].first().copied()?;
        (self.blocks[first.index()].pending == 0).then_some(first)
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
        let die = self.blocks_per_die.divide(block.0) as usize;
        self.keep_again(die, self.state(block));
        let erased = &mut self.blocks[block.index()];
        let may_be = erased.state == BlockState::Collected || erased.state.is_kept();
        assert!(may_be && erased.valid == 0, "erased {block:?}, which is {:?}", erased.state);
        erased.state = BlockState::Free;
        erased.written_pages = 0;
        erased.erases += 1;
        self.free[die].push_back(block);
    }

    /// Never uses `block` again.
    pub(crate) fn retire(&mut self, block: BlockId) {
        let die = self.blocks_per_die.divide(block.0) as usize;
        self.keep_again(die, self.state(block));
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

    /// Forgets what DRAM held of the blocks. Their states are what scanning them, and the bad block
    /// table, tell after a power cut.
    pub(crate) fn lose_power(&mut self) {
        for block in &mut self.blocks {
            (block.valid, block.pending) = (0, 0);
            if block.state == BlockState::Open && block.written_pages == 0 {
                block.state = BlockState::Free; // nothing on flash says otherwise
            }
        }
        self.free.iter_mut().for_each(VecDeque::clear);
        self.failing.iter_mut().for_each(Vec::clear);
        self.open.fill(None);
    }

    /// Sorts the blocks again, by what they hold: pools, write points, what is to be emptied. A block
    /// that was being collected is closed; one that was open goes on where its last page ends.
    pub(crate) fn sort(&mut self) {
        self.kept_for_map.fill(self.kept.map);
        self.kept_for_journal.fill(self.kept.journal);
        self.kept_for_dump.fill(self.kept.dump);
        for id in (0..self.blocks.len() as u32).map(BlockId) {
            let die = self.blocks_per_die.divide(id.0) as usize;
            let block = &mut self.blocks[id.index()];
            match block.state {
                BlockState::Free => self.free[die].push_back(id),
                BlockState::Open if block.written_pages < self.pages_per_block => {
                    if is_planted(Canary::AppendPointBack) {
                        block.written_pages = block.written_pages.saturating_sub(1);
                    }
                    let stream = StreamId(block.stream);
                    let point = self.write_point(DieId(die as u32), stream);
                    assert!(self.open[point].is_none(), "two open blocks of {stream:?}");
                    self.open[point] = Some(id);
                }
                BlockState::Open | BlockState::Collected => block.state = BlockState::Closed,
                BlockState::Failing => self.failing[die].push(id),
                BlockState::Map => {
                    self.kept_for_map[die] = self.kept_for_map[die].saturating_sub(1);
                }
                BlockState::Journal => {
                    self.kept_for_journal[die] = self.kept_for_journal[die].saturating_sub(1);
                }
                BlockState::Dump => {
                    self.kept_for_dump[die] = self.kept_for_dump[die].saturating_sub(1);
                }
                BlockState::Closed | BlockState::Bad => {}
            }
        }
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
            && self.kept_for_map.len() == self.free.len()
            && self.kept_for_journal.len() == self.free.len()
            && self.kept_for_dump.len() == self.free.len()
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
        // The next block may be open already: the last program in this one may have waited to change
        // the map.
        if self.open[point] == Some(block) {
            self.open[point] = None;
        }
    }
}

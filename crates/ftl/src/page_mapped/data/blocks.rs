//! The life of blocks: free, open, closed, collected, erased; and when none of that works, bad.
//!
//! The contents of a block stand on the medium. DRAM keeps each die's pool of free blocks, the
//! number of blocks kept back, the open block of each stream, and counts.

mod wear;

use std::collections::VecDeque;

use leyden_nand::{BlockId, BlockUse, Content, DieId, Geometry, Health, Medium, PageKind, Ppn};
use leyden_sim::Divisor;
use serde::{Deserialize, Serialize};

use crate::dump_area::DumpBlocks;
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

    /// The state of a block as the medium shows it.
    fn of<C: Content>(medium: &Medium<C>, block: BlockId) -> Self {
        let Some(BlockUse { kind, .. }) = medium.used_for(block) else {
            return if medium.health(block) == Health::Bad { Self::Bad } else { Self::Free };
        };
        match (medium.health(block), kind) {
            (Health::Bad, _) => Self::Bad,
            (_, PageKind::Mapping) => Self::Map,
            (_, PageKind::Journal) => Self::Journal,
            (_, PageKind::Dump | PageKind::Root) => Self::Dump,
            // Nothing in it can be read, and it waits to be erased again.
            (_, PageKind::Data) if medium.is_poisoned(block) => Self::Collected,
            (Health::Failing, PageKind::Data) => Self::Failing,
            (Health::Good, PageKind::Data) if medium.next_page(block).is_none() => Self::Closed,
            (Health::Good, PageKind::Data) => Self::Open,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    /// Valid units; of a closed block, those that it had when it was closed.
    valid: u32,
    /// Pages handed out whose program has not ended, or waits to change the map.
    pending: u16,
    state: BlockState,
    stream: u8,
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

impl KeptBlocks {
    const fn total(self) -> u32 {
        self.map + self.journal + self.dump
    }

    /// How many are kept back for blocks of `state`.
    fn of(&mut self, state: BlockState) -> Option<&mut u32> {
        match state {
            BlockState::Map => Some(&mut self.map),
            BlockState::Journal => Some(&mut self.journal),
            BlockState::Dump => Some(&mut self.dump),
            _ => None,
        }
    }
}

/// One die's blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pool {
    /// First erased first: spreads wear over the pool.
    free: VecDeque<BlockId>,
    /// Free blocks that are kept back.
    kept: KeptBlocks,
    /// Blocks in use beyond the reserve: the next ones freed go back to data.
    borrowed: KeptBlocks,
    /// Free blocks that data may have: the others.
    for_data: u32,
    /// Blocks that wait to be emptied and retired.
    failing: Vec<BlockId>,
}

impl Pool {
    /// A block is taken for `state`: from the reserve, or else borrowed from data.
    fn note_use(&mut self, state: BlockState) {
        let Some(kept) = self.kept.of(state) else { return };
        let was_kept = *kept > 0;
        *kept -= u32::from(was_kept);
        *self.borrowed.of(state).expect("it has kept blocks") += u32::from(!was_kept);
    }

    /// A block used for `state` is released: it pays back a borrowed one, or else joins the reserve.
    fn note_given_up(&mut self, state: BlockState) {
        let Some(borrowed) = self.borrowed.of(state) else { return };
        let was_borrowed = *borrowed > 0;
        *borrowed -= u32::from(was_borrowed);
        *self.kept.of(state).expect("it has borrowed blocks") += u32::from(!was_borrowed);
    }

    fn count(&mut self) {
        self.for_data = (self.free.len() as u32).saturating_sub(self.kept.total());
    }
}

/// All blocks, and each die's pool and write points.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the field's terms")]
pub struct Blocks {
    blocks: Vec<Block>,
    blocks_per_die: Divisor,
    pages_per_block: u32,
    pools: Vec<Pool>,
    /// The open block of each stream of each die, if it has one.
    open: Vec<Option<BlockId>>,
    streams: u8,
    /// Blocks that each die keeps back when it holds no mapping pages and no dump.
    kept: KeptBlocks,
}

impl Blocks {
    /// The blocks of `medium`, by what they hold. One that was being collected is closed; one that was
    /// open goes on where its last page ends.
    pub(crate) fn new<C: Content>(medium: &Medium<C>, streams: u8, kept: KeptBlocks) -> Self {
        let geometry = medium.geometry();
        let (free, failing) = (VecDeque::new(), Vec::new());
        let pool = Pool { free, kept, borrowed: KeptBlocks::default(), for_data: 0, failing };
        let mut blocks = Self {
            blocks: Vec::with_capacity(geometry.blocks() as usize),
            blocks_per_die: Divisor::new(geometry.blocks_per_die()),
            pages_per_block: geometry.pages_per_block(),
            pools: vec![pool; geometry.dies() as usize],
            open: vec![None; geometry.dies() as usize * usize::from(streams)],
            streams,
            kept,
        };
        for id in (0..geometry.blocks()).map(BlockId) {
            let state = BlockState::of(medium, id);
            let stream = medium.used_for(id).map_or(0, |used_for| used_for.stream);
            blocks.blocks.push(Block { valid: 0, pending: 0, state, stream });
            blocks.sort_in(id, state, StreamId(stream));
        }
        blocks.pools.iter_mut().for_each(Pool::count);
        blocks
    }

    fn sort_in(&mut self, id: BlockId, state: BlockState, stream: StreamId) {
        let die = self.die_of(id);
        let point = self.write_point(die, stream);
        let pool = &mut self.pools[die.index()];
        match state {
            BlockState::Free => pool.free.push_back(id),
            BlockState::Open => {
                if self.open[point].is_none() {
                    self.open[point] = Some(id);
                } else {
                    // It was given up, and was to be erased.
                    self.blocks[id.index()].state = BlockState::Closed;
                }
            }
            BlockState::Failing => pool.failing.push(id),
            _ => pool.note_use(state),
        }
    }

    /// Where `block` is in its life.
    #[inline]
    pub fn state(&self, block: BlockId) -> BlockState {
        self.blocks[block.index()].state
    }

    /// Valid units of `block`, unless it is closed.
    #[inline]
    pub(super) fn valid(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].valid
    }

    /// The stream whose data `block` holds.
    #[inline]
    pub fn stream(&self, block: BlockId) -> StreamId {
        StreamId(self.blocks[block.index()].stream)
    }

    /// Free blocks of `die` that data may have.
    #[inline]
    pub fn free(&self, die: DieId) -> u32 {
        self.pools[die.index()].for_data
    }

    /// Free blocks of `die` that are kept back for mapping pages.
    pub(crate) fn kept_for_map(&self, die: DieId) -> u32 {
        self.pools[die.index()].kept.map
    }

    /// Free blocks of `die` that a dump may have. Fewer than are kept back if blocks have gone bad.
    pub(crate) fn dump_blocks(&self, die: DieId) -> u32 {
        let pool = &self.pools[die.index()];
        pool.kept.dump.min(pool.free.len() as u32)
    }

    /// Free blocks that `die` lacks for a dump of `needed` blocks, once old dumps have given up `erased` blocks and
    /// `retired` ones that are free for nobody. No more than it keeps back: others are not for a dump.
    pub(crate) fn missing_for_dump(
        &self,
        die: DieId,
        needed: u32,
        erased: u32,
        retired: u32,
    ) -> u32 {
        let pool = &self.pools[die.index()];
        let paid_back = pool.borrowed.dump.min(erased + retired);
        let kept = pool.kept.dump + erased + retired - paid_back;
        needed.min(kept).saturating_sub(pool.free.len() as u32 + erased)
    }

    /// Blocks that hold a dump.
    pub(crate) fn with_dumps(&self) -> impl Iterator<Item = BlockId> + '_ {
        let blocks = (0..self.blocks.len() as u32).map(BlockId);
        blocks.filter(|&block| self.state(block) == BlockState::Dump)
    }

    /// Takes a block of those kept back; `None` if there is none.
    pub(crate) fn take_kept(&mut self, die: DieId, state: BlockState) -> Option<BlockId> {
        let pool = &mut self.pools[die.index()];
        let spare = if state == BlockState::Dump { 0 } else { pool.kept.dump as usize };
        let kept = pool.kept.of(state).expect("a use that blocks are kept back for");
        if *kept == 0 || pool.free.len() <= spare {
            return None; // blocks have gone bad, and a dump needs what is left more
        }
        self.take_free(die, state)
    }

    /// Takes a block from the data pool when all blocks reserved for `state` are in use; `None` if there is none.
    pub(crate) fn borrow_from_data(&mut self, die: DieId, state: BlockState) -> Option<BlockId> {
        if self.pools[die.index()].for_data == 0 { None } else { self.take_free(die, state) }
    }

    fn take_free(&mut self, die: DieId, state: BlockState) -> Option<BlockId> {
        let pool = &mut self.pools[die.index()];
        let block = pool.free.pop_front()?;
        pool.note_use(state);
        pool.count();
        self.blocks[block.index()].state = state;
        Some(block)
    }

    /// True if blocks are kept back for dumps.
    #[inline]
    pub(crate) const fn keeps_for_dumps(&self) -> bool {
        self.kept.dump > 0
    }

    /// Pages left in the open block of `stream` on `die`.
    #[inline]
    pub(crate) fn open_pages<C: Content>(
        &self,
        medium: &Medium<C>,
        die: DieId,
        stream: StreamId,
    ) -> u32 {
        self.open[self.write_point(die, stream)]
            .map_or(0, |open| self.pages_per_block - medium.written_pages(open))
    }

    /// The next page of `stream` on `die`, opening a free block if need be; `None` if there is none.
    /// Its program must start before the next is asked for.
    #[inline]
    pub(crate) fn allocate<C: Content>(
        &mut self,
        medium: &Medium<C>,
        die: DieId,
        stream: StreamId,
    ) -> Option<Ppn> {
        let open = self.open[self.write_point(die, stream)];
        let left = open.and_then(|open| Some((open, medium.next_page(open)?)));
        let (block, page) = if let Some(next) = left {
            next
        } else {
            let next = self.open_next(die, stream)?;
            (next, medium.next_page(next)?)
        };
        self.blocks[block.index()].pending += 1;
        Some(page)
    }

    /// Opens a free block for `stream` on `die`, whose last one is full; `None` if there is none.
    pub(crate) fn open_next(&mut self, die: DieId, stream: StreamId) -> Option<BlockId> {
        let pool = &mut self.pools[die.index()];
        if pool.for_data == 0 {
            return None;
        }
        let free = pool.free.pop_front()?;
        pool.count();
        let block = &mut self.blocks[free.index()];
        assert_eq!((block.state, block.valid), (BlockState::Free, 0), "{free:?}");
        block.state = BlockState::Open;
        block.stream = stream.0;
        let point = self.write_point(die, stream);
        self.open[point] = Some(free);
        Some(free)
    }

    /// A program in `block` has ended, and has changed the map as far as it will. Closes the block if
    /// it was the last one of one that `is_full`; true if it did.
    #[inline]
    pub(crate) fn page_ended(&mut self, block: BlockId, is_full: bool) -> bool {
        let full = &mut self.blocks[block.index()];
        full.pending -= 1;
        if full.pending > 0 || full.state != BlockState::Open || !is_full {
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
        let die = self.die_of(block);
        self.pools[die.index()].failing.push(block);
    }

    /// The next block of `die` to empty and retire.
    pub(crate) fn next_failing(&self, die: DieId) -> Option<BlockId> {
        let first = self.pools[die.index()].failing.first().copied()?;
        (self.blocks[first.index()].pending == 0).then_some(first)
    }

    /// Marks `block` as chosen by garbage collection.
    pub(crate) fn collect(&mut self, block: BlockId) {
        let die = self.die_of(block);
        let state = &mut self.blocks[block.index()].state;
        match *state {
            BlockState::Closed => *state = BlockState::Collected,
            // Stays failing, so that it is retired instead of erased, but is not chosen again.
            BlockState::Failing => self.pools[die.index()].failing.retain(|&id| id != block),
            other => unreachable!("collected {block:?}, which is {other:?}"),
        }
    }

    /// The open blocks of `die` that no program is under way in.
    pub(crate) fn open_blocks(&self, die: DieId) -> impl Iterator<Item = BlockId> + '_ {
        self.open(die).filter(|block| self.blocks[block.index()].pending == 0)
    }

    /// The blocks of `die` that are being filled.
    #[inline]
    pub(crate) fn open(&self, die: DieId) -> impl Iterator<Item = BlockId> + '_ {
        let of_die =
            die.index() * usize::from(self.streams)..(die.index() + 1) * usize::from(self.streams);
        self.open[of_die].iter().flatten().copied()
    }

    /// True if `block` is being filled.
    pub(crate) fn is_open(&self, block: BlockId) -> bool {
        self.state(block) == BlockState::Open
    }

    /// Stops writing to an open block, which is to be erased.
    pub(crate) fn give_up_open(&mut self, block: BlockId) {
        self.forget_open(block);
        let given_up = &mut self.blocks[block.index()];
        assert_eq!((given_up.state, given_up.pending), (BlockState::Open, 0), "{block:?}");
        given_up.state = BlockState::Collected;
    }

    /// Returns an erased block to its pool.
    pub(crate) fn erased(&mut self, block: BlockId) {
        let (die, state) = (self.die_of(block), self.state(block));
        self.pools[die.index()].note_given_up(state);
        let erased = &mut self.blocks[block.index()];
        let may_be = erased.state == BlockState::Collected || erased.state.is_kept();
        assert!(may_be && erased.valid == 0, "erased {block:?}, which is {:?}", erased.state);
        erased.state = BlockState::Free;
        let pool = &mut self.pools[die.index()];
        pool.free.push_back(block);
        pool.count();
    }

    /// Retires `block`, which is free or holds no valid data. The caller tells the medium.
    pub(crate) fn retire(&mut self, block: BlockId) {
        let (die, state) = (self.die_of(block), self.state(block));
        self.pools[die.index()].note_given_up(state);
        let retired = &mut self.blocks[block.index()];
        assert_eq!(retired.valid, 0, "retired {block:?} with valid data");
        let was_free = std::mem::replace(&mut retired.state, BlockState::Bad) == BlockState::Free;
        let pool = &mut self.pools[die.index()];
        if was_free {
            pool.free.retain(|&id| id != block);
        }
        pool.count();
    }

    /// A unit of `block` has become valid.
    #[inline]
    pub(super) fn add_valid(&mut self, block: BlockId) {
        self.blocks[block.index()].valid += 1;
    }

    /// A unit of `block` is not valid any more.
    #[inline]
    pub(super) fn remove_valid(&mut self, block: BlockId) {
        self.blocks[block.index()].valid -= 1;
    }

    /// `block` is not closed any more, or is part of a drawn state, and holds so many valid units.
    pub(super) fn set_valid(&mut self, block: BlockId, valid: u32) {
        self.blocks[block.index()].valid = valid;
    }

    pub(crate) fn fits(&self, geometry: &Geometry, streams: u8) -> bool {
        self.blocks.len() == geometry.blocks() as usize
            && self.blocks_per_die.get() == geometry.blocks_per_die()
            && self.pages_per_block == geometry.pages_per_block()
            && self.streams == streams
            && self.pools.len() == geometry.dies() as usize
            && self.open.len() == self.pools.len() * usize::from(streams)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        size_of_val(self.blocks.as_slice()) as u64
    }

    #[inline]
    fn die_of(&self, block: BlockId) -> DieId {
        DieId(self.blocks_per_die.divide(block.0))
    }

    #[inline]
    fn write_point(&self, die: DieId, stream: StreamId) -> usize {
        die.index() * usize::from(self.streams) + stream.index()
    }

    fn forget_open(&mut self, block: BlockId) {
        let point = self.write_point(self.die_of(block), self.stream(block));
        // The next block may be open already: the last program in this one may have waited to change
        // the map.
        if self.open[point] == Some(block) {
            self.open[point] = None;
        }
    }
}

impl DumpBlocks for Blocks {
    fn take_for_dump(&mut self, die: DieId) -> Option<BlockId> {
        self.take_kept(die, BlockState::Dump)
    }
}

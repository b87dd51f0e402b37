//! Which block is opened and closed for data that is moved for wear.

use leyden_nand::{BlockId, DieId};

use super::{BlockState, Blocks};
use crate::place::StreamId;

impl Blocks {
    /// The free block of `die` that was erased most often; of equals the one that was free longest.
    pub(crate) fn most_worn_free(
        &self,
        die: DieId,
        erases: impl Fn(BlockId) -> u32,
    ) -> Option<BlockId> {
        let free = &self.pools[die.index()].free;
        // `max_by_key` returns the last of equals.
        free.iter().rev().copied().max_by_key(|&block| erases(block))
    }

    /// `block`, which is free, is opened next.
    pub(crate) fn use_next(&mut self, block: BlockId) {
        let die = self.die_of(block);
        let free = &mut self.pools[die.index()].free;
        let at = free.iter().position(|&id| id == block).expect("a free block is in its pool");
        free.remove(at);
        free.push_front(block);
    }

    /// The open block of `stream` on `die`.
    pub(crate) fn open_of(&self, die: DieId, stream: StreamId) -> Option<BlockId> {
        self.open[self.write_point(die, stream)]
    }

    /// True if a program in `block` has not ended, or waits to change the map.
    pub(crate) fn is_pending(&self, block: BlockId) -> bool {
        self.blocks[block.index()].pending > 0
    }

    /// Stops writing to an open block without programs under way: closes it, or, if it is `empty`, returns it to
    /// its pool.
    pub(in super::super) fn close(&mut self, block: BlockId, empty: bool) {
        self.forget_open(block);
        let die = self.die_of(block);
        let closed = &mut self.blocks[block.index()];
        assert_eq!((closed.state, closed.pending), (BlockState::Open, 0), "{block:?}");
        closed.state = if empty { BlockState::Free } else { BlockState::Closed };
        if empty {
            let pool = &mut self.pools[die.index()];
            pool.free.push_back(block);
            pool.count();
        }
    }
}

//! Static wear levelling: which block a collection empties for its wear rather than its garbage ([`LevelPolicy`]).
//!
//! Data that is never overwritten keeps its block from being erased, and leaves all erases to the other blocks.
//! Emptying that block brings it into circulation. Its data goes to the free block that was erased most often, which is
//! opened for it when the move begins, by a stream of its own ([`crate::place::Streams::level`]): among data that is
//! overwritten it would be copied again and again. Other data gets the block that was erased first, whatever the policy.

use leyden_nand::BlockId;

use super::DieView;

leyden_sim::policies! {
    /// Which blocks are collected for their wear.
    pub enum LevelConfig: LevelPolicy {
        /// None: a block whose data stays is never erased.
        Off(off::Off) = "off",
        /// A collection empties the block of the die that was erased least often, if the free block that its data
        /// goes to was erased clearly more often.
        LeastWorn(least_worn::LeastWorn) = "least_worn",
    }
}

impl Default for LevelConfig {
    fn default() -> Self {
        Self::Off(off::Off {})
    }
}

/// The blocks of a die, with their erases. Read only.
#[derive(Clone, Copy)]
pub struct WearView<'a> {
    blocks: DieView<'a>,
    erases: &'a dyn Fn(BlockId) -> u32,
    dest: BlockId,
}

impl<'a> WearView<'a> {
    /// `blocks` could be collected, and their data would go to `dest`; `erases` counts those of each.
    pub fn new(blocks: DieView<'a>, erases: &'a dyn Fn(BlockId) -> u32, dest: BlockId) -> Self {
        Self { blocks, erases, dest }
    }

    /// The block that was erased least often, of those that could be collected; of equals the one with the lowest
    /// number. Looks at all of them.
    pub fn least_worn(&self) -> Option<(u32, BlockId)> {
        let blocks = (0..self.blocks.len()).map(|n| self.blocks.nth(n).block);
        blocks.map(|block| ((self.erases)(block), block)).min()
    }

    /// The erases of the block that the data would go to.
    pub fn dest_erases(&self) -> u32 {
        (self.erases)(self.dest)
    }
}

impl std::fmt::Debug for WearView<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WearView").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

/// Chooses blocks to empty for their wear.
pub trait LevelPolicy: std::fmt::Debug + Send + Sync {
    /// The block to empty next instead of the victim policy's, if one should be. Asked for each collection that
    /// is due, and for each destination that there is.
    fn block(&self, die: &WearView<'_>) -> Option<BlockId>;
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use leyden_nand::DieId;
    use leyden_sim::Time;

    use super::super::tests::{BLOCKS_PER_DIE, geometry};
    use super::super::{AgeOf, Order, VictimIndex};
    use super::*;

    /// The block chosen on a die whose block n has been erased `10 + n` times, for data that goes to block `dest`.
    fn chosen(config: &LevelConfig, dest: u32) -> Option<BlockId> {
        let mut index = VictimIndex::new(&geometry(), Order::Valid);
        for n in (1..BLOCKS_PER_DIE).rev() {
            index.insert(BlockId(n), n, 0, Time::ZERO);
        }
        let erases = |block: BlockId| 10 + block.0;
        let blocks = DieView::new(&mut index, DieId(0), Time::ZERO, AgeOf::default());
        config.policy().block(&WearView::new(blocks, &erases, BlockId(dest)))
    }

    #[test]
    fn off_empties_nothing() {
        assert_eq!(chosen(&LevelConfig::default(), BLOCKS_PER_DIE), None);
    }

    /// Block 0 is not to be had.
    #[test]
    fn the_least_worn_that_could_be_collected_is_due_if_its_data_goes_to_one_worn_more() {
        let spread = NonZeroU32::new(5).unwrap();
        let config = LevelConfig::LeastWorn(least_worn::LeastWorn { spread });
        assert_eq!(chosen(&config, 6), Some(BlockId(1)));
        assert_eq!(chosen(&config, 5), None);
        assert_eq!(chosen(&config, 0), None);
    }
}

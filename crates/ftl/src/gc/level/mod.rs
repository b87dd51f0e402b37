//! Static wear levelling: which block a collection empties for its wear rather than its garbage ([`LevelPolicy`]).
//!
//! Data that is never overwritten keeps its block from being erased, and leaves all erases to the other blocks.
//! Emptying that block brings it into circulation. Its data goes to the free block that was erased most often, by a
//! stream of its own ([`crate::place::Streams::level`]): among data that is overwritten it would be copied again and
//! again. Other data gets the block that was erased first, whatever the policy.

use leyden_nand::BlockId;
use leyden_sim::Rng;

use super::DieView;

leyden_sim::policies! {
    /// Which blocks are collected for their wear.
    pub enum LevelConfig: LevelPolicy {
        /// None: a block whose data stays is never erased.
        Off(off::Off) = "off",
        /// One collection in a few empties the block of the die that was erased least often, if another one was
        /// erased clearly more often.
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
    most: &'a dyn Fn() -> u32,
}

impl<'a> WearView<'a> {
    /// `blocks` could be collected; `erases` counts those of each, `most` is the most of any block of the die.
    pub fn new(
        blocks: DieView<'a>,
        erases: &'a dyn Fn(BlockId) -> u32,
        most: &'a dyn Fn() -> u32,
    ) -> Self {
        Self { blocks, erases, most }
    }

    /// The block that was erased least often, of those that could be collected; of equals the one with the lowest
    /// number. Looks at all of them.
    pub fn least_worn(&self) -> Option<(u32, BlockId)> {
        let blocks = (0..self.blocks.len()).map(|n| self.blocks.nth(n).block);
        blocks.map(|block| ((self.erases)(block), block)).min()
    }

    /// The most erases of any block of the die. Looks at all of them.
    pub fn most_erases(&self) -> u32 {
        (self.most)()
    }
}

impl std::fmt::Debug for WearView<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WearView").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

/// Chooses blocks to empty for their wear.
pub trait LevelPolicy: std::fmt::Debug + Send + Sync {
    /// The block to empty next in place of the victim policy's, if one should be. Asked once for each collection
    /// that is due. What is random is drawn from `rng`, which the victim policy draws from, too.
    fn block(&self, die: &WearView<'_>, rng: &mut Rng) -> Option<BlockId>;
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use leyden_nand::DieId;
    use leyden_sim::Time;

    use super::super::tests::{BLOCKS_PER_DIE, geometry};
    use super::super::{Order, VictimIndex};
    use super::*;

    /// How often each block is chosen, of 8,000 times, on a die whose block n has been erased `10 + n` times.
    fn times_chosen(config: &LevelConfig) -> Vec<u32> {
        let mut index = VictimIndex::new(&geometry(), Order::Valid);
        for n in (1..BLOCKS_PER_DIE).rev() {
            index.insert(BlockId(n), n, 0, Time::ZERO);
        }
        let (mut times, mut rng) = (vec![0; BLOCKS_PER_DIE as usize], Rng::new(1, "level"));
        let policy = config.policy();
        let erases = |block: BlockId| 10 + block.0;
        let most = || erases(BlockId(BLOCKS_PER_DIE - 1));
        for _ in 0..8_000 {
            let blocks = DieView::new(&mut index, DieId(0), Time::ZERO);
            if let Some(block) = policy.block(&WearView::new(blocks, &erases, &most), &mut rng) {
                times[block.index()] += 1;
            }
        }
        times
    }

    #[test]
    fn off_empties_nothing() {
        assert_eq!(times_chosen(&LevelConfig::default()), vec![0; BLOCKS_PER_DIE as usize]);
    }

    /// Block 0 is not to be had; the most erased one is `BLOCKS_PER_DIE - 2` ahead of block 1.
    #[test]
    fn one_collection_in_eight_empties_the_least_worn_that_could_be_collected() {
        let config = |spread: u32| {
            LevelConfig::LeastWorn(least_worn::LeastWorn {
                spread: NonZeroU32::new(spread).unwrap(),
                ..least_worn::LeastWorn::default()
            })
        };
        let times = times_chosen(&config(BLOCKS_PER_DIE - 2));
        assert!((900..1_100).contains(&times[1]), "{times:?}");
        assert_eq!(times.iter().sum::<u32>(), times[1], "{times:?}");
        assert_eq!(times_chosen(&config(BLOCKS_PER_DIE - 1)).iter().sum::<u32>(), 0);
    }
}

//! `least_worn`: one collection in a few empties the block that was erased least often.
//!
//! JFFS2 (Woodhouse, "JFFS: The Journalling Flash File System", OLS 2001) empties a block without garbage at one
//! collection in a hundred or so, drawn at random; flash drives of today do so by the difference of erase counts. This
//! does both: the difference says that a block is due, the draw spreads the moves over time.

use std::num::NonZeroU32;

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LevelPolicy, WearView};

/// The block of the die that was erased least often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeastWorn {
    /// A block is due once the most erased block of its die has been erased this many times more.
    pub spread: NonZeroU32,
    /// One collection in this many, drawn at random, empties a block that is due.
    pub one_in: NonZeroU32,
}

impl Default for LeastWorn {
    fn default() -> Self {
        let positive = |n| NonZeroU32::new(n).expect("is not zero");
        Self { spread: positive(16), one_in: positive(8) }
    }
}

impl LevelPolicy for LeastWorn {
    fn block(&self, die: &WearView<'_>, rng: &mut Rng) -> Option<BlockId> {
        if rng.below(self.one_in.get().into()) != 0 {
            return None;
        }
        let (erases, block) = die.least_worn()?;
        (die.most_erases().saturating_sub(erases) >= self.spread.get()).then_some(block)
    }
}

//! `least_worn`: a collection empties the block that was erased least often, if its data goes to one worn clearly more.
//!
//! Flash drives move data by the difference of erase counts (Chang, "On efficient wear leveling for large-scale flash-memory
//! storage systems", SAC 2007: "dual-pool"). The difference is that of the two blocks which change places, so a move
//! always rests the more worn one, and no move follows once the free blocks are as little worn as the data's.

use std::num::NonZeroU32;

use leyden_nand::BlockId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LevelPolicy, WearView};

/// The block of the die that was erased least often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeastWorn {
    /// A block is due once the free block that its data would go to has been erased this many times more.
    pub spread: NonZeroU32,
}

impl Default for LeastWorn {
    fn default() -> Self {
        Self { spread: NonZeroU32::new(16).expect("is not zero") }
    }
}

impl LevelPolicy for LeastWorn {
    fn block(&self, die: &WearView<'_>) -> Option<BlockId> {
        let (erases, block) = die.least_worn()?;
        (die.dest_erases().saturating_sub(erases) >= self.spread.get()).then_some(block)
    }
}

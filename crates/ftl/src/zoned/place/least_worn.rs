//! `least_worn`: wear is levelled where blocks are handed out.

use leyden_nand::DieId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DieView, PlacePolicy};

/// The die whose next free block was erased least often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeastWorn {}

impl PlacePolicy for LeastWorn {
    fn die(&self, dies: &[DieView]) -> Option<DieId> {
        dies.iter().min_by_key(|die| (die.erases, die.distance)).map(|die| die.die)
    }
}

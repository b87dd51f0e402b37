//! `round_robin`: die after die.

use leyden_nand::DieId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DieView, PlacePolicy};

/// The next die.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoundRobin {}

impl PlacePolicy for RoundRobin {
    fn die(&self, dies: &[DieView]) -> Option<DieId> {
        dies.iter().min_by_key(|die| die.distance).map(|die| die.die)
    }
}

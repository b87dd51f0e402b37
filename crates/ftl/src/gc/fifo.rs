//! `fifo`: the block that was filled first.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{VictimIndex, VictimPolicy};

/// The block that was filled first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fifo {}

impl VictimPolicy for Fifo {
    fn victim(&self, index: &VictimIndex, die: DieId, _: Time) -> Option<BlockId> {
        index.first_filled(die)
    }
}

//! `greedy`: the least utilised block.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{VictimIndex, VictimPolicy};

/// The block with the fewest valid units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greedy {}

impl VictimPolicy for Greedy {
    fn victim(&self, index: &VictimIndex, die: DieId, _: Time) -> Option<BlockId> {
        index.candidates(die).next().map(|candidate| candidate.block)
    }
}

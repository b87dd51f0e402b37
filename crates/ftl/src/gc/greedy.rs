//! `greedy`: the least utilised block.

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::tests::{Block, Twin};
use super::{DieView, VictimPolicy};

/// The block with the fewest valid units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Greedy {}

impl VictimPolicy for Greedy {
    fn victim(&self, blocks: &DieView<'_>, _: &mut Rng) -> Option<BlockId> {
        blocks.by_rank().next().map(|candidate| candidate.block)
    }

    #[cfg(test)]
    fn is_right(&self, chosen: &Block, die: &Twin<'_>) -> bool {
        chosen.id == die.first_by(|block| (block.valid, block.moved))
    }
}

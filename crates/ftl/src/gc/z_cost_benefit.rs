//! `z_cost_benefit`: age x (i - min(z, i / 2)) / 2v.
//!
//! Zombie Chasing, section 3.2.1, equation 3: `cost_benefit` with the benefit of `z_greedy`.

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::tests::{Block, Twin};
use super::worth::{Worth, most_worth};
use super::{DieView, VictimPolicy};

/// The block with the largest age x (i - min(z, i / 2)) / 2v.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZCostBenefit {}

impl VictimPolicy for ZCostBenefit {
    fn victim(&self, blocks: &DieView<'_>, _: &mut Rng) -> Option<BlockId> {
        let (units, now) = (blocks.units_per_block(), blocks.now());
        most_worth(blocks, |candidate, zombies| Worth::of(candidate, zombies, units, now))
    }

    fn depends_on_time(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn is_right(&self, chosen: &Block, die: &Twin<'_>) -> bool {
        // In halves, as the score is.
        let worth = |block: &Block, now| (block.age(now) * block.score(), block.valid.into());
        die.has_none_above(chosen, worth)
    }
}

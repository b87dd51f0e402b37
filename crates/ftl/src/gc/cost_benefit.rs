//! `cost_benefit`: age x (1 - u) / 2u.

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::tests::{Block, Twin};
use super::worth::{Worth, most_worth};
use super::{DieView, VictimPolicy};

/// The block with the largest age x (1 - u) / 2u.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostBenefit {}

impl VictimPolicy for CostBenefit {
    /// Among blocks of equal utilisation the oldest wins, so only that one is looked at.
    fn victim(&self, blocks: &DieView<'_>, _: &mut Rng) -> Option<BlockId> {
        let (units, now) = (blocks.units_per_block(), blocks.now());
        most_worth(blocks, |candidate, _| Worth::of(candidate, 0, units, now))
    }

    fn depends_on_time(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn is_right(&self, chosen: &Block, die: &Twin<'_>) -> bool {
        die.has_none_above(chosen, Block::benefit)
    }
}

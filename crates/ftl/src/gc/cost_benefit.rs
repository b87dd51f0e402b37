//! `cost_benefit`: age x (1 - u) / 2u.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::worth::{Worth, most_worth};
use super::{VictimIndex, VictimPolicy};

/// The block with the largest age x (1 - u) / 2u.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostBenefit {}

impl VictimPolicy for CostBenefit {
    /// Among blocks of equal utilisation the oldest wins, so only that one is looked at.
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId> {
        let units = index.units_per_block();
        most_worth(index, die, |candidate, _| Worth::of(candidate, 0, units, now))
    }

    fn depends_on_time(&self) -> bool {
        true
    }
}

//! `z_cost_benefit`: age x (i - min(z, i / 2)) / 2v.
//!
//! Zombie Chasing, section 3.2.1, equation 3: `cost_benefit` with the benefit of `z_greedy`.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::worth::{Worth, most_worth};
use super::{VictimIndex, VictimPolicy};

/// The block with the largest age x (i - min(z, i / 2)) / 2v.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZCostBenefit {}

impl VictimPolicy for ZCostBenefit {
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId> {
        let units = index.units_per_block();
        most_worth(index, die, |candidate, zombies| Worth::of(candidate, zombies, units, now))
    }

    fn depends_on_time(&self) -> bool {
        true
    }
}

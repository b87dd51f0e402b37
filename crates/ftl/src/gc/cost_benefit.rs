//! `cost_benefit`: age x (1 - u) / 2u.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::worth::Worth;
use super::{VictimIndex, VictimPolicy};

/// The block with the largest age x (1 - u) / 2u.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostBenefit {}

impl VictimPolicy for CostBenefit {
    /// Exact, without looking at every block: among blocks of equal utilisation the oldest wins, so
    /// it is enough to compare the oldest of each utilisation.
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId> {
        let units = index.units_per_block();
        let mut best: Option<(Worth, BlockId)> = None;
        for candidate in index.candidates(die) {
            if candidate.valid == 0 {
                return Some(candidate.block); // free space for an erase: an infinite benefit
            }
            let worth = Worth::of(candidate, 0, units, now);
            if best.is_none_or(|(best, _)| worth.is_more_than(best)) {
                best = Some((worth, candidate.block));
            }
        }
        best.map(|(_, block)| block)
    }

    fn depends_on_time(&self) -> bool {
        true
    }
}

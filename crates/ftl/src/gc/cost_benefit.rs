//! `cost_benefit`: age x (1 - u) / 2u.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{VictimIndex, VictimPolicy};

/// The block with the largest age x (1 - u) / 2u.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostBenefit {}

impl VictimPolicy for CostBenefit {
    /// Exact, without looking at every block: among blocks of equal utilisation the oldest wins, so
    /// it is enough to compare the oldest of each utilisation.
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId> {
        let units = u64::from(index.units_per_block());
        let mut best: Option<(u64, u64, BlockId)> = None;
        for candidate in index.candidates(die) {
            let valid = u64::from(candidate.valid);
            if valid == 0 {
                return Some(candidate.block); // free space for an erase: an infinite benefit
            }
            // age x (1 - u) / 2u = age x (units - valid) / (2 valid): compared as fractions. Plus
            // one, so that utilisation decides among blocks that all changed just now.
            let benefit = (now.since(candidate.changed).as_ns() + 1).saturating_mul(units - valid);
            let better = best.is_none_or(|(best_benefit, best_valid, _)| {
                u128::from(benefit) * u128::from(best_valid)
                    > u128::from(best_benefit) * u128::from(valid)
            });
            if better {
                best = Some((benefit, valid, candidate.block));
            }
        }
        best.map(|(_, _, block)| block)
    }

    fn depends_on_time(&self) -> bool {
        true
    }
}

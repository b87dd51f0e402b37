//! `z_cost_benefit`: age x (i - min(z, i / 2)) / 2v.
//!
//! Zombie Chasing, section 3.2.1, equation 3: `cost_benefit` with the benefit of `z_greedy`.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::worth::Worth;
use super::{VictimIndex, VictimPolicy};

/// The block with the largest age x (i - min(z, i / 2)) / 2v.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZCostBenefit {}

impl VictimPolicy for ZCostBenefit {
    /// Exact. Of a utilisation, only blocks that would beat the best one so far without any zombies
    /// are looked at: the lists are ordered by age, so that is a beginning of each.
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId> {
        let units = index.units_per_block();
        let mut best: Option<(Worth, BlockId)> = None;
        for first in index.candidates(die) {
            if first.valid == 0 {
                return Some(first.block); // free space for an erase: an infinite benefit
            }
            for candidate in std::iter::once(first).chain(index.after(first)) {
                let most = Worth::of(candidate, 0, units, now);
                if best.is_some_and(|(best, _)| !most.is_more_than(best)) {
                    break;
                }
                let worth = Worth::of(candidate, candidate.zombies, units, now);
                if best.is_none_or(|(best, _)| worth.is_more_than(best)) {
                    best = Some((worth, candidate.block));
                }
            }
        }
        best.map(|(_, block)| block)
    }

    fn depends_on_time(&self) -> bool {
        true
    }
}

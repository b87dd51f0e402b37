//! What collecting a block is worth: what `cost_benefit` and `z_cost_benefit` compare.

use leyden_sim::Time;

use super::{Candidate, score_in_halves};

/// A benefit over its cost, to be compared without rounding.
#[derive(Clone, Copy)]
pub(super) struct Worth {
    benefit: u64,
    cost: u64,
}

impl Worth {
    /// age x score / 2v of a block of `units` units that holds what `candidate` does, but `zombies`
    /// zombies; without any, the score is that of all its invalid units. Plus one, so that utilisation
    /// decides among blocks that all changed just now.
    #[inline]
    pub(super) fn of(candidate: Candidate, zombies: u32, units: u32, now: Time) -> Self {
        let age_ns = now.since(candidate.changed).as_ns() + 1;
        let score = score_in_halves(units - candidate.valid, zombies);
        Self { benefit: age_ns.saturating_mul(u64::from(score)), cost: u64::from(candidate.valid) }
    }

    #[inline]
    pub(super) fn is_more_than(self, other: Self) -> bool {
        u128::from(self.benefit) * u128::from(other.cost)
            > u128::from(other.benefit) * u128::from(self.cost)
    }
}

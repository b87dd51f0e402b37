//! Garbage collection: which block next ([`VictimPolicy`]), and the index that makes the choice
//! cheap ([`VictimIndex`]).
//!
//! Policies decide, the mechanism ([`crate::page_mapped`]) mutates: a policy sees one die's index
//! and names a block.

pub mod cost_benefit;
pub mod fifo;
pub mod greedy;
mod index;
#[cfg(test)]
mod tests;
mod worth;
pub mod z_cost_benefit;
pub mod z_deadline;
pub mod z_greedy;

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;

pub use index::{Candidate, Order, VictimIndex, score_in_halves};

leyden_sim::policies! {
    /// Which block is collected next.
    pub enum VictimConfig {
        /// The block with the fewest valid units; among equals the one that lost a unit longest ago.
        Greedy(greedy::Greedy) = "greedy",
        /// The block with the largest age x (1 - u) / 2u, u being its share of valid units and age
        /// the time since one of its units was last invalidated (Kawaguchi et al., USENIX 1995).
        CostBenefit(cost_benefit::CostBenefit) = "cost_benefit",
        /// The block that was filled first, whatever it holds (the circular log of Desnoyers 2012).
        Fifo(fifo::Fifo) = "fifo",
        /// The block with the largest i - min(z, i / 2), of i invalid units and z zombies: those that
        /// the host has said it will overwrite (Zombie Chasing, equation 2).
        ZGreedy(z_greedy::ZGreedy) = "z_greedy",
        /// The block with the largest age x (i - min(z, i / 2)) / 2v, of i invalid and v valid units, z
        /// of them zombies (Zombie Chasing, equation 3).
        ZCostBenefit(z_cost_benefit::ZCostBenefit) = "z_cost_benefit",
        /// The block with the largest (age x i / 2v) x i / (i + z x age / d), of i invalid and v valid
        /// units, z of them zombies; d is how long before they come true hints are given, as the drive
        /// learns it. Our own.
        ZDeadline(z_deadline::ZDeadline) = "z_deadline",
    }
}

impl Default for VictimConfig {
    fn default() -> Self {
        Self::Greedy(greedy::Greedy {})
    }
}

/// Chooses victims.
pub trait VictimPolicy: std::fmt::Debug + Send {
    /// The block of `die` to collect at `now`, among those in the index; `None` if it has none.
    fn victim(&self, index: &VictimIndex, die: DieId, now: Time) -> Option<BlockId>;

    /// True if the choice may change though nothing on the die does.
    fn depends_on_time(&self) -> bool {
        false
    }

    /// True if the index is to know how long before they come true hints are given.
    fn asks_for_lead(&self) -> bool {
        false
    }

    /// What the index ranks blocks by for it.
    fn order(&self) -> Order {
        Order::Valid
    }
}

impl VictimConfig {
    /// The policy as the mechanism calls it: once per collection.
    pub fn policy(&self) -> Box<dyn VictimPolicy> {
        match self {
            Self::Greedy(policy) => Box::new(policy.clone()),
            Self::CostBenefit(policy) => Box::new(policy.clone()),
            Self::Fifo(policy) => Box::new(policy.clone()),
            Self::ZGreedy(policy) => Box::new(policy.clone()),
            Self::ZCostBenefit(policy) => Box::new(policy.clone()),
            Self::ZDeadline(policy) => Box::new(policy.clone()),
        }
    }
}

//! Garbage collection: which block next ([`VictimPolicy`]), and the index that makes the choice
//! cheap ([`VictimIndex`]).
//!
//! Policies decide, the mechanism ([`crate::page_mapped`]) mutates: a policy sees one die's blocks
//! ([`DieView`]) and names one. The modules of the policies themselves come from the registry.

mod age;
mod chooser;
mod index;
pub mod level;
mod lists;
mod members;
mod order;
#[cfg(test)]
mod tests;
mod view;
mod worth;

use leyden_nand::BlockId;
use leyden_sim::Rng;

pub use age::{AgeClock, AgeOf, Ages};
pub use chooser::Chooser;
pub use index::VictimIndex;
pub use lists::Candidate;
pub use order::{Order, score_in_halves};
pub use view::DieView;

leyden_sim::policies! {
    /// Which block is collected next.
    pub enum VictimConfig: VictimPolicy {
        /// The block with the fewest valid units; among equals the one that lost a unit longest ago.
        Greedy(greedy::Greedy) = "greedy",
        /// The least utilised of a few blocks drawn at random (the d choices of Van Houdt 2013).
        DChoices(d_choices::DChoices) = "d_choices",
        /// The block with the largest age x (1 - u) / 2u, u being its share of valid units, and its age as
        /// `age_of` has it (Kawaguchi et al., USENIX 1995).
        CostBenefit(cost_benefit::CostBenefit) = "cost_benefit",
        /// The block that was filled first, at any utilisation (the circular log of Desnoyers 2012).
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
pub trait VictimPolicy: std::fmt::Debug + Send + Sync {
    /// The one of `blocks` to collect; `None` if there is none. What is random in the choice is drawn
    /// from `rng`, which draws for victims only.
    fn victim(&self, blocks: &DieView<'_>, rng: &mut Rng) -> Option<BlockId>;

    /// True if the choice may change though nothing on the die does.
    fn depends_on_time(&self) -> bool {
        false
    }

    /// True if the view is to say how long before they come true hints are given.
    fn asks_for_lead(&self) -> bool {
        false
    }

    /// The rank by which the index orders blocks for it.
    fn order(&self) -> Order {
        Order::Valid
    }

    /// The policy's slow twin, which looks through all of `die`: true if `chosen` is right. That it is
    /// a block of the die that could be collected is asked of every policy anyway.
    #[cfg(test)]
    fn is_right(&self, _chosen: &tests::Block, _die: &tests::Twin<'_>) -> bool {
        true
    }
}

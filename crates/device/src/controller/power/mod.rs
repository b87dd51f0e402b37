//! Power loss: what a cut saves and loses, and how the drive comes back.
//!
//! **What lives here**: the supply a drive is built with ([`PowerSupply`]), the dump at a cut
//! ([`super::Controller::cut_power`]), what a cut would cost now ([`super::Controller::cut_cost`]) and lose with less
//! energy ([`super::Controller::cut_loss`]), and the return of the power ([`super::Controller::restore_power`]). **What doesn't**: the arithmetic of banks and dumps
//! ([`leyden_power`]), and what recovery finds on flash ([`leyden_ftl::recovery`]).
//!
//! **Invariants**
//! - What is dumped is what was promised: with a protected buffer the newest version of everything
//!   in it; of the mapping table always what flash does not hold.
//! - After a cut, nothing but what flash holds is used.
//! - A cut during recovery changes nothing on flash; recovery begins again.

mod cut;
mod outcome;
mod plan;
mod restore;
mod state;
mod supply;

pub use outcome::{CutCost, CutLoss, PowerLoss, Recovery};
pub(super) use state::PowerState;
pub use supply::PowerSupply;

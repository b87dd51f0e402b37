//! The arithmetic of power loss: what a capacitor bank holds, what a dump costs, and in which order
//! its pages go to which dies.
//!
//! **What lives here**: the bank ([`Bank`]), the budget that runs down during a dump ([`Budget`]),
//! the timelines of dies and channels after a cut ([`Dump`]), and the bound on what a drive may need
//! at worst ([`worst_case`]), by which a drive that promises too much is refused ([`provision()`]).
//! **What doesn't**: the drive. What is promised, what is in flight at a cut, and what a page that
//! was not reached means, is the device's; it executes what is computed here.
//!
//! **Invariants**
//! - Energies are whole picojoules and times whole nanoseconds: sums are exact, nothing is rounded
//!   but the bank's energy (down) and what a bank needs (up).
//! - Nothing is started that the budget could not bring to its end.
//! - A dump within its [`Demand`] never needs more than [`worst_case`] says.

mod bank;
mod body;
mod budget;
mod config;
mod costs;
pub mod dump;
mod provision;
mod worst;

pub use bank::{Bank, BankConfig, Part};
pub use body::Body;
pub use budget::Budget;
pub use config::Config;
pub use costs::Costs;
pub use dump::{DieLoad, Dump, DumpConfig, Failures, Program, Step};
pub use provision::{Shortfall, Supply, provision};
pub use worst::{Demand, Need, worst_case};

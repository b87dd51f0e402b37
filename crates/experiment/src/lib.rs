//! Scenarios, runs, comparisons and their records.
//!
//! **What lives here**: what a run is told ([`scenario`]), how a workload meets a drive
//! ([`driver`]), what a run tells ([`RunRecord`]), what the papers claim of such runs ([`claims`]), and
//! the capacitors that they need ([`size`]). **What doesn't**: the drive, the workloads, and how results
//! are shown.

pub mod claims;
pub mod driver;
mod policies;
mod record;
mod run;
pub mod scenario;
pub mod size;

pub use policies::{Parameter, Policy, PolicyFolder, policies};
pub use record::*;
pub use run::{
    AgedDrives, Hooks, Outcome, Phase, Plan, RunError, check_inputs, check_same_inputs, run,
    run_all, validate,
};
pub use scenario::{Diagnostic, LoadError, Loaded, Scenario, Set};

//! Scenarios, runs, comparisons and their records.
//!
//! **What lives here**: what a run is told ([`scenario`]), how a workload meets a drive
//! ([`driver`]), what a run tells ([`RunRecord`]), what the papers claim of such runs ([`claims`]), and
//! the capacitors that they need ([`size`]). **What doesn't**: the drive, the workloads, and how results
//! are shown.

pub mod claims;
pub mod driver;
mod lifetime;
mod policies;
mod record;
mod run;
pub mod scenario;
pub mod size;

/// What a host can ask of a drive.
pub use leyden_device::{ActivityKind, Op as CommandOp};
pub use leyden_sim::{Bytes, Span};
pub use lifetime::Lifetime;
pub use policies::{Parameter, Policy, PolicyFolder, policies};
pub use record::*;
pub use run::{
    AgedDrives, Follow, Followed, FollowedCommand, FollowedOperation, Hooks, Levels, Outcome,
    Phase, Plan, RunError, SlowCommand, Timeline, Wanted, check_inputs, check_same_inputs, follow,
    run, run_all, validate,
};
pub use scenario::{Diagnostic, LoadError, Loaded, Scenario, Set};

//! Runs: from a scenario to its record.
//!
//! **What lives here**: how a workload meets a drive ([`driver`]), one run and many ([`run()`], [`run_all`]), and
//! the capacitors that a drive needs ([`size`]). **What doesn't**: scenarios (`leyden-config`), records
//! (`leyden-record`), the papers' claims, and how results are shown.

pub mod driver;
mod run;
pub mod size;

pub use run::{
    AgedDrives, CacheUse, DriveCache, Follow, Followed, Hooks, Outcome, Phase, Plan, RunError,
    Wanted, build_jobs, check_inputs, check_same_inputs, checksum, drive_key, follow, in_device,
    inputs, run, run_all, run_each, validate, validate_configuration,
};

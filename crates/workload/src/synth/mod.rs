//! Synthetic jobs, in the terms of fio's job files.
//!
//! **What lives here**: [`JobConfig`], what a configuration writes under `[[workload.job]]`;
//! [`Job`], the same checked against a device and ready to yield requests; the distributions.
//! **What doesn't**: time. A job states its [`Pacing`] (threads, queue depth, rates, think time,
//! barriers, when to stop); the experiment's driver keeps to it.
//!
//! **Invariants**
//! - The n-th request of a job depends on the configuration, the seed and the job's index only:
//!   not on the machine (elementary functions come from `libm`, not from the platform) and, but
//!   for `sequential` with several threads, not on the device's timing either, so two drives
//!   under comparison are asked the same things.
//! - Each purpose (operation, size, place of reads, place of writes, FUA) draws from a generator
//!   of its own, so that changing one setting does not move the others' numbers.
//! - Every request lies inside the job's region and begins at a multiple of its alignment,
//!   counted from the region's start.
//! - Nothing here needs memory in proportion to the region.

mod config;
mod distribution;
mod generate;
mod jesd219;
mod permute;
mod place;
mod size;
mod validate;
mod zipf;

#[cfg(test)]
mod tests;

pub use config::{BlockSize, FsyncOf, JobConfig, Pattern, WeightedSize};
pub use distribution::{Distribution, HotCold, Pareto, SelfSimilar, Zipf, Zone, Zones};
pub use generate::{Job, Pacing};

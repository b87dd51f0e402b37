//! The driver against a device whose every answer is known.

mod closed;
mod cuts;
mod fill;
mod measure;
mod mock;
mod open;
mod tenants;
mod verify;

use leyden_device::{SECTOR_BYTES, Stats};
use leyden_workload::synth::{Job, JobConfig};

use super::{DriveError, Measured, Options, Unchecked, run_jobs};
use mock::Mock;

const UNIT_BYTES: u64 = 4096;

fn build(config: &JobConfig) -> Job {
    config.build(3, 0, mock::CAPACITY_SECTORS).unwrap()
}

/// Sequential 4 KiB writes until `requests`.
fn writes(requests: u64) -> JobConfig {
    JobConfig { requests: Some(requests), ..JobConfig::default() }
}

fn run(mock: &mut Mock, configs: &[JobConfig], options: Options<'_>) -> Measured {
    try_run(mock, configs, options).unwrap()
}

fn try_run(
    mock: &mut Mock,
    configs: &[JobConfig],
    options: Options<'_>,
) -> Result<Measured, DriveError> {
    let jobs = configs.iter().map(build).collect();
    run_jobs(mock, jobs, &mut Unchecked, &mut Mock::stats, options)
}

/// Counters as if every completed write had programmed two pages of four units.
fn amplified(bytes_written: u64) -> Stats {
    let mut stats = Stats::default();
    stats.ftl.programs.user = 2 * (bytes_written / SECTOR_BYTES);
    stats
}

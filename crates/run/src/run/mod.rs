//! From a scenario to a run record.
//!
//! **What lives here**: building the drive, preconditioning it (or loading its snapshot), driving
//! it, looking at what power cuts would cost and making them, checking it, and filling the record; the machine's clock and memory, which the record states
//! too. **What doesn't**: pacing and measuring, which is `driver`'s; showing anything.
//!
//! **Invariants**
//! - Nothing but the scenario decides the results: not the hooks, the machine, or a snapshot of the drive.
//! - A run ends with the drive's own check of every page programmed, if asked for or small against the run.

mod aged;
mod cache;
mod check;
mod drift;
mod facts;
mod follow;
mod hint_way;
mod machine;
mod many;
mod memory;
mod outage;
pub(crate) mod power;
mod precondition;
mod recorded;
mod repeated;
mod sampled;
mod snapshot;
mod spare;
mod subject;
mod watcher;

use std::sync::atomic::{AtomicBool, Ordering};

use leyden_config::{Scenario, WorkloadConfig};
use leyden_device::{Controller, Payload};
use leyden_record::{RunRecord, SlowCommand, Timeline};
use leyden_sim::{ConfigError, Energy, Time};
use leyden_workload::synth::{Job, JobConfig};
use thiserror::Error;

use crate::driver::DriveError;
pub use aged::AgedDrives;
pub use aged::key as drive_key;
pub use cache::{CacheUse, DriveCache};
pub use facts::{check_inputs, check_same_inputs, inputs, of_file as checksum};
pub use follow::{Follow, Followed, Wanted, follow};
use follow::{Following, Window};
pub use many::{Plan, run_all, run_each};
pub(crate) use many::{Watch, each, needs_bytes};
use precondition::Past;
use precondition::Preconditioned;
use repeated::Round;
use snapshot::Found;

/// Why a run yielded nothing.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration cannot be run: `key` is the whole dotted key.
    #[error("`{key}`: {problem}")]
    Config {
        /// The offending key.
        key: String,
        /// The problem, with its remedy.
        problem: String,
    },
    /// The workload did not run to its end.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The drive refused a write while it was preconditioned.
    #[error(
        "the drive failed while it was preconditioned: {0}\n  help: lower `device.nand.faults`, or \
         raise `device.ftl.over_provisioning` or `device.nand.endurance_cycles`"
    )]
    Precondition(String),
    /// The snapshot file could not be read or written.
    #[error("the snapshot {0}")]
    Snapshot(String, #[source] std::io::Error),
    /// Leyden itself failed.
    #[error("Leyden itself failed: {0}")]
    Panicked(String),
    /// Interrupted before there was anything to keep.
    #[error("interrupted before there was anything to measure")]
    Interrupted,
}

impl RunError {
    /// Whether the workload is to blame: a trace that cannot be read or does not fit.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Drive(
                DriveError::Open(_)
                    | DriveError::Trace { .. }
                    | DriveError::BeyondEnd { .. }
                    | DriveError::NothingToReplay
            )
        )
    }

    pub(crate) fn config(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Config { key: key.into(), problem: problem.into() }
    }
}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        Self::Config { key: error.key, problem: error.problem }
    }
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The drive is being brought into the state it begins with.
    Preconditioning,
    /// The workload runs.
    Running,
}

/// How a caller watches and stops a run.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Once true, the run ends soon, with what was measured so far.
    pub cancel: Option<&'a AtomicBool>,
    /// Told what the run is doing and which share of that is done, some times a second.
    pub progress: Option<&'a mut dyn FnMut(Phase, f64)>,
    /// Told what is worth knowing and is not of the results: that a snapshot is made again, and why.
    pub note: Option<&'a mut dyn FnMut(&str)>,
    /// Preconditioned drives that this run shares with others.
    pub aged: Option<&'a AgedDrives>,
    /// Preconditioned drives of earlier commands.
    pub cache: Option<&'a DriveCache>,
}

impl Hooks<'_> {
    fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    fn note(&mut self, text: &str) {
        if let Some(note) = &mut self.note {
            note(text);
        }
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        if let Some(progress) = &mut self.progress {
            progress(phase, fraction);
        }
    }
}

/// A run's record, and whether that is all of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The measurements.
    pub record: RunRecord,
    /// The run was cancelled: the record ends there.
    pub interrupted: bool,
    /// The slowest read, write and flush.
    pub(crate) slowest: [Option<SlowCommand>; 3],
    /// The activity around the followed command, or in the followed window.
    pub(crate) timeline: Option<Timeline>,
}

/// Checks that `scenario` can be run, as far as that shows before it begins.
pub fn validate(scenario: &Scenario) -> Result<(), RunError> {
    memory::has_sizes_that_fit(scenario)?;
    memory::has_room_for(scenario)?;
    subject::validate(scenario)
}

/// Checks that there can be such a drive and such work, whatever memory this machine has.
pub fn validate_configuration(scenario: &Scenario) -> Result<(), RunError> {
    memory::has_sizes_that_fit(scenario)?;
    subject::validate(scenario)
}

/// Limits on a run, and questions to it, beyond the scenario's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds<'a> {
    /// End it after so many commands, or a few thousand more.
    pub(crate) limit: Option<u64>,
    /// Say what cuts would lose with banks that hold so little.
    pub(crate) banks: &'a [Energy],
    /// Follow what goes on in a part of it.
    pub(crate) window: Option<Window>,
}

impl Bounds<'_> {
    /// Follows the window of a run that begins at `start`; only the last run is followed.
    fn following(&self, round: Round<'_>, start: Time) -> Following {
        Following::new(start, self.window.filter(|_| round.is_last()))
    }
}

/// Runs `scenario`.
pub fn run(scenario: &Scenario, hooks: &mut Hooks<'_>) -> Result<Outcome, RunError> {
    run_within(scenario, hooks, Bounds::default())
}

/// Runs `scenario` within bounds.
pub(crate) fn run_within(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: Bounds<'_>,
) -> Result<Outcome, RunError> {
    if scenario.workload.is_empty() {
        let problem = "there is nothing to do; add a [[workload.job]] or a [workload.trace]";
        return Err(RunError::config("workload", problem));
    }
    memory::has_sizes_that_fit(scenario)?;
    memory::has_room_for(scenario)?;
    if let Some(much) = memory::much_memory(scenario) {
        hooks.note(&much);
    }
    subject::run(scenario, hooks, &bounds)
}

/// An error in the drive's configuration.
pub fn in_device(error: ConfigError) -> RunError {
    error.within("device").into()
}

/// The drive as the run begins: as another run has made it, or made here.
fn prepare<P: Payload, N: Preconditioned<P>>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<(Controller<P, N>, Past), RunError> {
    match hooks.aged {
        Some(aged) => aged.prepare(scenario, || find(scenario, hooks)),
        None => find(scenario, hooks),
    }
}

/// The drive as the run begins: as an earlier command has made it, or made here. A snapshot that the scenario names goes
/// before.
fn find<P: Payload, N: Preconditioned<P>>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<(Controller<P, N>, Past), RunError> {
    let Some(cache) = hooks.cache.filter(|_| scenario.precondition.snapshot_file.is_none()) else {
        return make(scenario, hooks);
    };
    let mut notes = Vec::new();
    let found =
        cache.prepare(scenario, || make(scenario, hooks), &mut |text| notes.push(text.to_owned()));
    for text in &notes {
        hooks.note(text);
    }
    found
}

/// The drive as the run begins: preconditioned, or from its snapshot.
fn make<P: Payload, N: Preconditioned<P>>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<(Controller<P, N>, Past), RunError> {
    let snapshot = scenario.precondition.snapshot_file.as_deref();
    if let Some(path) = snapshot {
        match snapshot::load(path, scenario)? {
            Found::Drive(drive, past) => return Ok((*drive, past)),
            Found::Other(why) => {
                hooks.note(&format!("the snapshot {} is made again: {why}", path.display()));
            }
            Found::Nothing => {}
        }
    }
    let mut drive = Controller::new(&scenario.device, scenario.seed).map_err(in_device)?;
    let past = N::precondition(&mut drive, scenario, hooks)?;
    if let Some(path) = snapshot {
        snapshot::save(path, scenario, &drive, &past)?;
    }
    Ok((drive, past))
}

/// The scenario's jobs, ready to yield requests.
pub fn build_jobs(
    workload: &WorkloadConfig,
    seed: u64,
    capacity: u64,
) -> Result<Vec<Job>, RunError> {
    each_job(workload, |job, index| job.build(seed, index, capacity))
}

/// The same jobs, as they were before the run.
fn build_past_jobs(
    workload: &WorkloadConfig,
    seed: u64,
    capacity: u64,
) -> Result<Vec<Job>, RunError> {
    each_job(workload, |job, index| job.build_past(seed, index, capacity))
}

fn each_job(
    workload: &WorkloadConfig,
    build: impl Fn(&JobConfig, usize) -> Result<Job, ConfigError>,
) -> Result<Vec<Job>, RunError> {
    let build = |(index, job): (usize, &JobConfig)| {
        build(job, index).map_err(|error| error.within(&format!("workload.job.{index}")).into())
    };
    workload.job.iter().enumerate().map(build).collect()
}

#[cfg(test)]
mod tests;

//! From a scenario to a run record.
//!
//! **What lives here**: building the drive, preconditioning it (or loading its snapshot), driving
//! it, looking at what power cuts would cost and making them, checking it, and filling the record; the machine's clock and memory, which the record states
//! too. **What doesn't**: pacing and measuring, which is [`driver`]'s; showing anything.
//!
//! **Invariants**
//! - Nothing but the scenario decides the results: not the hooks, the machine, or a snapshot of the drive.
//! - A run ends with the drive's own check of every page programmed, if asked for or small against the run.

mod aged;
mod check;
mod drift;
mod facts;
mod follow;
mod hint_way;
mod machine;
mod many;
mod outage;
pub(crate) mod power;
mod precondition;
mod recorded;
mod repeated;
mod sampled;
mod snapshot;
mod watcher;
mod zoned;
mod zoned_block;

use std::sync::atomic::{AtomicBool, Ordering};

use leyden_device::{NoData, Payload, SECTOR_BYTES, Ssd, Stamp};
use leyden_host::Powered;
use leyden_host::stack::{self, StackConfig, Visitor};
use leyden_oracle::Promise;
use leyden_sim::{ConfigError, Energy};
use leyden_workload::synth::{Job, JobConfig};
use thiserror::Error;

use crate::driver::{
    self, Content, DriveError, Measured, Options, Promises, Settler, Slow, Unchecked, Verifier,
};
pub use aged::AgedDrives;
pub use facts::{check_inputs, check_same_inputs};
pub use follow::{Follow, Followed, Wanted, follow};
use follow::{Follower, Window};
use leyden_config::{Scenario, TraceConfig, WorkloadConfig};
use leyden_record::{RunRecord, SlowCommand, Timeline};
pub use many::{Plan, run_all};
pub(crate) use many::{Watch, each, needs_bytes};
use outage::Outages;
use power::Sampler;
use precondition::Past;
use recorded::Left;
use snapshot::Found;
use watcher::Watcher;

/// Why a run yielded nothing.
#[derive(Debug, Error)]
pub enum RunError {
    /// The configuration cannot be run: `key` is the whole dotted key.
    #[error("`{key}`: {problem}")]
    Config {
        /// The offending key.
        key: String,
        /// What is wrong and what would be right.
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

/// What a run is doing.
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
    /// What was measured.
    pub record: RunRecord,
    /// The run was cancelled: the record ends there.
    pub interrupted: bool,
    /// The slowest read, write and flush.
    pub(crate) slowest: [Option<SlowCommand>; 3],
    /// What was followed.
    pub(crate) timeline: Option<Timeline>,
}

/// Checks that `scenario` can be run, as far as that shows before it begins.
pub fn validate(scenario: &Scenario) -> Result<(), RunError> {
    machine::has_sizes_that_fit(scenario)?;
    match (scenario.host.is_layered(), scenario.device.zoned.is_some()) {
        (true, _) => return zoned_block::validate(scenario),
        (false, true) => return zoned::validate(scenario),
        (false, false) => {}
    }
    machine::has_room_for(scenario)?;
    let ssd = Ssd::<NoData>::new(&scenario.device, scenario.seed).map_err(in_device)?;
    let unit_bytes = ssd.geometry().unit_bytes();
    let capacity = u64::from(ssd.mapping_units()) * u64::from(unit_bytes) / SECTOR_BYTES;
    if let Some(config) = &scenario.host.page_cache {
        config
            .check(unit_bytes, u64::from(ssd.mapping_units()))
            .map_err(|error| error.within("page_cache").within("host"))?;
    }
    if scenario.workload.trace.is_none() {
        build_jobs(&scenario.workload, scenario.seed, capacity)?;
    }
    Ok(())
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
    machine::has_sizes_that_fit(scenario)?;
    match (scenario.host.is_layered(), scenario.device.zoned.is_some()) {
        (true, _) => return zoned_block::run(scenario, hooks, &bounds),
        (false, true) => return zoned::run(scenario, hooks, &bounds),
        (false, false) => {}
    }
    if scenario.run.stamps {
        let unit_sectors = scenario.device.ftl.mapping_unit.get() / SECTOR_BYTES;
        if scenario.run.cut.is_empty() {
            let content = |capacity, _| Verifier::new(capacity, unit_sectors);
            return run_with::<Stamp, _>(scenario, hooks, bounds, content);
        }
        let content = |capacity: u64, promise| {
            Promises::new((capacity / unit_sectors) as u32, unit_sectors as u32, promise)
                .flushing_trims(scenario.device.flushes_trims())
        };
        run_with::<Stamp, _>(scenario, hooks, bounds, content)
    } else {
        run_with::<NoData, _>(scenario, hooks, bounds, |_, _| Unchecked)
    }
}

/// Prepares a drive, and runs the workload on what stands on it. `content` is told the drive's sectors
/// and what the whole stack promises.
fn run_with<P, C>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: Bounds<'_>,
    content: impl FnOnce(u64, Promise) -> C,
) -> Result<Outcome, RunError>
where
    P: Payload,
    C: Content<P>,
{
    let preparing = machine::Stopwatch::start();
    hooks.progress(Phase::Preconditioning, 0.0);
    let (ssd, mut past) = prepare::<P>(scenario, hooks)?;
    past.warnings.extend(scenario.workload.trace.iter().flat_map(TraceConfig::warnings));
    let precondition_wall_s = preparing.seconds();
    let host = &scenario.host;
    let layers = StackConfig { hints: host.channel(), page_cache: host.page_cache.as_ref() };
    let run = Run { scenario, hooks, bounds, content, precondition_wall_s, past };
    stack::build(layers, ssd, scenario.seed, |channel| channel, run)
        .map_err(|error| error.within("host"))?
}

/// What is wrong with the drive's configuration.
pub fn in_device(error: ConfigError) -> RunError {
    error.within("device").into()
}

/// A workload that a stack is ready for.
struct Run<'r, 'h, F> {
    scenario: &'r Scenario,
    hooks: &'r mut Hooks<'h>,
    bounds: Bounds<'r>,
    content: F,
    precondition_wall_s: f64,
    past: Past,
}

impl<P, C, F> Visitor<P, Ssd<P>> for Run<'_, '_, F>
where
    P: Payload,
    C: Content<P>,
    F: FnOnce(u64, Promise) -> C,
{
    type Output = Result<Outcome, RunError>;

    fn visit<S: Powered<P, Drive = Ssd<P>>>(self, mut stack: S) -> Self::Output {
        let Self { scenario, hooks, bounds, content, precondition_wall_s, past } = self;
        let Past { mut warnings, settling } = past;
        let promise = Promises::of(stack.region());
        let mut content = content(stack.capacity_sectors(), promise);
        let (last, mut repetitions) = (scenario.run.repeat.get() - 1, Vec::new());
        let (mut watcher, measured, took) = loop {
            let number = repetitions.len() as u32;
            hooks.progress(Phase::Running, 0.0);
            let sampler = Sampler::new(stack.drive(), scenario.seed, bounds.banks);
            let outages = Outages::new(stack.drive().now(), &scenario.run.cut, sampler);
            let window = bounds.window.filter(|_| number == last);
            let follower = window.map(|window| Follower::new(stack.now(), window));
            let mut watcher = Watcher::new(&stack, outages, follower);
            let clocks = machine::Clocks::start();
            let watched = (&mut watcher, bounds.limit);
            let measured = drive(&mut stack, (scenario, number), &mut content, hooks, watched)?;
            let took = clocks.stop();
            if number == last || measured.interrupted {
                break (watcher, measured, took);
            }
            let record = describe(scenario, stack.drive(), &measured, Vec::new());
            repetitions.push(repeated::repetition(&record));
        };
        if !measured.interrupted && bounds.limit.is_none() {
            warnings.extend(watcher.outages.not_made(measured.end));
        }
        let is_checked = check::is_due(scenario.run.check, stack.drive());
        if is_checked {
            stack.check();
        }

        warnings.extend(hint_way::idle(scenario, &measured));
        let mut record = describe(scenario, stack.drive(), &measured, warnings);
        record.steadiness.precondition = settling;
        if last > 0 {
            repetitions.push(repeated::repetition(&record));
            record.warnings.extend(repeated::warning(&repetitions));
            record.steadiness.repetitions = repetitions;
        }
        record.warnings.extend(drift::warning(scenario, &record));
        record.hints = watcher.hints(&stack, &measured, hint_way::name(scenario));
        record.cache = watcher.cache(&stack);
        record.sim.checked = is_checked;
        record.sim.precondition_wall_s = precondition_wall_s;
        let timeline = watcher.follower.take().map(Follower::finish);
        if let Some(config) = &scenario.device.power {
            let part = config.bank.part;
            watcher.outages.finish(&mut stack, Ssd::stats, measured.end, part, &mut record);
        }
        took.fill(&measured, &mut record);
        let slow = |slow: Slow| SlowCommand {
            arrived: slow.arrived.since(measured.run_start),
            completed: slow.completed.since(measured.run_start),
        };
        Ok(Outcome {
            record,
            interrupted: measured.interrupted,
            slowest: measured.slowest.map(|slowest| slowest.map(slow)),
            timeline,
        })
    }
}

/// A drive as a run begins, and what preparing it tells.
type Prepared<P> = (Ssd<P>, Past);

/// The drive as the run begins: as another run has made it, or made here.
fn prepare<P: Payload>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<Prepared<P>, RunError> {
    match hooks.aged {
        Some(aged) => aged.prepare(scenario, || make(scenario, hooks)),
        None => make(scenario, hooks),
    }
}

/// The drive as the run begins: preconditioned, or from its snapshot.
fn make<P: Payload>(scenario: &Scenario, hooks: &mut Hooks<'_>) -> Result<Prepared<P>, RunError> {
    let snapshot = scenario.precondition.snapshot_file.as_deref();
    if let Some(path) = snapshot {
        match snapshot::load(path, scenario)? {
            Found::Drive(prepared) => return Ok(*prepared),
            Found::Other(why) => {
                hooks.note(&format!("the snapshot {} is made again: {why}", path.display()));
            }
            Found::Nothing => {}
        }
    }
    machine::has_room_for(scenario)?;
    if let Some(much) = machine::much_memory(scenario) {
        hooks.note(&much);
    }
    let mut ssd = Ssd::<P>::new(&scenario.device, scenario.seed).map_err(in_device)?;
    let past = precondition::precondition(&mut ssd, scenario, hooks)?;
    if let Some(path) = snapshot {
        snapshot::save(path, scenario, &ssd, &past)?;
    }
    Ok((ssd, past))
}

fn drive<P: Payload, C: Content<P>, S: Powered<P, Drive = Ssd<P>>>(
    stack: &mut S,
    (scenario, number): (&Scenario, u32),
    content: &mut C,
    hooks: &mut Hooks<'_>,
    (watcher, limit): (&mut Watcher<'_>, Option<u64>),
) -> Result<Measured, RunError> {
    let cancel = hooks.cancel;
    let mut progress = |fraction| hooks.progress(Phase::Running, fraction);
    let options = Options {
        start: stack.now(),
        ramp: scenario.run.ramp,
        settler: scenario.run.ramp.settle.map(|tolerance| {
            Settler::new(stack.drive(), tolerance, scenario.precondition.max_passes)
        }),
        cancel,
        limit,
        progress: Some(&mut progress),
        expected_requests: None,
        direct: scenario.workload.trace.as_ref().is_some_and(TraceConfig::is_direct),
    };
    if let Some(trace) = &scenario.workload.trace {
        let replay = trace.replay();
        let measured = driver::replay(
            stack,
            || trace.open_naming(&replay.classes),
            &replay,
            content,
            watcher,
            options,
        )?;
        return Ok(measured);
    }
    let seed = repeated::seed_of(scenario, number);
    let jobs = build_jobs(&scenario.workload, seed, stack.capacity_sectors())?;
    Ok(driver::run_jobs(stack, jobs, content, watcher, options)?)
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

/// Everything of the record but the machine's part.
fn describe<P: Payload>(
    scenario: &Scenario,
    ssd: &Ssd<P>,
    measured: &Measured,
    warnings: Vec<String>,
) -> RunRecord {
    let is_cached = scenario.host.page_cache.is_some();
    let left = Left { is_cached, ..Left::drive(ssd, ssd.wear()) };
    let mut record = recorded::begin(scenario, left, measured, warnings);
    record.drive = Some(facts::drive(ssd));
    scenario.device.ftl.gc.victim.name().clone_into(&mut record.gc.policy);
    record
}

#[cfg(test)]
mod tests;

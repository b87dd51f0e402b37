//! Brings the drive into the state that a run begins with.
//!
//! What preconditioning writes carries the content "never written": a verified run knows of no
//! older writes, and reads of preconditioned addresses return that.

use leyden_device::{
    BlockDevice, Command, Completion, Lba, Op, Payload, SECTOR_BYTES, Ssd, Stats, Status,
};
use leyden_sim::{Ratio, Rng};
use leyden_workload::synth::Job;

use super::{Hooks, Phase, RunError, build_past_jobs, sampled};
use crate::driver::{self, Options, Pace, Replay, Unchecked};
use crate::scenario::{Distribution, PreconditionKind, Scenario, TraceConfig};

/// Commands kept outstanding.
const DEPTH: u32 = 32;
/// Bytes of each write of a sequential fill: large, for speed.
const FILL_BYTES: u64 = 256 << 10;
/// Writes between two looks at the drive's counters.
const BATCH: u32 = 4096;
/// A chunk has at least so many unit writes: fewer are too noisy to compare.
const MIN_CHUNK_UNITS: u64 = 1 << 16;
/// Settled is not before more chunks than this.
const MIN_CHUNKS: usize = 8;
/// Requests in a row that may write nothing before a workload counts as one that never writes.
const PATIENCE: u64 = 1 << 22;

/// Preconditions `ssd` as the scenario says; yields warnings.
pub(super) fn precondition<P: Payload>(
    ssd: &mut Ssd<P>,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<Vec<String>, RunError> {
    let mut warnings = Vec::new();
    if scenario.precondition.kind == PreconditionKind::None {
        return Ok(warnings);
    }
    if scenario.precondition.kind == PreconditionKind::Sampled {
        sampled::draw(ssd, scenario)?;
    }
    ssd.set_untimed(true);
    let mut feeder = Feeder::new(ssd);
    match scenario.precondition.kind {
        PreconditionKind::Sampled => come_into_step(&mut feeder, scenario, hooks)?,
        _ => fill(&mut feeder, hooks)?,
    }
    if scenario.precondition.kind == PreconditionKind::Steady {
        let settled = settle(&mut feeder, scenario, hooks)?;
        if !settled {
            warnings.push(format!(
                "preconditioning stopped after {} times the capacity, before the write \
                 amplification had settled within {}",
                scenario.precondition.max_passes, scenario.precondition.tolerance
            ));
        }
    }
    feeder.drain()?;
    ssd.set_untimed(false);
    Ok(warnings)
}

/// Writes every address once, in order.
fn fill<P: Payload>(feeder: &mut Feeder<'_, P>, hooks: &mut Hooks<'_>) -> Result<(), RunError> {
    let capacity = feeder.ssd.capacity_sectors();
    let step = FILL_BYTES / SECTOR_BYTES;
    let mut writes: u32 = 0;
    let mut lba = 0;
    while lba < capacity {
        let sectors = step.min(capacity - lba);
        feeder.submit(Op::Write, lba, sectors as u32)?;
        lba += sectors;
        writes += 1;
        if writes.is_multiple_of(BATCH) {
            check_in(hooks, 0.3 * lba as f64 / capacity as f64)?;
        }
    }
    feeder.drain()
}

/// Overwrites until the write amplification settles; false if it did not within the limit.
fn settle<P: Payload>(
    feeder: &mut Feeder<'_, P>,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<bool, RunError> {
    let mut steadiness = Steadiness::new(feeder.ssd, scenario.precondition.tolerance);
    let pass = u64::from(feeder.ssd.mapping_units()).max(MIN_CHUNK_UNITS);
    let limit = u64::from(scenario.precondition.max_passes) * pass;
    let mut source = Source::new(feeder.ssd, scenario)?;
    while steadiness.written() < limit {
        source.batch(feeder, hooks)?;
        if steadiness.look(&feeder.ssd.stats()) {
            return Ok(true);
        }
        check_in(hooks, steadiness.progress())?;
    }
    Ok(false)
}

/// Overwrites as much as is to follow a state that was drawn.
fn come_into_step<P: Payload>(
    feeder: &mut Feeder<'_, P>,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<(), RunError> {
    let units = scenario.precondition.settle.of(u64::from(feeder.ssd.mapping_units()));
    let mut source = Source::new(feeder.ssd, scenario)?;
    let mut written = 0;
    while written < units {
        source.batch(feeder, hooks)?;
        written += u64::from(BATCH);
        check_in(hooks, 0.5 + 0.5 * written as f64 / units as f64)?;
    }
    Ok(())
}

fn check_in(hooks: &mut Hooks<'_>, fraction: f64) -> Result<(), RunError> {
    hooks.progress(Phase::Preconditioning, fraction);
    if hooks.cancelled() {
        return Err(RunError::Interrupted);
    }
    Ok(())
}

/// Keeps a bounded number of commands outstanding.
struct Feeder<'a, P: Payload> {
    ssd: &'a mut Ssd<P>,
    done: Vec<Completion<P>>,
    outstanding: u32,
}

impl<'a, P: Payload> Feeder<'a, P> {
    fn new(ssd: &'a mut Ssd<P>) -> Self {
        Self { ssd, done: Vec::new(), outstanding: 0 }
    }

    fn submit(&mut self, op: Op, lba: u64, sectors: u32) -> Result<(), RunError> {
        while self.outstanding >= DEPTH {
            self.step()?;
        }
        self.outstanding += 1;
        let now = self.ssd.now();
        self.ssd.submit(now, Command::new(op, Lba(lba), sectors, P::WriteData::default()));
        Ok(())
    }

    /// Lets the next thing happen.
    fn step(&mut self) -> Result<(), RunError> {
        let Some(time) = self.ssd.next_event() else {
            let stuck = "commands are outstanding and nothing is under way".to_owned();
            return Err(RunError::Precondition(stuck));
        };
        self.ssd.advance(time, &mut self.done);
        for completion in self.done.drain(..) {
            self.outstanding -= 1;
            if completion.status != Status::Success {
                let problem = format!("a {:?} ended with {:?}", completion.op, completion.status);
                return Err(RunError::Precondition(problem));
            }
        }
        Ok(())
    }

    /// Lets everything under way end, the drive's own work included.
    fn drain(&mut self) -> Result<(), RunError> {
        while self.ssd.next_event().is_some() {
            self.step()?;
        }
        Ok(())
    }
}

/// Where overwrites go.
enum Source<'a> {
    Uniform {
        rng: Rng,
        units: u64,
        unit_sectors: u32,
    },
    /// `idle` counts the requests since one that wrote.
    Jobs {
        jobs: Vec<Job>,
        turn: usize,
        idle: u64,
    },
    Trace(&'a TraceConfig),
}

impl<'a> Source<'a> {
    fn new<P: Payload>(ssd: &Ssd<P>, scenario: &'a Scenario) -> Result<Self, RunError> {
        if scenario.precondition.distribution == Distribution::Uniform {
            return Ok(Self::Uniform {
                rng: Rng::new(scenario.seed, "precondition"),
                units: u64::from(ssd.mapping_units()),
                unit_sectors: ssd.geometry().unit_bytes() / SECTOR_BYTES as u32,
            });
        }
        if let Some(trace) = &scenario.workload.trace {
            return Ok(Self::Trace(trace));
        }
        let capacity = ssd.capacity_sectors();
        let jobs = build_past_jobs(&scenario.workload, scenario.seed, capacity)?;
        Ok(Self::Jobs { jobs, turn: 0, idle: 0 })
    }

    /// Some more writes: a few thousand, or one pass over the trace.
    fn batch<P: Payload>(
        &mut self,
        feeder: &mut Feeder<'_, P>,
        hooks: &Hooks<'_>,
    ) -> Result<(), RunError> {
        match self {
            Self::Uniform { rng, units, unit_sectors } => {
                for _ in 0..BATCH {
                    let unit = rng.below(*units);
                    feeder.submit(Op::Write, unit * u64::from(*unit_sectors), *unit_sectors)?;
                }
                Ok(())
            }
            Self::Jobs { jobs, turn, idle } => {
                for _ in 0..BATCH {
                    let request = next_change(jobs, turn, idle)?;
                    feeder.submit(request.op, request.lba.0, request.sectors)?;
                }
                Ok(())
            }
            Self::Trace(trace) => replay(trace, feeder, hooks),
        }
    }
}

/// The jobs' next request that changes anything; jobs and threads take turns.
fn next_change(
    jobs: &mut [Job],
    turn: &mut usize,
    idle: &mut u64,
) -> Result<leyden_workload::Request, RunError> {
    loop {
        *turn += 1;
        let (job, round) = (*turn % jobs.len(), *turn / jobs.len());
        let threads = jobs[job].pacing().threads;
        let request = jobs[job].next_request((round % threads as usize) as u32);
        *idle = if request.op == Op::Write { 0 } else { *idle + 1 };
        if *idle == PATIENCE {
            return Err(never_writes());
        }
        if !matches!(request.op, Op::Read | Op::Flush) {
            return Ok(request);
        }
    }
}

fn never_writes() -> RunError {
    let problem = "the workload writes nothing that could be repeated; use \"uniform\"";
    RunError::config("precondition.distribution", problem)
}

/// One pass over the trace.
fn replay<P: Payload>(
    trace: &TraceConfig,
    feeder: &mut Feeder<'_, P>,
    hooks: &Hooks<'_>,
) -> Result<(), RunError> {
    feeder.drain()?;
    let replay = Replay { pace: Pace::QueueDepth(DEPTH), loops: 1, ..trace.replay() };
    let options = Options { start: feeder.ssd.now(), cancel: hooks.cancel, ..Options::default() };
    let stats = &mut |ssd: &Ssd<P>| ssd.stats();
    let ssd = &mut *feeder.ssd;
    let measured = driver::replay(
        ssd,
        || trace.open_without_hints(),
        &replay,
        &mut Unchecked,
        stats,
        options,
    )?;
    if measured.interrupted {
        return Err(RunError::Interrupted);
    }
    if measured.traffic.bytes_written == 0 {
        return Err(never_writes());
    }
    Ok(())
}

/// Watches the write amplification of successive chunks.
struct Steadiness {
    tolerance: Ratio,
    chunk_erases: u64,
    chunk_units: u64,
    units_per_page: u64,
    first: u64,
    begin: Counts,
    now: Counts,
    wafs: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Counts {
    erases: u64,
    programs: u64,
    written: u64,
}

impl Counts {
    fn of(stats: &Stats) -> Self {
        Self {
            erases: stats.ftl.erases,
            programs: stats.ftl.programs.total(),
            written: stats.ssd.units_written,
        }
    }
}

impl Steadiness {
    fn new<P: Payload>(ssd: &Ssd<P>, tolerance: Ratio) -> Self {
        let geometry = ssd.geometry();
        let counts = Counts::of(&ssd.stats());
        Self {
            tolerance,
            chunk_erases: u64::from(geometry.blocks()).div_ceil(4),
            chunk_units: u64::from(ssd.mapping_units()),
            units_per_page: u64::from(geometry.units_per_page()),
            first: counts.written,
            begin: counts,
            now: counts,
            wafs: Vec::new(),
        }
    }

    /// Units written since the watch began.
    fn written(&self) -> u64 {
        self.now.written - self.first
    }

    /// Takes a look; true once settled.
    fn look(&mut self, stats: &Stats) -> bool {
        self.now = Counts::of(stats);
        let written = self.now.written - self.begin.written;
        let erased = self.now.erases - self.begin.erases;
        if written < MIN_CHUNK_UNITS || erased < self.chunk_erases && written < self.chunk_units {
            return false;
        }
        let programmed = (self.now.programs - self.begin.programs) * self.units_per_page;
        self.wafs.push(programmed as f64 / written as f64);
        self.begin = self.now;
        settled(&self.wafs, self.tolerance)
    }

    /// A guess: settling takes some turns of the drive, and nobody knows how many.
    fn progress(&self) -> f64 {
        let chunks = self.wafs.len() as f64;
        0.3 + 0.7 * chunks / (chunks + 8.0)
    }
}

/// True if the last quarter of the chunks agrees with the quarter before, and did so one chunk ago
/// too. Quarters, because chunks of skewed work differ by ten percent and more among themselves, and
/// because what came first, the transition itself, is left out in proportion.
fn settled(wafs: &[f64], tolerance: Ratio) -> bool {
    let agree = |wafs: &[f64]| {
        let quarter = wafs.len() / 4;
        let (earlier, last) = wafs.split_at(wafs.len() - quarter);
        let before = &earlier[earlier.len() - quarter..];
        let mean = |wafs: &[f64]| wafs.iter().sum::<f64>() / wafs.len() as f64;
        (mean(last) - mean(before)).abs() <= tolerance.as_f64() * mean(last)
    };
    wafs.len() > MIN_CHUNKS && agree(wafs) && agree(&wafs[..wafs.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_means_that_two_quarters_agree_twice() {
        let percent = Ratio::from_percent(1);
        assert!(!settled(&[2.0; 8], percent), "too few");
        assert!(settled(&[2.0; 9], percent));
        let noisy: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 1.9 } else { 2.1 }).collect();
        let end = (9..40).find(|&end| settled(&noisy[..end], percent));
        assert!(end.is_some(), "noise alone does not count");
        let drifting: Vec<f64> = (0..40).map(|n| 2.0 + 0.01 * f64::from(n)).collect();
        assert!(!settled(&drifting, percent), "a drift is not settled");
        let mut late = vec![3.0; 4];
        late.extend([2.0; 12]);
        assert!(settled(&late, percent), "what came first is left out");
    }
}

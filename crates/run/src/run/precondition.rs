//! Brings the drive into the state that a run begins with.
//!
//! Preconditioning writes carry the content "never written": a verified run knows of no older
//! writes, and reads of preconditioned addresses return that.

use leyden_device::{
    BlockDevice, Command, Completion, Controller, Conventional, Lba, Namespace, Op, Payload,
    SECTOR_BYTES, Ssd, Status, ZnsSsd, ZoneAction, Zoned,
};
use leyden_host::Powered;
use leyden_sim::Rng;
use leyden_workload::synth::Job;

use super::{Hooks, Phase, RunError, build_past_jobs, sampled};
use crate::driver::{self, Options, Pace, Replay, Settler, Unchecked};
use leyden_config::{Distribution, PreconditionKind, Rest, Scenario, TraceConfig};
use leyden_record::Settling;

/// Commands kept outstanding.
const DEPTH: u32 = 32;
/// Bytes of each write of a sequential fill: large, for speed.
const FILL_BYTES: u64 = 256 << 10;
/// Writes between two looks at the drive's counters.
const BATCH: u32 = 4096;
/// Requests in a row that may write nothing before a workload counts as one that never writes.
const PATIENCE: u64 = 1 << 22;
/// Reads of a trace for each mapping unit that it writes: beyond this it hardly ages a drive.
const MOST_READS: u64 = 1_000;

/// The results of preconditioning beside the drive's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Past {
    pub(super) warnings: Vec<String>,
    /// How write amplification settled, if it was waited for.
    pub(super) settling: Option<Settling>,
}

/// A kind of drive that can be brought into the state that a run begins with.
pub(super) trait Preconditioned<P: Payload>: Namespace<P> {
    /// Preconditions `drive`, which is new, as the scenario says.
    fn precondition(
        drive: &mut Controller<P, Self>,
        scenario: &Scenario,
        hooks: &mut Hooks<'_>,
    ) -> Result<Past, RunError>;
}

impl<P: Payload> Preconditioned<P> for Conventional<P> {
    fn precondition(
        ssd: &mut Ssd<P>,
        scenario: &Scenario,
        hooks: &mut Hooks<'_>,
    ) -> Result<Past, RunError> {
        let mut past = Past::default();
        if scenario.precondition.kind == PreconditionKind::None {
            return Ok(past);
        }
        if scenario.precondition.kind == PreconditionKind::Sampled {
            sampled::draw(ssd, scenario)?;
        }
        ssd.set_untimed(true);
        let mut feeder = Feeder::new(ssd);
        match scenario.precondition.kind {
            PreconditionKind::Sampled => come_into_step(&mut feeder, scenario, hooks)?,
            _ if scenario.precondition.rest == Rest::Unwritten => {}
            _ => fill(&mut feeder, hooks)?,
        }
        if scenario.precondition.kind == PreconditionKind::Steady {
            let settling = settle(&mut feeder, scenario, hooks)?;
            if !settling.settled {
                past.warnings.push(format!(
                    "preconditioning stopped after {:.1} times the capacity, before the write \
                     amplification had settled within {}",
                    settling.passes, scenario.precondition.tolerance
                ));
            }
            past.settling = Some(settling);
        }
        feeder.drain()?;
        ssd.set_untimed(false);
        Ok(past)
    }
}

impl<P: Payload> Preconditioned<P> for Zoned<P> {
    /// Writes every zone of `drive` full, in order, and resets it, if the scenario has it filled: each block of theirs has been
    /// programmed and erased once, and no zone is written.
    fn precondition(
        drive: &mut ZnsSsd<P>,
        scenario: &Scenario,
        hooks: &mut Hooks<'_>,
    ) -> Result<Past, RunError> {
        if scenario.precondition.kind == PreconditionKind::None {
            return Ok(Past::default());
        }
        drive.set_untimed(true);
        let zones = drive.all_zones();
        let mut feeder = Feeder::new(drive);
        for (number, zone) in zones.iter().enumerate() {
            let (mut lba, end) = (zone.start.0, zone.start.0 + zone.capacity);
            while lba < end {
                let sectors = (FILL_BYTES / SECTOR_BYTES).min(end - lba);
                feeder.submit(Op::Write, lba, sectors as u32)?;
                lba += sectors;
            }
            check_in(hooks, number as f64 / zones.len() as f64)?;
        }
        feeder.drain()?;
        for zone in &zones {
            feeder.submit(Op::Zone(ZoneAction::Reset), zone.start.0, 0)?;
        }
        feeder.drain()?;
        drive.set_untimed(false);
        Ok(Past::default())
    }
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

/// Overwrites until the write amplification settles, or has not within the limit.
fn settle<P: Payload>(
    feeder: &mut Feeder<'_, P>,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<Settling, RunError> {
    let (tolerance, most) = (scenario.precondition.tolerance, scenario.precondition.max_passes);
    let mut settler = Settler::new(feeder.ssd, tolerance, most);
    let mut source = Source::new(feeder.ssd, scenario)?;
    loop {
        source.batch(feeder, hooks)?;
        if settler.look(&feeder.ssd.stats()) {
            return Ok(settler.outcome());
        }
        check_in(hooks, settler.progress())?;
    }
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
struct Feeder<'a, P: Payload, D = Ssd<P>> {
    ssd: &'a mut D,
    done: Vec<Completion<P>>,
    outstanding: u32,
}

impl<'a, P: Payload, D: Powered<P>> Feeder<'a, P, D> {
    fn new(ssd: &'a mut D) -> Self {
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
    let traffic = &measured.traffic;
    if traffic.bytes_written == 0 {
        return Err(never_writes());
    }
    let units = traffic.bytes_written.div_ceil(u64::from(feeder.ssd.geometry().unit_bytes()));
    if traffic.reads.count() > MOST_READS * units {
        let problem = format!(
            "a pass over the trace writes {units} mapping units between {} reads, too few to age a drive; use \"uniform\"",
            traffic.reads.count()
        );
        return Err(RunError::config("precondition.distribution", problem));
    }
    Ok(())
}

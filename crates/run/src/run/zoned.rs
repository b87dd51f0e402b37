//! A run on a zoned drive.

use leyden_buffer::Region;
use leyden_device::{NoData, Payload, SECTOR_BYTES, Stamp, Stats, ZnsSsd, ZoneId, ZoneState};
use leyden_sim::{Span, Time};
use std::path::Path;
use std::sync::Arc;

use leyden_workload::zoned::{
    FileTrace, Host, LOG, Lsm, LsmFigures, Recorded, Streams, ZoneLayout, ZoneLeft,
};

use super::outage::Outages;
use super::power::Sampler;
use super::recorded::{self, Left};
use super::{Bounds, Hooks, Outcome, Phase, RunError, in_device, machine};
use crate::driver::{
    self, Content, DriveError, Measured, OnZones, Options, Outage, Replay, Unchecked, Watch,
    ZonePromise, ZonePromises, ZoneProtection,
};
use leyden_config::{Scenario, TraceConfig, TraceSource};
use leyden_record::{FlushWaits, RunRecord, Store, Tenant, ZoneMoment, Zones};

/// The most moments that a record keeps of the zones.
const MOST_MOMENTS: usize = 256;

/// Watches a zoned drive: what a power cut would cost, and how full its pools are. It makes the cuts that are
/// listed, or the one that ends the run.
struct ZonedWatch<'a> {
    outages: Outages<'a>,
    start: Time,
    next: Time,
    every: Span,
    moments: Vec<ZoneMoment>,
}

impl<'a> ZonedWatch<'a> {
    fn new<P: Payload>(drive: &ZnsSsd<P>, scenario: &'a Scenario, bounds: &Bounds<'_>) -> Self {
        let sampler = Sampler::new(drive, scenario.seed, bounds.banks);
        let (start, every) = (drive.now(), Span::from_ms(1));
        let outages = Outages::new(start, &scenario.run.cut, sampler);
        Self { outages, start, next: start + every, every, moments: Vec::new() }
    }

    fn take<P: Payload>(&mut self, now: Time, drive: &ZnsSsd<P>) {
        let states = drive.zones_in_state();
        let count = |is: fn(ZoneState) -> bool| {
            let zones = ZoneState::ALL.into_iter().zip(states);
            zones.filter(|&(state, _)| is(state)).map(|(_, count)| count).sum()
        };
        let fill = drive.pool_fill();
        let unit = u64::from(drive.geometry().unit_bytes());
        self.moments.push(ZoneMoment {
            at_s: now.since(self.start).as_secs_f64(),
            open: count(ZoneState::is_open),
            active: count(ZoneState::is_active),
            full: count(|state| state == ZoneState::Full),
            failed: count(|state| matches!(state, ZoneState::ReadOnly | ZoneState::Offline)),
            protected_bytes: u64::from(fill.protected) * unit,
            plain_bytes: u64::from(fill.plain) * unit,
        });
        if self.moments.len() == MOST_MOMENTS {
            // How long the run will be is not known: every other one stays.
            let mut number = 0;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.every = self.every.saturating_mul(2);
        }
        self.next = now + self.every;
    }
}

impl<P: Payload> Watch<P, ZnsSsd<P>> for ZonedWatch<'_> {
    fn stats(&self, drive: &ZnsSsd<P>) -> Stats {
        drive.stats()
    }

    fn next_moment(&self) -> Time {
        self.next.min(self.outages.next_moment())
    }

    fn look(&mut self, now: Time, drive: &ZnsSsd<P>) {
        if now >= self.outages.next_moment() {
            self.outages.look(drive);
        }
        if now >= self.next {
            self.take(now, drive);
        }
    }

    fn next_cut(&self) -> Time {
        self.outages.next_cut()
    }

    fn cut(&mut self, now: Time, drive: &mut ZnsSsd<P>, outstanding: u64) -> Outage<P> {
        let left = |drive: &ZnsSsd<P>| (drive.whole(), zones_left(drive));
        self.outages.cut(now, drive, outstanding, left)
    }

    fn found_lost(&mut self, units: u64) {
        self.outages.found_lost(units);
    }
}

/// The zones, as a host finds them after a power cut.
fn zones_left<P: Payload>(drive: &ZnsSsd<P>) -> Vec<ZoneLeft> {
    let zones = (0..).map(ZoneId).zip(drive.all_zones());
    zones
        .map(|(zone, descriptor)| ZoneLeft { descriptor, held: drive.held_sectors(zone) })
        .collect()
}

/// What the host does.
enum Work<'s> {
    Streams(Streams),
    Lsm(Box<Lsm>),
    Recorded(Box<Recorded>),
    Trace(&'s TraceConfig),
}

impl<'s> Work<'s> {
    fn new(scenario: &'s Scenario, layout: ZoneLayout, start: Time) -> Result<Self, RunError> {
        let (config, seed) = (&scenario.workload, scenario.seed);
        if let Some(recorded) = &config.recorded {
            let wrong = |error: String| RunError::config("workload.recorded.path", error);
            let source = TraceSource::called(Path::new(&recorded.path));
            let named = |error: String| wrong(format!("{}: {error}", recorded.path));
            let bytes = source.bytes().map_err(|error| named(error.to_string()))?;
            let trace = FileTrace::read(&bytes[..]).map_err(|error| named(error.to_string()))?;
            if recorded.skip >= trace.puts() {
                let problem =
                    format!("{} puts or more: the recording has {}", recorded.skip, trace.puts());
                return Err(RunError::config("workload.recorded.skip", problem));
            }
            let has_region = scenario.device.buffer.region != Region::None;
            let store = Recorded::new(recorded, Arc::new(trace), layout, has_region, start);
            return Ok(Self::Recorded(Box::new(store)));
        }
        if let Some(lsm) = &config.lsm {
            lsm.check(&layout).map_err(|error| error.within("workload.lsm"))?;
            return Ok(Self::Lsm(Box::new(Lsm::new(lsm, layout, start, seed))));
        }
        if let Some(trace) = &config.trace {
            return Ok(Self::Trace(trace));
        }
        if config.zone_job.is_empty() {
            let problem = "this drive has zones: add a [[workload.zone_job]], a [workload.lsm], a \
                           [workload.recorded], or a [workload.trace] of a zoned drive";
            return Err(RunError::config("workload", problem));
        }
        let mut left = layout.zones;
        for (number, job) in config.zone_job.iter().enumerate() {
            let place = format!("workload.zone_job.{number}");
            job.check(&layout, left).map_err(|error| error.within(&place))?;
            left -= job.zones;
        }
        Ok(Self::Streams(Streams::new(&config.zone_job, layout)))
    }

    /// What to say if a recording was not replayed to its end.
    fn left(&self) -> Option<String> {
        let Self::Recorded(recorded) = self else { return None };
        let left = recorded.left();
        (left > 0).then(|| {
            format!(
                "{left} puts of the recording were not made: the drive has no zone free, or its power was cut; give \
                 it more zones, or fewer workload.recorded.puts"
            )
        })
    }

    /// Does it on `drive`, which offers `protection`.
    fn run<P: Payload, C: Content<P>>(
        &mut self,
        drive: &mut ZnsSsd<P>,
        protection: ZoneProtection,
        content: &mut C,
        watch: &mut ZonedWatch<'_>,
        options: Options<'_>,
    ) -> Result<Measured, DriveError> {
        let host: &mut dyn Host = match self {
            Self::Streams(streams) => streams,
            Self::Lsm(lsm) => lsm.as_mut(),
            Self::Recorded(recorded) => recorded.as_mut(),
            Self::Trace(trace) => {
                let zone_sectors = layout(drive).size;
                let zones = Some(OnZones { zone_sectors, protection });
                let replay = Replay { zones, ..trace.replay() };
                return driver::replay(
                    drive,
                    || trace.open_naming(&replay.classes),
                    &replay,
                    content,
                    watch,
                    options,
                );
            }
        };
        driver::run_host(drive, host, protection, content, watch, options)
    }
}

fn layout<P: Payload>(drive: &ZnsSsd<P>) -> ZoneLayout {
    let shape = drive.zone_shape();
    let block = u64::from(drive.geometry().unit_bytes()) / SECTOR_BYTES;
    ZoneLayout {
        zones: shape.zones,
        size: u64::from(shape.size) * block,
        capacity: u64::from(shape.capacity) * block,
        block,
        area: u64::from(shape.zrwa_size) * block,
        area_step: u64::from(shape.zrwa_granularity) * block,
    }
}

/// Checks that `scenario` can be run.
pub(super) fn validate(scenario: &Scenario) -> Result<(), RunError> {
    let drive = ZnsSsd::<NoData>::new(&scenario.device, scenario.seed).map_err(in_device)?;
    Work::new(scenario, layout(&drive), drive.now())?;
    let refused = [
        (!scenario.host.is_bare(), "host", "the page cache and hints are for conventional drives"),
        (
            scenario.precondition != leyden_config::PreconditionConfig::default(),
            "precondition",
            "a zoned drive begins empty: let a job write it",
        ),
    ];
    match refused.into_iter().find(|&(is_refused, ..)| is_refused) {
        Some((_, key, problem)) => Err(RunError::config(key, format!("{problem}; leave it out"))),
        None => Ok(()),
    }
}

/// Runs `scenario`, whose drive is zoned.
pub(super) fn run(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    validate(scenario)?;
    if scenario.run.stamps {
        let device = &scenario.device;
        let promise = ZonePromise {
            keeps_all: device.buffer.region == Region::Full,
            keeps_flagged: device.buffer.region != Region::None,
            may_forget: device.power.as_ref().is_some_and(|power| power.allow_underprovisioned),
        };
        run_with::<Stamp, _>(scenario, hooks, bounds, |layout| ZonePromises::new(layout, promise))
    } else {
        run_with::<NoData, _>(scenario, hooks, bounds, |_| Unchecked)
    }
}

/// Runs it with drives that store `P`, and with the check of it that `content` makes for its zones.
pub(super) fn run_with<P: Payload, C: Content<P>>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
    content: impl FnOnce(ZoneLayout) -> C,
) -> Result<Outcome, RunError> {
    let mut drive = ZnsSsd::<P>::new(&scenario.device, scenario.seed).map_err(in_device)?;
    let start = drive.now();
    let mut work = Work::new(scenario, layout(&drive), start)?;
    let mut content = content(layout(&drive));
    let mut watch = ZonedWatch::new(&drive, scenario, bounds);
    hooks.progress(Phase::Running, 0.0);
    let clocks = machine::Clocks::start();
    let cancel = hooks.cancel;
    let mut progress = |fraction| hooks.progress(Phase::Running, fraction);
    let options = Options {
        start,
        ramp: scenario.run.ramp,
        settler: None,
        cancel,
        limit: bounds.limit,
        progress: Some(&mut progress),
        expected_requests: None,
        direct: false,
    };
    let protection = ZoneProtection {
        has_region: scenario.device.buffer.region != Region::None,
        has_areas: layout(&drive).area > 0,
    };
    let measured = work.run(&mut drive, protection, &mut content, &mut watch, options)?;
    let took = clocks.stop();
    drive.check();

    let left = Left::drive(&drive, drive.wear());
    let mut record = recorded::begin(scenario, left, &measured, Vec::new());
    record.sim.checked = true;
    record.warnings.extend(scenario.workload.trace.iter().flat_map(TraceConfig::warnings));
    record.warnings.extend(refused_of_trace(scenario, &record));
    record.warnings.extend(work.left().filter(|_| !measured.interrupted));
    if !measured.interrupted && bounds.limit.is_none() {
        record.warnings.extend(watch.outages.not_made(measured.end));
    }
    record.zones = Some(zones(&drive, &watch, &work, (scenario, &record.host.tenants)));
    if let Some(config) = &scenario.device.power {
        let (part, outages) = (config.bank.part, watch.outages);
        outages.finish(&mut drive, ZnsSsd::stats, measured.end, part, &mut record);
    }
    took.fill(&measured, &mut record);
    // Commands of zoned drives are not followed.
    let (slowest, timeline) = ([None; 3], None);
    Ok(Outcome { record, interrupted: measured.interrupted, slowest, timeline })
}

/// What to say if the drive did not do what a trace asked for.
fn refused_of_trace(scenario: &Scenario, record: &RunRecord) -> Option<String> {
    let refused = record.host.errors;
    let zone_size = scenario.device.zoned.as_ref()?.zone_size;
    (scenario.workload.trace.is_some() && refused > 0).then(|| {
        format!(
            "{refused} commands of the trace were refused: give device.zoned.zone_size (now {zone_size}) and \
             zone_capacity what the traced drive had, and a trace that begins with empty zones"
        )
    })
}

fn zones<P: Payload>(
    drive: &ZnsSsd<P>,
    watch: &ZonedWatch<'_>,
    work: &Work<'_>,
    (scenario, tenants): (&Scenario, &[Tenant]),
) -> Zones {
    let (stats, shape) = (drive.zoned_stats(), drive.zone_shape());
    let unit = u64::from(drive.geometry().unit_bytes());
    let all = drive.all_zones();
    let count = |state: ZoneState| {
        let zones = all.iter().filter(|zone| zone.state == state).count() as u64;
        (state.name().to_owned(), zones)
    };
    let written = |zone: &leyden_device::ZoneDescriptor| match (zone.state, zone.write_pointer) {
        (ZoneState::Full, _) => 1_000,
        (_, Some(wp)) => ((wp.0 - zone.start.0) * 1_000 / zone.capacity) as u32,
        _ => 0,
    };
    let store = store(watch.start, drive.now(), work, scenario, tenants);
    Zones {
        zones: u64::from(shape.zones),
        capacity_bytes: u64::from(shape.capacity) * unit,
        states: ZoneState::ALL.into_iter().map(count).collect(),
        state_codes: all.iter().map(|zone| zone.state.code()).collect(),
        written_per_mille: all.iter().map(written).collect(),
        appends: stats.appends,
        resets: stats.resets,
        finishes: stats.finishes,
        implicit_closes: stats.implicit_closes,
        protected_peak_bytes: stats.protected_peak.get() * unit,
        plain_peak_bytes: stats.plain_peak.get() * unit,
        discarded_protected_bytes: stats.discarded_protected_units * unit,
        discarded_plain_bytes: stats.discarded_plain_units * unit,
        promoted_bytes: stats.promoted_units * unit,
        flushes_past_protected: stats.flushes_past_protected,
        flush_waits: FlushWaits {
            flushes: stats.flushes_waited,
            bytes: stats.flush_waited_units * unit,
            bytes_peak: stats.flush_waited_peak.get() * unit,
            zones: stats.flush_waited_zones,
            passed_bytes: stats.flush_passed_units * unit,
        },
        moments: watch.moments.clone(),
        store,
    }
}

/// What the key-value store has done, if there is one.
fn store(
    start: Time,
    now: Time,
    work: &Work<'_>,
    scenario: &Scenario,
    tenants: &[Tenant],
) -> Option<Store> {
    let workload = &scenario.workload;
    let (figures, elapsed, pair): (LsmFigures, _, _) = match work {
        Work::Streams(_) | Work::Trace(_) => return None,
        Work::Lsm(lsm) => {
            let pair = workload.lsm.as_ref().map_or(0, |config| config.pair.get());
            (lsm.figures(start, now), now.since(start), pair)
        }
        Work::Recorded(recorded) => {
            let pair = workload.recorded.as_ref().map_or(0, |config| config.pair.get());
            let (figures, elapsed) = recorded.figures(now);
            (figures, elapsed, pair)
        }
    };
    let elapsed = elapsed.as_secs_f64();
    let log = tenants.iter().find(|tenant| tenant.name == LOG);
    let puts_per_s = if elapsed > 0.0 { figures.puts as f64 / elapsed } else { 0.0 };
    Some(Store {
        puts: figures.puts,
        puts_per_s,
        mib_per_s: puts_per_s * pair as f64 / 1_048_576.0,
        flushed: figures.flushed,
        compacted: figures.compacted,
        stalled_s: figures.stalled.as_secs_f64(),
        delayed_s: figures.delayed.as_secs_f64(),
        log_append_p99_us: log.map_or(0.0, |log| log.write_latency_us.p99),
        exposed_bytes_mean: figures.exposed_mean,
        exposed_bytes_peak: figures.exposed_peak,
        lost_puts: figures.lost_puts,
        lost_table_bytes: figures.lost_table_bytes,
    })
}

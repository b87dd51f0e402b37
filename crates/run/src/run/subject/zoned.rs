//! A run on a zoned drive.

use leyden_buffer::Region;
use leyden_config::Scenario;
use leyden_device::{
    FaultRule, FaultRules, NoData, Payload, Stamp, Stats, ZnsSsd, ZoneId, ZoneState, ZonedStats,
};
use leyden_record::{FlushWaits, RunRecord, Tenant, Timeline, ZoneMoment, Zones};
use leyden_sim::{Counted, Span, Time};
use leyden_workload::Request;
use leyden_workload::zoned::{ZoneLayout, ZoneLeft};

use super::zoned_work::{ResetAll, Work, layout, store};
use super::{Bounds, Hooks, Outages, Outcome, Prepared, RunError, Subject, conduct};
use crate::driver::{
    self, Content, Measured, Options, Outage, Settler, Unchecked, Watch, ZonePromise, ZonePromises,
    ZoneProtection,
};
use crate::run::follow::Following;
use crate::run::power::Sampler;
use crate::run::recorded::{self, FinalState};
use crate::run::repeated::Round;
use crate::run::{Phase, check, facts, in_device, machine, prepare};

/// The most moments that a record keeps of the zones.
const MOST_MOMENTS: usize = 256;

/// Watches a zoned drive: what a power cut would cost, and how full its pools are. It makes the cuts that are
/// listed, or the one that ends the run.
pub(in crate::run) struct ZonedWatch<'a> {
    outages: Outages<'a>,
    /// Follows what goes on, if that is asked for.
    following: Following,
    /// The zones' counters when the measurement began.
    before: ZonedStats,
    start: Time,
    next: Time,
    every: Span,
    moments: Vec<ZoneMoment>,
}

impl<'a> ZonedWatch<'a> {
    fn new<P: Payload>(drive: &ZnsSsd<P>, round: Round<'a>, bounds: &Bounds<'_>) -> Self {
        let scenario = round.scenario;
        let sampler = Sampler::new(drive, scenario.seed, bounds.banks);
        let (start, every) = (drive.now(), Span::from_ms(1));
        let outages = Outages::new(start, &scenario.run.cut, sampler);
        Self {
            outages,
            following: bounds.following(round, start),
            before: drive.zoned_stats(),
            start,
            next: start + every,
            every,
            moments: Vec::new(),
        }
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

    fn begin(&mut self, drive: &ZnsSsd<P>) {
        self.before = drive.zoned_stats();
    }

    fn next_moment(&self) -> Time {
        self.next.min(self.outages.next_moment()).min(self.following.next_moment())
    }

    fn look(&mut self, now: Time, drive: &ZnsSsd<P>) {
        if now >= self.outages.next_moment() {
            self.outages.look(drive);
        }
        if now >= self.next {
            self.take(now, drive);
        }
        self.following.look_if_due(now, drive);
    }

    fn follows_commands(&self) -> bool {
        self.following.is_on()
    }

    fn submitted(&mut self, now: Time, slot: u32, arrived: Time, request: &Request) {
        self.following.submitted(now, slot, arrived, request);
    }

    fn gone(&mut self, time: Time, slot: u32) {
        self.following.gone(time, slot);
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

/// Checks that `scenario` can be run.
pub(super) fn validate(scenario: &Scenario) -> Result<(), RunError> {
    let drive = ZnsSsd::<NoData>::new(&scenario.device, scenario.seed).map_err(in_device)?;
    if !scenario.workload.is_empty() {
        Work::new(scenario, layout(&drive), drive.now(), scenario.seed)?;
    }
    Ok(())
}

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
        run_with::<Stamp>(scenario, hooks, bounds, &|layout| {
            Box::new(ZonePromises::new(layout, promise))
        })
    } else {
        run_with::<NoData>(scenario, hooks, bounds, &|_| Box::new(Unchecked))
    }
}

/// Runs it with drives that store `P`, and with the check of it that `content` makes for its zones.
pub(in crate::run) fn run_with<P: Payload>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
    content: &dyn Fn(ZoneLayout) -> Box<dyn Content<P>>,
) -> Result<Outcome, RunError> {
    let preparing = machine::Stopwatch::start();
    hooks.progress(Phase::Preconditioning, 0.0);
    let (mut drive, past): (ZnsSsd<P>, _) = prepare(scenario, hooks)?;
    drive.forget_peaks();
    let wall_s = preparing.seconds();
    let layout = layout(&drive);
    let work = Work::new(scenario, layout, drive.now(), scenario.seed)?;
    let watch = ZonedWatch::new(&drive, Round::first(scenario), bounds);
    let content = content(layout);
    let subject = Box::new(OnZonedDrive { scenario, drive, layout, content, work, watch });
    conduct(Prepared { subject, past, wall_s }, scenario, hooks, bounds)
}

struct OnZonedDrive<'s, P: Payload> {
    scenario: &'s Scenario,
    drive: ZnsSsd<P>,
    layout: ZoneLayout,
    content: Box<dyn Content<P>>,
    /// Of the run that is made, or was made last.
    work: Work<'s>,
    watch: ZonedWatch<'s>,
}

impl<P: Payload> Subject for OnZonedDrive<'_, P> {
    fn now(&self) -> Time {
        self.drive.now()
    }

    fn settler(&self) -> Option<Settler> {
        None
    }

    fn drive(&mut self, _: u32, options: Options<'_>) -> Result<Measured, RunError> {
        let device = &self.scenario.device;
        let protection = ZoneProtection {
            has_region: device.buffer.region != Region::None,
            has_areas: self.layout.area > 0,
        };
        let (drive, content) = (&mut self.drive, &mut *self.content);
        Ok(self.work.run(drive, protection, content, &mut self.watch, options)?)
    }

    /// The work begins with empty zones: the host resets them, and that is of no run.
    fn between(&mut self, number: u32, bounds: &Bounds<'_>) -> Result<(), RunError> {
        let (drive, content) = (&mut self.drive, &mut *self.content);
        let options = Options { start: drive.now(), ..Options::default() };
        let none = ZoneProtection { has_region: false, has_areas: false };
        let stats = &mut |drive: &ZnsSsd<P>| drive.stats();
        let mut resets = ResetAll::of(drive);
        driver::run_host(drive, &mut resets, none, content, stats, options)?;
        let round = Round { scenario: self.scenario, number };
        self.work = Work::new(self.scenario, self.layout, self.drive.now(), round.seed())?;
        self.watch = ZonedWatch::new(&self.drive, round, bounds);
        Ok(())
    }

    fn make_fail(&mut self, rules: &[FaultRule]) {
        self.drive.make_fail(rules);
    }

    fn fault_rules(&self) -> Option<&FaultRules> {
        self.drive.fault_rules()
    }

    fn is_check_due(&self) -> bool {
        let units = u64::from(self.drive.geometry().units());
        check::is_due(self.scenario.run.check, units, &self.drive.stats())
    }

    fn check(&self) {
        self.drive.check();
    }

    fn cuts_not_made(&self, measured: &Measured) -> Option<String> {
        self.watch.outages.not_made(measured.end)
    }

    fn warnings(&self, measured: &Measured) -> Vec<String> {
        let left = self.work.left().filter(|_| !measured.interrupted);
        refused_of_trace(self.scenario, measured.failed.commands).into_iter().chain(left).collect()
    }

    fn describe(&self, measured: &Measured, warnings: Vec<String>) -> RunRecord {
        let left = FinalState::drive(&self.drive, self.drive.wear());
        let mut record = recorded::begin(self.scenario, left, measured, warnings);
        record.drive = Some(facts::drive(&self.drive));
        record.zones = Some(self.zones(&record.host.tenants));
        record
    }

    fn finish(self: Box<Self>, measured: &Measured, record: &mut RunRecord) -> Option<Timeline> {
        let Self { scenario, mut drive, watch, .. } = *self;
        if let Some(config) = &scenario.device.power {
            let part = config.bank.part;
            watch.outages.finish(&mut drive, ZnsSsd::stats, measured.end, part, record);
        }
        watch.following.finish()
    }
}

/// The message for a drive that rejected commands of a trace.
fn refused_of_trace(scenario: &Scenario, refused: u64) -> Option<String> {
    let zone_size = scenario.device.zoned.as_ref()?.zone_size;
    (scenario.workload.trace.is_some() && refused > 0).then(|| {
        format!(
            "{refused} commands of the trace were refused: set device.zoned.zone_size (now {zone_size}) and \
             zone_capacity to those of the traced drive, and use a trace that begins with empty zones"
        )
    })
}

impl<P: Payload> OnZonedDrive<'_, P> {
    /// The content of the zones, and the operations on them in the run.
    fn zones(&self, tenants: &[Tenant]) -> Zones {
        let (drive, watch) = (&self.drive, &self.watch);
        let (stats, shape) = (drive.zoned_stats().since(&watch.before), drive.zone_shape());
        let unit = u64::from(drive.geometry().unit_bytes());
        let all = drive.all_zones();
        let count = |state: ZoneState| {
            let zones = all.iter().filter(|zone| zone.state == state).count() as u64;
            (state.name().to_owned(), zones)
        };
        let written = |zone: &leyden_device::ZoneDescriptor| match (zone.state, zone.write_pointer)
        {
            (ZoneState::Full, _) => 1_000,
            (_, Some(wp)) => ((wp.0 - zone.start.0) * 1_000 / zone.capacity) as u32,
            _ => 0,
        };
        let store = store(watch.start, drive.now(), &self.work, tenants);
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
}

//! A run on a conventional drive, with the host's layers on it.

use std::marker::PhantomData;

use leyden_config::Scenario;
use leyden_device::{
    BlockDevice, FaultRule, FaultRules, NoData, Payload, SECTOR_BYTES, Ssd, Stamp,
};
use leyden_host::Powered;
use leyden_host::stack::{self, StackConfig, Visitor};
use leyden_oracle::Promise;
use leyden_record::{RunRecord, Timeline};
use leyden_sim::Time;

use super::{Bounds, Hooks, Outages, Outcome, Prepared, RunError, Subject, conduct};
use crate::driver::{self, Content, Measured, Options, Promises, Settler, Unchecked, Verifier};
use crate::run::power::Sampler;
use crate::run::precondition::Past;
use crate::run::recorded::{self, FinalState};
use crate::run::repeated::Round;
use crate::run::watcher::Watcher;
use crate::run::{
    Phase, build_jobs, check, drift, facts, hint_way, in_device, machine, prepare, spare,
};

pub(super) fn validate(scenario: &Scenario) -> Result<(), RunError> {
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

pub(super) fn run(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    let unit_sectors = scenario.device.ftl.mapping_unit.get() / SECTOR_BYTES;
    if !scenario.run.stamps {
        return run_with::<NoData, _>(scenario, hooks, bounds, |_, _| Unchecked);
    }
    if scenario.run.cut.is_empty() {
        let content = |capacity, _| Verifier::new(capacity, unit_sectors);
        return run_with::<Stamp, _>(scenario, hooks, bounds, content);
    }
    let content = |capacity: u64, promise| {
        let promises =
            Promises::new((capacity / unit_sectors) as u32, unit_sectors as u32, promise);
        Box::new(promises.flushing_trims(scenario.device.flushes_trims())) as Box<dyn Content<_>>
    };
    let prepared = ready::<Stamp>(scenario, hooks)?;
    on_layers(scenario, prepared, &content, hooks, bounds)
}

/// A drive that is prepared.
fn ready<P: Payload>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
) -> Result<Prepared<Ssd<P>>, RunError> {
    let preparing = machine::Stopwatch::start();
    hooks.progress(Phase::Preconditioning, 0.0);
    let (mut ssd, past): (Ssd<P>, _) = prepare(scenario, hooks)?;
    ssd.forget_peaks();
    Ok(Prepared { subject: ssd, past, wall_s: preparing.seconds() })
}

/// Runs the workload on a drive or on what stands on it. `content` is given the sectors and the promise of that. The
/// loop on a bare drive is made for its content.
fn run_with<P: Payload, C: Content<P> + 'static>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
    content: impl Fn(u64, Promise) -> C,
) -> Result<Outcome, RunError> {
    let prepared = ready::<P>(scenario, hooks)?;
    if scenario.host.is_bare() {
        let Prepared { subject: ssd, past, wall_s } = prepared;
        let content = content(ssd.capacity_sectors(), Promises::of(ssd.region()));
        let subject = Conventional::new(scenario, ssd, Inlined(content), bounds);
        return conduct(Prepared { subject, past, wall_s }, scenario, hooks, bounds);
    }
    let content = |capacity, promise| Box::new(content(capacity, promise)) as Box<dyn Content<P>>;
    on_layers(scenario, prepared, &content, hooks, bounds)
}

/// Makes the check of content for so many sectors of a device with such a promise.
type MakeContent<'r, P> = &'r dyn Fn(u64, Promise) -> Box<dyn Content<P>>;

fn on_layers<P: Payload>(
    scenario: &Scenario,
    prepared: Prepared<Ssd<P>>,
    content: MakeContent<'_, P>,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    let host = &scenario.host;
    let layers = StackConfig { hints: host.channel(), page_cache: host.page_cache.as_ref() };
    let Prepared { subject: ssd, past, wall_s } = prepared;
    let run = OnStack { scenario, hooks, bounds, content, past, wall_s };
    stack::build(layers, ssd, scenario.seed, |channel| channel, run)
        .map_err(|error| error.within("host"))?
}

/// A workload that a stack is ready for.
struct OnStack<'r, 'h, P: Payload> {
    scenario: &'r Scenario,
    hooks: &'r mut Hooks<'h>,
    bounds: &'r Bounds<'r>,
    content: MakeContent<'r, P>,
    past: Past,
    wall_s: f64,
}

impl<P: Payload> Visitor<P, Ssd<P>> for OnStack<'_, '_, P> {
    type Output = Result<Outcome, RunError>;

    fn visit<S: Powered<P, Drive = Ssd<P>>>(self, stack: S) -> Self::Output {
        let Self { scenario, hooks, bounds, content, past, wall_s } = self;
        let content = content(stack.capacity_sectors(), Promises::of(stack.region()));
        let subject = Conventional::new(scenario, stack, Called(content), bounds);
        conduct(Prepared { subject, past, wall_s }, scenario, hooks, bounds)
    }
}

/// Gives a stack its work.
trait Play<P: Payload, S> {
    fn play(
        &mut self,
        stack: &mut S,
        round: Round<'_>,
        watch: &mut dyn driver::Watch<P, S>,
        options: Options<'_>,
    ) -> Result<Measured, RunError>;
}

/// With the loop that all stacks of its type share.
struct Called<P: Payload>(Box<dyn Content<P>>);

impl<P: Payload, S: Powered<P>> Play<P, S> for Called<P> {
    fn play(
        &mut self,
        stack: &mut S,
        round: Round<'_>,
        watch: &mut dyn driver::Watch<P, S>,
        options: Options<'_>,
    ) -> Result<Measured, RunError> {
        play(stack, &mut *self.0, round, watch, options)
    }
}

/// With a loop of its own.
struct Inlined<C>(C);

impl<P: Payload, C: Content<P>> Play<P, Ssd<P>> for Inlined<C> {
    fn play(
        &mut self,
        stack: &mut Ssd<P>,
        round: Round<'_>,
        watch: &mut dyn driver::Watch<P, Ssd<P>>,
        options: Options<'_>,
    ) -> Result<Measured, RunError> {
        let content = &mut self.0;
        if let Some(trace) = &round.scenario.workload.trace {
            let replay = trace.replay();
            let open = || trace.open_naming(&replay.classes);
            return Ok(driver::replay_inlined(stack, open, &replay, content, watch, options)?);
        }
        let jobs = build_jobs(&round.scenario.workload, round.seed(), stack.capacity_sectors())?;
        Ok(driver::run_jobs_inlined(stack, jobs, content, watch, options)?)
    }
}

struct Conventional<'s, P, S, W> {
    scenario: &'s Scenario,
    stack: S,
    work: W,
    watch: Watcher<'s>,
    payload: PhantomData<P>,
}

impl<'s, P, S, W> Conventional<'s, P, S, W>
where
    P: Payload,
    S: Powered<P, Drive = Ssd<P>>,
    W: Play<P, S>,
{
    fn new(scenario: &'s Scenario, stack: S, work: W, bounds: &Bounds<'_>) -> Box<Self> {
        let watch = watch(&stack, Round::first(scenario), bounds);
        Box::new(Self { scenario, stack, work, watch, payload: PhantomData })
    }
}

/// A watch for one run.
fn watch<'s, P: Payload, S: Powered<P, Drive = Ssd<P>>>(
    stack: &S,
    round: Round<'s>,
    bounds: &Bounds<'_>,
) -> Watcher<'s> {
    let scenario = round.scenario;
    let sampler = Sampler::new(stack.drive(), scenario.seed, bounds.banks);
    let outages = Outages::new(stack.drive().now(), &scenario.run.cut, sampler);
    Watcher::new(stack, outages, bounds.following(round, stack.now()))
}

impl<P, S, W> Subject for Conventional<'_, P, S, W>
where
    P: Payload,
    S: Powered<P, Drive = Ssd<P>>,
    W: Play<P, S>,
{
    fn now(&self) -> Time {
        self.stack.now()
    }

    fn settler(&self) -> Option<Settler> {
        let tolerance = self.scenario.settling_ramp()?;
        let most = self.scenario.precondition.max_passes;
        Some(Settler::new(self.stack.drive(), tolerance, most).to_the_end())
    }

    fn between(&mut self, number: u32, bounds: &Bounds<'_>) -> Result<(), RunError> {
        self.watch = watch(&self.stack, Round { scenario: self.scenario, number }, bounds);
        Ok(())
    }

    fn drive(&mut self, number: u32, options: Options<'_>) -> Result<Measured, RunError> {
        let round = Round { scenario: self.scenario, number };
        self.work.play(&mut self.stack, round, &mut self.watch, options)
    }

    fn make_fail(&mut self, rules: &[FaultRule]) {
        self.stack.drive_mut().make_fail(rules);
    }

    fn fault_rules(&self) -> Option<&FaultRules> {
        self.stack.drive().fault_rules()
    }

    fn is_check_due(&self) -> bool {
        let drive = self.stack.drive();
        let units = u64::from(drive.geometry().units());
        check::is_due(self.scenario.run.check, units, &drive.stats())
    }

    fn check(&self) {
        self.stack.check();
    }

    fn cuts_not_made(&self, measured: &Measured) -> Option<String> {
        self.watch.outages.not_made(measured.end)
    }

    fn warnings(&self, measured: &Measured) -> Vec<String> {
        hint_way::idle(self.scenario, measured).into_iter().collect()
    }

    fn describe(&self, measured: &Measured, warnings: Vec<String>) -> RunRecord {
        let (scenario, ssd) = (self.scenario, self.stack.drive());
        let is_cached = scenario.host.page_cache.is_some();
        let left = FinalState { is_cached, ..FinalState::drive(ssd, ssd.wear()) };
        let mut record = recorded::begin(scenario, left, measured, warnings);
        record.drive = Some(facts::drive(ssd));
        scenario.device.ftl.gc.victim.name().clone_into(&mut record.gc.policy);
        record.hints = self.watch.hints(&self.stack, measured, hint_way::name(scenario));
        record.cache = self.watch.cache(&self.stack);
        record
    }

    fn finish(self: Box<Self>, measured: &Measured, record: &mut RunRecord) -> Option<Timeline> {
        let Self { scenario, mut stack, watch, .. } = *self;
        record.warnings.extend(drift::warning(scenario, record));
        record.warnings.extend(spare::warning(scenario, record.gc.collections));
        if let Some(config) = &scenario.device.power {
            let part = config.bank.part;
            watch.outages.finish(&mut stack, Ssd::stats, measured.end, part, record);
        }
        watch.following.finish()
    }
}

/// Gives the jobs or the trace of run `number` to a stack that knows no zones.
pub(super) fn play<P: Payload, S: Powered<P>>(
    stack: &mut S,
    content: &mut dyn Content<P>,
    round: Round<'_>,
    watch: &mut dyn driver::Watch<P, S>,
    options: Options<'_>,
) -> Result<Measured, RunError> {
    if let Some(trace) = &round.scenario.workload.trace {
        let replay = trace.replay();
        let open = || trace.open_naming(&replay.classes);
        return Ok(driver::replay(stack, open, &replay, content, watch, options)?);
    }
    let jobs = build_jobs(&round.scenario.workload, round.seed(), stack.capacity_sectors())?;
    Ok(driver::run_jobs(stack, jobs, content, watch, options)?)
}

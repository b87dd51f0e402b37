//! The subject of a run: a drive of one kind, with the layers on it and the check of the data that
//! its reads return.
//!
//! **What lives here**: the duties of a subject ([`Subject`]), the one runner ([`conduct`]), and the only place where
//! the kind of a scenario's drive decides anything ([`validate`], [`run`]). Each kind's file builds,
//! ages, drives and describes. What a kind cannot do, it says in its `validate`.

mod conventional;
pub(super) mod zoned;
pub(super) mod zoned_block;
mod zoned_work;

use leyden_config::{DriveKind, Scenario, TraceConfig};
use leyden_device::{FaultReport, FaultRule, FaultRules};
use leyden_record::{RunRecord, SlowCommand, Timeline};
use leyden_sim::Time;

use super::outage::Outages;
use super::precondition::Past;
use super::repeated::Round;
use super::{Bounds, Hooks, Outcome, Phase, RunError, machine, repeated};
use crate::driver::{Measured, Options, Settler, Slow};

/// A drive that is ready for its work, with the watch of the run that is made, or was made last.
pub(super) trait Subject {
    /// Its clock.
    fn now(&self) -> Time;

    /// Says when its write amplification has settled, if the ramp waits for that.
    fn settler(&self) -> Option<Settler>;

    /// Makes it ready for a run that is not the first.
    fn between(&mut self, number: u32, bounds: &Bounds<'_>) -> Result<(), RunError>;

    /// Gives it the work of run `number`, counted from 0.
    fn drive(&mut self, number: u32, options: Options<'_>) -> Result<Measured, RunError>;

    /// Whether its own invariants are to be checked now.
    fn is_check_due(&self) -> bool;

    /// Asserts them.
    fn check(&self);

    /// The listed power cuts that were not made, as a warning.
    fn cuts_not_made(&self, measured: &Measured) -> Option<String>;

    /// Further warnings. `is_whole` if the run was neither interrupted nor limited.
    fn warnings(&self, measured: &Measured) -> Vec<String>;

    /// Makes commands of the drive fail from now on.
    fn make_fail(&mut self, rules: &[FaultRule]) {
        assert!(rules.is_empty(), "refused before");
    }

    /// The rules, and what came of them.
    fn fault_rules(&self) -> Option<&FaultRules> {
        None
    }

    /// Everything of the record but the machine's part, power cuts, and what only a last run says.
    fn describe(&self, measured: &Measured, warnings: Vec<String>) -> RunRecord;

    /// Ends the last run: warns of drift, cuts the power if that is due, and hands over what was followed.
    fn finish(self: Box<Self>, measured: &Measured, record: &mut RunRecord) -> Option<Timeline>;
}

/// A subject, and what building it took.
pub(super) struct Prepared<S> {
    pub(super) subject: S,
    pub(super) past: Past,
    pub(super) wall_s: f64,
}

/// Runs `scenario` on a subject: the work as often as it says, of which the last is measured.
pub(super) fn conduct(
    prepared: Prepared<Box<dyn Subject + '_>>,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    let Prepared { mut subject, past: Past { mut warnings, settling }, wall_s } = prepared;
    warnings.extend(scenario.workload.trace.iter().flat_map(TraceConfig::warnings));
    let mut repetitions = Vec::new();
    let (measured, took) = loop {
        let number = repetitions.len() as u32;
        let is_last = Round { scenario, number }.is_last();
        hooks.progress(Phase::Running, 0.0);
        if number > 0 {
            subject.between(number, bounds)?;
        }
        if is_last {
            subject.make_fail(&scenario.run.faults);
        }
        let mut clocks = machine::Clocks::start();
        let cancel = hooks.cancel;
        let mut progress = |fraction| hooks.progress(Phase::Running, fraction);
        let options = Options {
            start: subject.now(),
            ramp: scenario.run.ramp,
            // A run that ends after so many commands has none to spare.
            settler: if bounds.limit.is_none() { subject.settler() } else { None },
            cancel,
            limit: bounds.limit,
            progress: Some(&mut progress),
            begun: Some(&mut || clocks = machine::Clocks::start()),
            expected_requests: None,
            direct: scenario.workload.trace.as_ref().is_some_and(TraceConfig::is_direct),
        };
        let measured = subject.drive(number, options)?;
        let took = clocks.stop();
        if is_last || measured.interrupted {
            break (measured, took);
        }
        let record = subject.describe(&measured, Vec::new());
        repetitions.push(repeated::repetition(&record));
    };
    if !measured.interrupted && bounds.limit.is_none() {
        warnings.extend(subject.cuts_not_made(&measured));
    }
    warnings.extend(subject.warnings(&measured));
    let now_ns = subject.now().as_ns();
    let rules = subject.fault_rules().map_or_else(Vec::new, |rules| rules.report(now_ns));
    warnings.extend(rules.iter().filter_map(idle_rule));
    let is_checked = subject.is_check_due();
    if is_checked {
        subject.check();
    }
    let mut record = subject.describe(&measured, warnings);
    // Below a cache, one failed write may be what several commands hear of.
    let made = subject.fault_rules().map_or(0, FaultRules::write_faults);
    record.host.write_faults = record.host.write_faults.saturating_sub(made);
    record.steadiness.precondition = settling;
    if scenario.run.repeat.get() > 1 {
        repetitions.push(repeated::repetition(&record));
        record.warnings.extend(repeated::warning(&repetitions));
        record.steadiness.repetitions = repetitions;
    }
    record.sim.checked = is_checked;
    record.sim.precondition_wall_s = wall_s;
    let timeline = subject.finish(&measured, &mut record);
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

/// A rule that has made nothing fail is a mistake more often than not.
fn idle_rule(it: &FaultReport) -> Option<String> {
    (it.failed == 0).then(|| {
        format!(
            "run.faults: {:?} has made nothing fail; it has seen {} of the commands that it names",
            it.rule, it.seen
        )
    })
}

/// Checks that `scenario` can be run, as far as that shows before it begins.
pub(super) fn validate(scenario: &Scenario) -> Result<(), RunError> {
    match scenario.kind() {
        DriveKind::Conventional => conventional::validate(scenario),
        DriveKind::Zoned => zoned::validate(scenario),
        DriveKind::ZonedBlock => zoned_block::validate(scenario),
    }
}

/// Builds what `scenario` is of, and runs it.
pub(super) fn run(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    match scenario.kind() {
        DriveKind::Conventional => conventional::run(scenario, hooks, bounds),
        DriveKind::Zoned => zoned::run(scenario, hooks, bounds),
        DriveKind::ZonedBlock => zoned_block::run(scenario, hooks, bounds),
    }
}

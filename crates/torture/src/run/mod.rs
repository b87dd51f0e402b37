//! Runs: commands, power cuts, recoveries, and every answer checked.
//!
//! **What lives here**: a run from its options ([`run()`]), what drives it ([`runner`]), its power cuts
//! ([`moment`], [`power`]), what commands may end with ([`ended`]). **What doesn't**: the promises ([`leyden_oracle`]) and
//! what physics allows to be lost ([`crate::physics`]).
//!
//! **Invariants**: the drive is believed in nothing. A loss must be one that the energy did not reach for, a
//! fault must have a cause on the flash or in the host, and what a lost unit reads as must be what flash held.

mod atomic;
pub(crate) mod ended;
mod moment;
pub(crate) mod power;
mod room;
pub(crate) mod runner;

use leyden_device::{Config, Payload, SectorStamps, Ssd};
use leyden_host::Powered;
use leyden_host::stack::{self, StackConfig, Visitor};
use leyden_oracle::Violation;
use leyden_sim::Ratio;

use crate::coverage::{Coverage, Point};
use crate::faulty::{FaultLog, Faulty};
use crate::options::{mixed, rng};
use crate::panics::caught;
use crate::traced::{Grain, TracedPayload};
use crate::{Failure, Host, Kind, Options, Tally};
pub(crate) use room::may_fault;
use runner::Runner;

/// The outcome of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The counts of the run.
    pub tally: Tally,
    /// The coverage points that it hit.
    pub coverage: Coverage,
    /// Fingerprint of everything that the drive did and answered.
    pub digest: u64,
    /// The failure, if there is one; the run ended there.
    pub failure: Option<Failure>,
}

/// A drive that a run may look into, beside what a host sees.
pub trait Inspected<P: Payload> {
    /// The drive; `None` if there is nothing to look into.
    fn ssd(&self) -> Option<&Ssd<P>> {
        None
    }
    /// True if writes may fail: for a cause that can be seen on the flash of a drive of `config`, or one that
    /// can't be seen.
    fn may_fault(&self, _config: &Config) -> bool {
        true
    }
    /// Looks for what needs a cause on the flash, and has none: what no command has told of.
    ///
    /// # Errors
    /// Says what it is.
    fn judge(&self) -> Result<(), String> {
        Ok(())
    }
    /// Its own coverage points in the run, if it cannot be looked into.
    fn points(&self) -> Vec<Point> {
        Vec::new()
    }
    /// The stage of the protocol by which it makes its tables durable; 0 if none is under way.
    fn stage(&self) -> u32 {
        0
    }
    /// The same, to exchange it for one that was saved and loaded.
    fn ssd_mut(&mut self) -> Option<&mut Ssd<P>> {
        None
    }
}

impl<P: Payload> Inspected<P> for Ssd<P> {
    fn ssd(&self) -> Option<&Self> {
        Some(self)
    }
    fn may_fault(&self, config: &Config) -> bool {
        may_fault(config, self)
    }
    fn ssd_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }
}

/// Runs `options` once, on the drive that they describe, through what stands on it.
pub fn run(options: &Options) -> Outcome {
    tell(options, false).0
}

/// As [`run()`]; also yields the story of the run's last rounds as a timeline, if it `tells`: a line for each thing
/// that happened.
pub(crate) fn tell(options: &Options, tells: bool) -> (Outcome, Vec<String>) {
    match options.grain {
        Grain::Unit => on_own_drive::<leyden_device::Stamp>(options, tells),
        Grain::Sector => on_own_drive::<SectorStamps>(options, tells),
    }
}

fn on_own_drive<P: TracedPayload>(options: &Options, tells: bool) -> (Outcome, Vec<String>) {
    match Ssd::<P>::new(&options.device, mixed(options.seed)) {
        Ok(drive) => through(options, drive, tells),
        Err(error) => (refused(format!("the drive cannot be built: {error}")), Vec::new()),
    }
}

/// Runs `options` once on a drive of the caller's, through what they say stands on it.
pub fn run_through<P, D>(options: &Options, drive: D) -> Outcome
where
    P: TracedPayload,
    D: Powered<P, Drive = D> + Inspected<P>,
{
    through(options, drive, false).0
}

fn through<P, D>(options: &Options, drive: D, tells: bool) -> (Outcome, Vec<String>)
where
    P: TracedPayload,
    D: Powered<P, Drive = D> + Inspected<P>,
{
    let (config, failing_writes) = match &options.host {
        Some(Host { page_cache, failing_writes, hints, .. }) => {
            (StackConfig { hints: Some(hints), page_cache: page_cache.as_ref() }, *failing_writes)
        }
        None => (StackConfig::default(), Ratio::ZERO),
    };
    let log = FaultLog::default();
    let run = Run { options, log: log.clone(), tells };
    let faulty =
        |channel| Faulty::new(channel, failing_writes, rng(options.seed, "failing writes"), log);
    stack::build(config, drive, mixed(options.seed), faulty, run)
        .unwrap_or_else(|error| (refused(format!("the host cannot be built: {error}")), Vec::new()))
}

/// Runs `options` once on a stack of the caller's.
pub(crate) fn on_stack<P, S>(options: &Options, stack: S, tells: bool) -> (Outcome, Vec<String>)
where
    P: TracedPayload,
    S: Powered<P>,
    S::Drive: Inspected<P>,
{
    finish(Runner::new(options, stack, FaultLog::default(), tells))
}

/// Runs twice; that the two agree is part of the outcome.
pub(crate) fn twice(mut run: impl FnMut() -> Outcome) -> Outcome {
    let mut first = run();
    if first.failure.is_none() {
        let second = run();
        if first != second {
            let message = format!(
                "two runs of the same options differ: digests {:016x} and {:016x}",
                first.digest, second.digest
            );
            first.failure =
                Some(Failure { kind: Kind::NotDeterministic, cuts: first.tally.cuts, message });
        }
    }
    first
}

/// Runs its options once on a stack.
struct Run<'a> {
    options: &'a Options,
    log: FaultLog,
    tells: bool,
}

impl<P: TracedPayload, T: Inspected<P>> Visitor<P, T> for Run<'_> {
    type Output = (Outcome, Vec<String>);

    fn visit<S: Powered<P, Drive = T>>(self, stack: S) -> Self::Output {
        finish(Runner::new(self.options, stack, self.log, self.tells))
    }
}

pub(crate) fn refused(message: String) -> Outcome {
    let failure = Failure { kind: Kind::Refused, cuts: 0, message };
    Outcome {
        tally: Tally::default(),
        coverage: Coverage::default(),
        digest: 0,
        failure: Some(failure),
    }
}

/// Runs `options` once on a drive of the caller's, and on nothing else.
pub fn run_on<P, D>(options: &Options, drive: D) -> Outcome
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    finish(Runner::new(options, drive, FaultLog::default(), false)).0
}

fn finish<P, D>(mut runner: Runner<'_, P, D>) -> (Outcome, Vec<String>)
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    let result = caught(|| runner.run()).unwrap_or_else(|panic| {
        Err(Trouble { kind: Kind::Panicked, message: format!("the drive panicked: {panic}") })
    });
    runner.into_outcome(result)
}

/// A failure on its way out.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

impl From<Box<Violation>> for Trouble {
    fn from(violation: Box<Violation>) -> Self {
        Self { kind: violation.problem.into(), message: violation.to_string() }
    }
}

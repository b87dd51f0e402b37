//! Many seeds on all cores, resumable.
//!
//! Each seed is run twice, and the two must agree to the bit. What a campaign finds depends on its
//! seeds only, not on the number of threads nor on how often it was interrupted.

mod lock;
pub(crate) mod state;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leyden_sim::Digest;
use serde::{Deserialize, Serialize};

use lock::Lock;
use state::Begun;
pub use state::{State, StateError};

use crate::case::Case;
use crate::guide::Guide;
use crate::run::twice;
use crate::subject::{Run, Subject};
use crate::zoned::ZonedOptions;
use crate::zoned_block::ZonedBlockOptions;
use crate::{Coverage, Failure, Options, Outcome, Tally, run};

/// How often the state is saved and the caller told.
const PERIOD: Duration = Duration::from_secs(2);

/// The seeds to run, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Campaign {
    /// The kind of drive.
    pub subject: Subject,
    /// The first seed.
    pub start: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Threads.
    pub threads: usize,
    /// Where to keep the state, if anywhere.
    pub state: Option<PathBuf>,
    /// Half of the seeds are mutants of what has reached something new, and cuts are aimed.
    pub guided: bool,
}

/// A seed that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// How.
    pub failure: Failure,
}

/// The results of a campaign.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Seeds that were run.
    pub seeds: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Seeds that failed.
    pub violations: u64,
    /// Power cuts a second of wall time, over all threads; each is made twice and counted once.
    pub cuts_per_s: f64,
    /// Fingerprint of all runs.
    pub digest: String,
    /// Counts of everything else.
    pub tally: Tally,
    /// Coverage points, and how often each was hit.
    pub coverage: Coverage,
    /// The seeds that failed, in order.
    pub failed: Vec<Failed>,
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Seeds done.
    pub done: u64,
    /// Seeds in all.
    pub seeds: u64,
    /// Power cuts so far.
    pub cuts: u64,
    /// Seeds that failed so far, in order.
    pub failed: &'a [Failed],
    /// Counts of everything else.
    pub tally: &'a Tally,
    /// Coverage points, and how often each was hit.
    pub coverage: &'a Coverage,
}

impl Campaign {
    /// Runs what is not done yet, until it is all done or `cancel` is set. `progress` is called now
    /// and then.
    pub fn run(
        &self,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Summary, StateError> {
        match self.subject {
            Subject::Conventional => self.run_of::<Options>(cancel, progress),
            Subject::Zoned => self.run_of::<ZonedOptions>(cancel, progress),
            Subject::ZonedBlock => self.run_of::<ZonedBlockOptions>(cancel, progress),
        }
    }

    fn run_of<R: Run>(
        &self,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Summary, StateError> {
        let guide = self.guided.then(Guide::<R>::new);
        let draw = |seed| guide.as_ref().map_or_else(|| R::drawn(seed), |guide| guide.draw(seed));
        let work = |seed| {
            let run = draw(seed);
            twice(|| run.play(false).0)
        };
        self.run_with(&work, cancel, progress)
    }

    fn check_range(&self) -> Result<(), StateError> {
        match self.start.checked_add(self.seeds) {
            Some(_) => Ok(()),
            None => Err(StateError::Range { start: self.start, seeds: self.seeds }),
        }
    }

    /// The run of `seed` in this campaign.
    pub fn case(&self, seed: u64) -> Case {
        match (self.guided, self.subject) {
            (false, subject) => subject.draw(seed),
            (true, Subject::Conventional) => Guide::<Options>::new().draw(seed).into(),
            (true, Subject::Zoned) => Guide::<ZonedOptions>::new().draw(seed).into(),
            (true, Subject::ZonedBlock) => Guide::<ZonedBlockOptions>::new().draw(seed).into(),
        }
    }

    /// As [`Campaign::run`], with `work` for each seed.
    pub fn run_with(
        &self,
        work: &(dyn Fn(u64) -> Outcome + Sync),
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Summary, StateError> {
        self.check_range()?;
        let _lock = self.state.as_deref().map(Lock::take).transpose()?;
        let mut state = match &self.state {
            Some(path) => State::load(path, self.begun())?,
            None => State::new(self.begun()),
        };
        let todo = Mutex::new(state.missing(self.seeds));
        let finished: Mutex<Vec<(u64, Outcome)>> = Mutex::default();
        let mut clock = Clock::start();
        let mut saved = Ok(());
        let workers = AtomicUsize::new(self.threads.max(1));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    let _leaving = Leaving(&workers);
                    while !cancel.load(Ordering::Relaxed) {
                        let seed = todo.lock().expect("nobody panics with it").next();
                        let Some(seed) = seed else { break };
                        let outcome = work(seed);
                        finished.lock().expect("nobody panics with it").push((seed, outcome));
                    }
                });
            }
            loop {
                let is_over = workers.load(Ordering::Acquire) == 0;
                for (seed, outcome) in finished.lock().expect("nobody panics with it").drain(..) {
                    state.add(seed, outcome);
                }
                if is_over {
                    break;
                }
                if clock.is_due() {
                    progress(state.progress(self.seeds));
                    saved = self.save(&mut state, &mut clock);
                    if saved.is_err() {
                        cancel.store(true, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        saved?;
        self.save(&mut state, &mut clock)?;
        progress(state.progress(self.seeds));
        Ok(state.summary())
    }

    const fn begun(&self) -> Begun {
        Begun { subject: self.subject, start: self.start, guided: self.guided }
    }

    fn save(&self, state: &mut State, clock: &mut Clock) -> Result<(), StateError> {
        state.add_time(clock.lap());
        self.state.as_ref().map_or(Ok(()), |path| state.save(path))
    }
}

/// A thread that leaves is counted out, even if it panics.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `options` twice; that the two agree is part of the outcome.
pub fn run_twice(options: &Options) -> Outcome {
    twice(|| run(options))
}

/// Runs `case` twice, and sums up as a campaign of that one run would.
pub fn run_alone(case: &Case) -> Summary {
    let mut clock = Clock::start();
    let outcome = case.run_twice();
    let (seed, subject) = (case.seed(), case.subject());
    let mut state = State::new(Begun { subject, start: seed, guided: false });
    state.add(seed, outcome);
    state.add_time(clock.lap());
    state.summary()
}

/// The fingerprint of a seed's run, to be summed up over seeds in any order.
fn fingerprint(seed: u64, outcome: &Outcome) -> u64 {
    let mut digest = Digest::default();
    digest.add(seed).add(outcome.digest).add(u64::from(outcome.failure.is_some())).value()
}

/// Wall time, which no result depends on.
#[derive(Debug)]
struct Clock {
    lap: Instant,
    due: Instant,
}

#[expect(clippy::disallowed_methods, reason = "cuts per second, and when to save: no run sees it")]
impl Clock {
    fn start() -> Self {
        Self { lap: Instant::now(), due: Instant::now() }
    }

    /// True once each period.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.due;
        if is_due {
            self.due = now + PERIOD;
        }
        is_due
    }

    /// Since the last call.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let lap = now - self.lap;
        self.lap = now;
        lap
    }
}

//! Crash tests of software that works on files, in the process of the test.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use super::folder::{Call, Failure, Fs};
use super::history::FileHistory;
use super::rules::Persistence;
use super::step::PAGE_BYTES;
use super::surviving::SurvivingFiles;
use crate::audit::{Audit, audit};
use crate::choose::every_state;
use crate::cut::Flushes;
use crate::error::CrashError;
use crate::explore::{Explore, explore_history};
use crate::history::History as _;
use crate::library::CrashTest;
use crate::runner::{Runner, in_turn};
use crate::shrink::shrink;
use crate::state::State;
use crate::summary::{Finding, Summary};
use crate::verdict::{Outcome, Verdict};

/// Findings that are made small, and states that are tried for each.
const SMALL_MOST: usize = 8;
const TRIES_MOST: u32 = 400;

impl CrashTest {
    /// A crash test of software that works on files: `work` is done once on a folder in memory, then `check` is called
    /// for states that power cuts in it may leave, with the lines that had been acknowledged.
    ///
    /// ```
    /// use leyden_crashtest::CrashTest;
    ///
    /// let work = |fs: &leyden_crashtest::Fs| {
    ///     for number in 1..=5 {
    ///         fs.write("value.tmp", format!("{number}")).unwrap();
    ///         fs.open("value.tmp").unwrap().sync_all().unwrap();
    ///         fs.rename("value.tmp", "value").unwrap();
    ///         fs.sync_dir("/").unwrap(); // without it, the test fails
    ///         fs.acknowledge(&number.to_string());
    ///     }
    /// };
    /// let check = |fs: &leyden_crashtest::Fs, acks: &[String]| {
    ///     let promised: u32 = acks.last().map_or(0, |ack| ack.parse().unwrap());
    ///     let found = fs.read_to_string("value").unwrap_or_else(|_| "0".to_owned());
    ///     let found: u32 = found.parse().map_err(|_| format!("damaged: {found:?}"))?;
    ///     if found < promised { Err(format!("lost {promised}, found {found}")) } else { Ok(()) }
    /// };
    /// CrashTest::files(work, check).run().unwrap().assert_held();
    /// ```
    pub fn files<W, C, E>(work: W, check: C) -> FilesTest<W, C>
    where
        W: FnMut(&Fs),
        C: Fn(&Fs, &[String]) -> Result<(), E>,
        E: Display,
    {
        FilesTest {
            work,
            check,
            setup: None,
            rules: Persistence::default(),
            atom_bytes: PAGE_BYTES as u32,
            failures: Vec::new(),
            seed: 1,
            states: 2_000,
        }
    }
}

/// Prepares a folder.
type Setup = Box<dyn FnMut(&Fs)>;

/// A crash test of software that works on files: [`CrashTest::files`].
pub struct FilesTest<W, C> {
    work: W,
    check: C,
    setup: Option<Setup>,
    rules: Persistence,
    atom_bytes: u32,
    failures: Vec<Failure>,
    seed: u64,
    states: usize,
}

impl<W, C> fmt::Debug for FilesTest<W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rules, atom_bytes, failures, seed, states, .. } = self;
        let mut shown = f.debug_struct("FilesTest");
        let shown = shown.field("rules", rules).field("atom_bytes", atom_bytes);
        let shown = shown.field("failures", failures);
        shown.field("seed", seed).field("states", states).finish_non_exhaustive()
    }
}

impl<W, C, E> FilesTest<W, C>
where
    W: FnMut(&Fs),
    C: Fn(&Fs, &[String]) -> Result<(), E>,
    E: Display,
{
    /// Prepares the folder: what it does is there in every state.
    #[must_use]
    pub fn setup(mut self, setup: impl FnMut(&Fs) + 'static) -> Self {
        self.setup = Some(Box::new(setup));
        self
    }

    /// Which promises the files keep: those of XFS if not given.
    #[must_use]
    pub const fn persistence(mut self, rules: Persistence) -> Self {
        self.rules = rules;
        self
    }

    /// So many bytes of a page are kept or lost as a whole: 512 tears pages between the sectors of a drive. Without, a page
    /// of 4 KiB is whole.
    #[must_use]
    pub const fn atom_bytes(mut self, atom_bytes: u32) -> Self {
        self.atom_bytes = atom_bytes;
        self
    }

    /// The `nth` call of this kind in the work fails, counted from 1, with this error number.
    #[must_use]
    pub fn fails(mut self, call: Call, nth: u64, errno: i32) -> Self {
        self.failures.push(Failure { call, nth, errno });
        self
    }

    /// The seed of random choices.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// States to try, at most.
    #[must_use]
    pub const fn states(mut self, states: usize) -> Self {
        self.states = states;
        self
    }

    /// Does the work once, and checks what power cuts in it may leave. What breaks is made small: few things are lost,
    /// and early.
    ///
    /// # Errors
    /// If no state is asked for, pages have no such atoms, or a call that is to fail is not made.
    pub fn run(&mut self) -> Result<Summary, CrashError> {
        if self.states == 0 {
            return Err(CrashError::Input("no state is asked for".to_owned()));
        }
        let history = Arc::new(self.record()?);
        let mut options = Explore::adversarial(self.seed, self.states);
        let name = |failure: &Failure| format!("{:?}:nth={}", failure.call, failure.nth);
        options.faults = self.failures.iter().map(name).collect();
        let mut runner = InFiles { history: Arc::clone(&history), check: &self.check };
        let mut summary = explore_history(&mut runner, &*history, &options, &mut |_| {})?;
        let findings = summary.models.iter_mut().flat_map(|model| &mut model.findings);
        let findings: Vec<&mut Finding> = findings.take(SMALL_MOST).collect();
        if findings.is_empty() {
            return Ok(summary);
        }
        make_small(&mut runner, &history, findings, TRIES_MOST)?;
        Ok(summary)
    }

    /// Tries one state: the text that a failed test printed of it.
    ///
    /// # Errors
    /// If it is no state of this work.
    pub fn run_state(&mut self, state: &str) -> Result<Outcome, CrashError> {
        let state: State = serde_json::from_str(state)
            .map_err(|error| CrashError::Input(format!("this is no state: {error}")))?;
        let history = Arc::new(self.record()?);
        let cuts = history.cuts(Flushes::All, &|at| at == state.at);
        if !cuts.iter().any(|cut| cut.allows(&state)) {
            let problem =
                "no power cut leaves this state: the work has changed since it was printed";
            return Err(CrashError::Input(problem.to_owned()));
        }
        InFiles { history, check: &self.check }.run_one(&state)
    }

    /// Leaves out each sync once, and tries at most `states` states of what that leaves: a sync that nothing notices is
    /// not needed, or the check does not look.
    ///
    /// # Errors
    /// As [`FilesTest::run`].
    pub fn audit(&mut self, states: usize) -> Result<Audit, CrashError> {
        let history = Arc::new(self.record()?);
        let mut runner = InFiles { history: Arc::clone(&history), check: &self.check };
        audit(&mut runner, &*history, states, self.seed)
    }

    /// Shows `see` every state of each moment that has no more than `most`, with the lines that had been acknowledged;
    /// returns how many moments have more, and are left out. For small works: each further part that may be lost doubles
    /// the states.
    ///
    /// # Errors
    /// As [`FilesTest::run`].
    pub fn each_state(
        &mut self,
        most: usize,
        mut see: impl FnMut(&Fs, &[String]),
    ) -> Result<usize, CrashError> {
        let history = Arc::new(self.record()?);
        let cuts = history.cuts(Flushes::All, &|_| true);
        let mut left_out = 0;
        for cut in &cuts {
            let Some(states) = every_state(cut, most) else {
                left_out += 1;
                continue;
            };
            for state in states {
                let acks = &history.acks()[..history.acks_before(state.at)];
                see(&Fs::shown(SurvivingFiles::new(Arc::clone(&history), &state)), acks);
            }
        }
        Ok(left_out)
    }

    fn record(&mut self) -> Result<FileHistory, CrashError> {
        let fs = Fs::recorded(FileHistory::new(self.rules).torn(self.atom_bytes)?);
        if let Some(setup) = &mut self.setup {
            setup(&fs);
        }
        fs.set_begin(&self.failures);
        (self.work)(&fs);
        if let Some((failure, calls)) = fs.unmet() {
            let Failure { call, nth, .. } = failure;
            let problem =
                format!("call {nth} of {call:?} is to fail, and the work makes {calls} of them");
            return Err(CrashError::Input(problem));
        }
        Ok(fs.into_history())
    }
}

/// Makes findings small, and says of each what it has lost; one that does not break again is flaky.
///
/// # Errors
/// If a state cannot be tried.
pub fn make_small(
    runner: &mut dyn Runner,
    history: &FileHistory,
    findings: Vec<&mut Finding>,
    tries: u32,
) -> Result<(), CrashError> {
    let cuts = history.cuts(Flushes::All, &|_| true);
    for finding in findings {
        let (state, outcome, _) = shrink(runner, &finding.state, &cuts, tries)?;
        if !outcome.verdict.is_broken() {
            finding.is_flaky = true;
            continue;
        }
        finding.lost = history.lost_words(&state);
        (finding.state, finding.said) = (state, outcome.said);
    }
    Ok(())
}

/// Tries states in this process.
pub(crate) struct InFiles<'a, C> {
    pub(crate) history: Arc<FileHistory>,
    pub(crate) check: &'a C,
}

impl<C, E> InFiles<'_, C>
where
    C: Fn(&Fs, &[String]) -> Result<(), E>,
    E: Display,
{
    fn attempt(&self, state: &State, acks: usize) -> Outcome {
        let fs = Fs::shown(SurvivingFiles::new(Arc::clone(&self.history), state));
        let acks = &self.history.acks()[..acks];
        let said = caught(|| (self.check)(&fs, acks).map_err(|error| error.to_string()));
        said.map_or_else(|panic| Outcome::new(Verdict::Crashed, panic), Outcome::of)
    }
}

impl<C, E> Runner for InFiles<'_, C>
where
    C: Fn(&Fs, &[String]) -> Result<(), E>,
    E: Display,
{
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        in_turn(next, done, |state| self.attempt(state, self.history.acks_before(state.at)));
        Ok(())
    }

    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
        Ok(self.attempt(state, acks))
    }
}

thread_local! {
    /// A panic of this thread is a finding, and not printed.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls `check`; the text of its panic if it ends with one.
fn caught<T>(check: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_CAUGHT.get() {
                others(info);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let said = panic::catch_unwind(AssertUnwindSafe(check));
    IS_CAUGHT.set(false);
    said.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("panicked: {}", text.unwrap_or("without a text"))
    })
}

#[cfg(test)]
mod btrfs;
#[cfg(test)]
mod tests;

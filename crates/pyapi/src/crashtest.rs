//! Crash tests: states are tried here, or by workers of a Python program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use leyden_crashtest::{
    Access, CrashError, Explore, History as _, Launcher, Limits, Model, Outcome, Plan, Pool,
    Runner, Session, State, Summary, TrialProgress, explore, explore_history,
};
use leyden_sim::Digest;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::errors;
use crate::interrupt::{Watch, watched};

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(crashtest_work, module)?)?;
    module.add_function(wrap_pyfunction!(crashtest_record, module)?)?;
    module.add_function(wrap_pyfunction!(crashtest_plan, module)?)?;
    module.add_function(wrap_pyfunction!(crashtest_try, module)?)?;
    module.add_function(wrap_pyfunction!(crashtest_run, module)?)
}

/// How states are tried: the interpreter as a worker's program, with its arguments; bytes of an atom; whether files are extracted
/// instead of mounted; states at once.
type How = (PathBuf, Vec<String>, Option<u32>, bool, usize);

/// A state, and the number of promises made before it if not all count.
#[derive(Debug, Serialize, Deserialize)]
struct Task(State, Option<usize>);

/// Serves a coordinator over standard input, in a process that has namespaces of its own.
#[pyfunction]
fn crashtest_work(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    py.detach(|| leyden_crashtest::work(&folder)).map_err(failed)
}

/// Records calls on files into `folder`, by a plan as JSON. Returns events, syncs and promises.
#[pyfunction]
fn crashtest_record(
    py: Python<'_>,
    folder: PathBuf,
    plan: &str,
    how: How,
) -> PyResult<(usize, usize, usize)> {
    let plan: Plan = serde_json::from_str(plan).map_err(errors::config)?;
    let counts = watched(py, None, |watch| {
        let session = Session::create_new(&folder)?;
        Pool::record_files(&session, &launcher(how), &plan, watch.cancel())?;
        let history = session.files(None)?;
        Ok((history.closed(), history.sync_counts().0, history.acks().len()))
    })?;
    counts.map_err(failed)
}

/// The recording in `folder`, and the files that make it, as JSON. Refuses a folder that this user
/// neither recorded nor trusts.
#[pyfunction]
fn crashtest_plan(py: Python<'_>, folder: PathBuf, trust: bool) -> PyResult<String> {
    let plan = py.detach(|| -> Result<_, CrashError> {
        let session = Session::open(&folder)?;
        let plan = session.plan()?;
        if trust {
            session.trust()?;
        } else if !session.is_trusted() {
            return Err(CrashError::Input(format!(
                "{}: you have not recorded this, and it runs commands\n  help: read its plan.json, then give trust=True",
                folder.display()
            )));
        }
        let recording = if plan.files.is_some() { session.files_recording() } else { session.recording() };
        Ok((plan, recording))
    });
    let (plan, recording) = plan.map_err(failed)?;
    serde_json::to_string(&(plan, recording)).map_err(errors::config)
}

/// Tries states, given as JSON, of what was recorded in `folder`: their outcomes in order, as JSON.
#[pyfunction]
fn crashtest_try(py: Python<'_>, folder: PathBuf, how: How, tasks: &str) -> PyResult<String> {
    let tasks: Vec<Task> = serde_json::from_str(tasks).map_err(errors::config)?;
    let outcomes = watched(py, None, |watch| {
        let mut pool = pool(&Session::open(&folder)?, how, watch.cancel())?;
        let mut outcomes = vec![None; tasks.len()];
        let mut all = tasks.iter().enumerate().filter(|(_, task)| task.1.is_none());
        let places: Vec<usize> = all.clone().map(|(place, _)| place).collect();
        pool.run(&mut || Some(all.next()?.1.0.clone()), &mut |number, _, outcome| {
            outcomes[places[number]] = Some(outcome);
            true
        })?;
        for (place, Task(state, acks)) in tasks.iter().enumerate() {
            if let Some(acks) = acks {
                outcomes[place] = Some(pool.run_promised(state, *acks)?);
            }
        }
        outcomes.into_iter().collect::<Option<Vec<Outcome>>>().ok_or(CrashError::Interrupted)
    })?;
    serde_json::to_string(&outcomes.map_err(failed)?).map_err(errors::config)
}

/// Tries states of what was recorded in `folder`: here, or by `spread`, which takes batches of them. Keeps the results in the folder,
/// and returns them as JSON, with a digest of all outcomes.
#[pyfunction]
#[pyo3(signature = (folder, models, states, seed, how, spread, batch, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
fn crashtest_run(
    py: Python<'_>,
    folder: PathBuf,
    models: Vec<String>,
    states: usize,
    seed: u64,
    how: How,
    spread: Option<Py<PyAny>>,
    batch: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let models = models.iter().map(|name| model(name)).collect::<PyResult<Vec<Model>>>()?;
    let limits = Limits { budget: None, states, required: None };
    let options = Explore { models, seed, limits, bank: None, even: false, faults: Vec::new() };
    let raised = Mutex::new(None);
    let came = watched(py, progress.as_ref(), |watch| {
        let spread = spread.map(|to| Spread { to, batch, raised: &raised, cancel: watch.cancel() });
        explored(&folder, how, spread, options, watch)
    })?;
    if let Some(error) = raised.into_inner().ok().flatten() {
        return Err(error);
    }
    let (summary, digest) = came.map_err(failed)?;
    Ok((serde_json::to_string(&summary).map_err(errors::config)?, digest))
}

fn model(name: &str) -> PyResult<Model> {
    let all = [Model::Adversarial, Model::Realistic, Model::Lying];
    all.into_iter().find(|model| model.name() == name).ok_or_else(|| {
        let help = "write adversarial, realistic or lying";
        errors::config(format!("there is no model `{name}`\n  help: {help}"))
    })
}

fn launcher((program, args, ..): How) -> Launcher {
    Launcher { program: Some(program), args }
}

fn pool<'a>(session: &Session, how: How, cancel: &'a AtomicBool) -> Result<Pool<'a>, CrashError> {
    let (_, _, atom_bytes, is_extracted, jobs) = how;
    let access = Access::of(&session.plan()?, is_extracted);
    Pool::new(session, &launcher(how), atom_bytes, access, jobs, cancel)
}

/// Explores, and keeps what came of it.
fn explored(
    folder: &Path,
    how: How,
    spread: Option<Spread<'_>>,
    mut options: Explore,
    watch: &Watch,
) -> Result<(Summary, String), CrashError> {
    let session = Session::open(folder)?;
    let plan = session.plan()?;
    options.faults = plan.faults.iter().map(ToString::to_string).collect();
    let mut progress = |progress: TrialProgress<'_>| watch.tell(progress.share.min(1.0));
    let (summary, digest) = if plan.files.is_some() {
        let history = session.files(how.2)?;
        let mut told = DigestedRunner::new(match spread {
            Some(spread) => Box::new(spread),
            None => Box::new(pool(&session, how, watch.cancel())?),
        });
        (explore_history(&mut told, &history, &options, &mut progress)?, told.digest)
    } else {
        let (timeline, recording) = (session.timeline(how.2)?, session.drive_recording()?);
        let mut told = DigestedRunner::new(if let Some(spread) = spread {
            Box::new(spread)
        } else {
            let mut pool = pool(&session, how, watch.cancel())?;
            pool.learn(&timeline);
            Box::new(pool)
        });
        (explore(&mut told, &timeline, Some(&recording), &options, &mut progress)?, told.digest)
    };
    session.keep(&summary)?;
    Ok((summary, format!("{digest:016x}")))
}

/// A runner, and a digest of what became of the states: the same in whatever order they ended.
struct DigestedRunner<'a> {
    runner: Box<dyn Runner + 'a>,
    digest: u64,
}

impl<'a> DigestedRunner<'a> {
    fn new(runner: Box<dyn Runner + 'a>) -> Self {
        Self { runner, digest: 0 }
    }
}

fn digest_of(state: &State, outcome: &Outcome) -> u64 {
    let mut digest = Digest::default();
    let told = serde_json::to_string(&(state, outcome.verdict)).expect("plain data");
    for bytes in told.as_bytes().chunks(8) {
        digest.add(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    digest.value()
}

impl Runner for DigestedRunner<'_> {
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        let Self { runner, digest } = self;
        runner.run(next, &mut |number, state, outcome| {
            *digest = digest.wrapping_add(digest_of(&state, &outcome));
            done(number, state, outcome)
        })
    }

    fn run_one(&mut self, state: &State) -> Result<Outcome, CrashError> {
        self.runner.run_one(state)
    }

    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
        self.runner.run_promised(state, acks)
    }

    fn guessed(&self) -> (u64, bool) {
        self.runner.guessed()
    }
}

/// Workers of a Python program: an object with `wants() -> bool`, `submit(number, tasks)` and `wait() -> (number, outcomes)`.
struct Spread<'a> {
    to: Py<PyAny>,
    /// States of a batch.
    batch: usize,
    /// The exception that the object raised.
    raised: &'a Mutex<Option<PyErr>>,
    cancel: &'a AtomicBool,
}

impl Spread<'_> {
    /// Calls the object. An exception ends the exploration, and is raised by whoever began it.
    fn call<T>(
        &self,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T, CrashError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(CrashError::Interrupted);
        }
        Python::attach(|py| call(self.to.bind(py))).map_err(|error| {
            if let Ok(mut raised) = self.raised.lock() {
                *raised = Some(error);
            }
            CrashError::Interrupted
        })
    }

    fn submit(&self, number: usize, tasks: &[Task]) -> Result<(), CrashError> {
        let text = serde_json::to_string(tasks).expect("plain data");
        self.call(|to| to.call_method1("submit", (number, text)).map(drop))
    }

    /// The next batch that is tried, and its outcomes.
    fn wait(&self) -> Result<(usize, Vec<Outcome>), CrashError> {
        let (number, text): (usize, String) = self.call(|to| to.call_method0("wait")?.extract())?;
        let outcomes = serde_json::from_str(&text);
        Ok((number, outcomes.map_err(|error| CrashError::Worker(error.to_string()))?))
    }

    fn tried(&self, task: Task) -> Result<Outcome, CrashError> {
        self.submit(0, &[task])?;
        let (_, outcomes) = self.wait()?;
        outcomes.into_iter().next().ok_or(CrashError::Interrupted)
    }
}

impl Runner for Spread<'_> {
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        let mut open: BTreeMap<usize, Vec<Task>> = BTreeMap::new();
        let (mut given, mut goes_on) = (0, true);
        loop {
            while goes_on && self.call(|to| to.call_method0("wants")?.extract())? {
                let states = std::iter::from_fn(&mut *next).take(self.batch);
                let tasks: Vec<Task> = states.map(|state| Task(state, None)).collect();
                goes_on = tasks.len() == self.batch;
                if !tasks.is_empty() {
                    self.submit(given, &tasks)?;
                    given += tasks.len();
                    open.insert(given - tasks.len(), tasks);
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            let (first, outcomes) = self.wait()?;
            let tasks = open.remove(&first).unwrap_or_default();
            if tasks.len() != outcomes.len() {
                let problem = format!("{} outcomes of {} states", outcomes.len(), tasks.len());
                return Err(CrashError::Worker(problem));
            }
            for (number, (Task(state, _), outcome)) in
                (first..).zip(tasks.into_iter().zip(outcomes))
            {
                goes_on &= done(number, state, outcome);
            }
        }
    }

    fn run_one(&mut self, state: &State) -> Result<Outcome, CrashError> {
        self.tried(Task(state.clone(), None))
    }

    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
        self.tried(Task(state.clone(), Some(acks)))
    }
}

fn failed(error: CrashError) -> PyErr {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    match error {
        CrashError::Interrupted => PyKeyboardInterrupt::new_err(text),
        CrashError::Io(..) | CrashError::Machine(_) | CrashError::Write(_) => {
            PyOSError::new_err(text)
        }
        CrashError::Worker(_) => errors::NativeRunError::new_err(text),
        _ => errors::config(text),
    }
}

//! Single runs and what is asked of one scenario.

use std::path::{Path, PathBuf};

use leyden_config::{Loaded, Set, TraceSource};
use leyden_record::Lifetime;
use leyden_run::{DriveCache, Hooks, Outcome, Phase, RunError};
use leyden_workload::trace::{self, OpenOptions};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::interrupt::watched;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(lifetime, module)?)?;
    module.add_function(wrap_pyfunction!(size, module)?)?;
    module.add_function(wrap_pyfunction!(worst_cases, module)?)?;
    module.add_function(wrap_pyfunction!(profile, module)?)?;
    module.add_function(wrap_pyfunction!(policies, module)?)
}

/// The scenario that `text` is, or that the file or bundled scenario `name` holds, with `sets` on top.
pub(crate) fn loaded(name: &str, text: Option<&str>, sets: &[String]) -> PyResult<Loaded> {
    let sets = sets.iter().map(|set| Set::of_option("set", set));
    let sets: Vec<Set> = sets.collect::<Result<_, _>>().map_err(errors::config)?;
    let loaded = match text {
        Some(text) => Loaded::from_text(name, text, &sets),
        None => Loaded::new(name, &sets),
    };
    loaded.map_err(|error| errors::load(&error))
}

/// A refusal of the run, at the place where its cause was written.
fn refused(loaded: &Loaded, error: &RunError) -> PyErr {
    match error {
        RunError::Config { key, problem } => {
            let fails =
                |scenario: &leyden_config::Scenario| leyden_run::validate(scenario).is_err();
            errors::config(loaded.complaint_of(key, problem, &fails))
        }
        error => errors::run(error),
    }
}

fn json_of(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| errors::NativeRunError::new_err(error.to_string()))
}

/// The cache in a folder, of at most so many bytes, for a build.
pub(crate) fn cache(at: Option<(PathBuf, u64, String)>) -> Option<DriveCache> {
    at.map(|(folder, most_bytes, build)| DriveCache::new(folder, &build, most_bytes))
}

#[pyfunction]
#[pyo3(signature = (name, text, sets))]
fn check(py: Python<'_>, name: &str, text: Option<&str>, sets: Vec<String>) -> PyResult<String> {
    py.detach(|| {
        let loaded = loaded(name, text, &sets)?;
        leyden_run::validate(&loaded.scenario).map_err(|error| refused(&loaded, &error))?;
        json_of(&loaded.scenario)
    })
}

/// The record of a run, and whether it was whole.
fn made(
    py: Python<'_>,
    loaded: &Loaded,
    drives: Option<(PathBuf, u64, String)>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Outcome> {
    let drives = cache(drives);
    let outcome = watched(py, progress, |watch| {
        let mut tell = |phase, fraction| {
            watch.tell(match phase {
                Phase::Preconditioning => fraction / 2.0,
                Phase::Running => f64::midpoint(1.0, fraction),
            });
        };
        let mut hooks = Hooks {
            cancel: Some(watch.cancel()),
            progress: Some(&mut tell),
            cache: drives.as_ref(),
            ..Hooks::default()
        };
        leyden_run::run(&loaded.scenario, &mut hooks)
    })?;
    outcome.map_err(|error| refused(loaded, &error))
}

#[pyfunction]
#[pyo3(signature = (name, text, sets, drives, progress))]
fn run(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    sets: Vec<String>,
    drives: Option<(PathBuf, u64, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let loaded = loaded(name, text, &sets)?;
    let mut record = made(py, &loaded, drives, progress.as_ref())?.record;
    crate::build().clone_into(&mut record.commit);
    json_of(&record)
}

#[pyfunction]
#[pyo3(signature = (name, text, sets, cycles, warranty_years, drives, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
fn lifetime(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    sets: Vec<String>,
    cycles: Option<u64>,
    warranty_years: f64,
    drives: Option<(PathBuf, u64, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let loaded = loaded(name, text, &sets)?;
    let own = u64::from(loaded.scenario.device.nand.endurance_cycles);
    let cycles = cycles.or((own > 0).then_some(own)).ok_or_else(|| {
        let help = "give cycles=N: the flash's data sheet has it";
        errors::config(format!(
            "{name} does not say how often a block can be erased\n  help: {help}"
        ))
    })?;
    let record = made(py, &loaded, drives, progress.as_ref())?.record;
    let life = Lifetime::of(&record, cycles, warranty_years).ok_or_else(|| {
        errors::config(
            "nothing wore the flash\n  help: give the run more writes than the buffer holds",
        )
    })?;
    json_of(&life)
}

#[pyfunction]
#[pyo3(signature = (name, text, sets, commands, jobs, progress))]
fn size(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    sets: Vec<String>,
    commands: u64,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let loaded = loaded(name, text, &sets)?;
    let sized = watched(py, progress.as_ref(), |watch| {
        let tell = |_: &str, fraction| watch.tell(fraction);
        let how = leyden_run::size::Watched { jobs, cancel: watch.cancel(), progress: &tell };
        leyden_run::size::size(&loaded.scenario, commands, &leyden_run::size::LESS, &how)
    })?;
    let (sizing, _) = sized.map_err(|error| refused(&loaded, &error))?;
    json_of(&sizing)
}

/// The worst cases of all banks, by arithmetic.
#[pyfunction]
fn worst_cases(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    sets: Vec<String>,
) -> PyResult<String> {
    let loaded = loaded(name, text, &sets)?;
    if loaded.scenario.device.zoned.is_some() {
        return Err(errors::config(format!(
            "{name} has a zoned drive, and worst cases compare protections of a mapping table\n  help: leyden.size runs it"
        )));
    }
    let worst = py.detach(|| {
        leyden_run::validate_configuration(&loaded.scenario)?;
        leyden_run::size::worst_cases(&loaded.scenario)
    });
    json_of(&worst.map_err(|error| refused(&loaded, &error))?)
}

#[pyfunction]
#[pyo3(signature = (path, format, progress))]
fn profile(
    py: Python<'_>,
    path: PathBuf,
    format: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = OpenOptions {
        format: format.as_deref().map(str::parse).transpose().map_err(errors::config)?,
        ..OpenOptions::default()
    };
    let name = path.display().to_string();
    let text = watched(py, progress.as_ref(), |watch| {
        let mut opened = TraceSource::called(Path::new(&path)).open(&name, &options)?;
        let (classes, cancel) = (opened.classes().clone(), watch.cancel());
        let mut read = 0_u64;
        let mut stopping = opened.by_ref().take_while(|_| {
            read += 1;
            !read.is_multiple_of(1 << 16) || !cancel.load(std::sync::atomic::Ordering::Relaxed)
        });
        let profile = trace::profile(&mut stopping, &classes)?;
        Ok((opened.format().name(), profile))
    })?;
    let (format, profile) = text.map_err(|error: trace::TraceError| errors::config(error))?;
    json_of(&json!({ "format": format, "profile": profile }))
}

#[pyfunction]
fn policies() -> PyResult<String> {
    json_of(&leyden_config::policies())
}

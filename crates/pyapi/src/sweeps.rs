//! Plans, shards and their tables.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use leyden_sweep::{Options, Plan, Shard, SweepError};
use pyo3::prelude::*;

use crate::errors;
use crate::interrupt::watched;
use crate::runs::cache;
use crate::table::Table;

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plan_points, module)?)?;
    module.add_function(wrap_pyfunction!(plan_files, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_shard, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_merge, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_status, module)?)?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(read_table, module)?)
}

fn parsed(path: &Path, text: &str) -> PyResult<Plan> {
    let plan = Plan::parse(path, text).map_err(|error| errors::sweep(&error))?;
    plan.check().map_err(|error| errors::load(&error))?;
    Ok(plan)
}

/// How many points a plan has, and its varied columns.
#[pyfunction]
fn plan_points(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<(u64, Vec<String>)> {
    py.detach(|| {
        let plan = parsed(&path, text)?;
        Ok((plan.len(), plan.columns()))
    })
}

/// The files that a plan's points are made of, on this machine's disks.
#[pyfunction]
fn plan_files(py: Python<'_>, path: PathBuf, text: &str) -> PyResult<Vec<PathBuf>> {
    py.detach(|| {
        let plan = parsed(&path, text)?;
        plan.files().map_err(|error| errors::load(&error))
    })
}

/// Runs a shard into `folder`. Returns its points, those run now, and those that failed.
#[pyfunction]
#[pyo3(signature = (path, text, shard, folder, jobs, with_series, retry_failed, drives, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
fn sweep_shard(
    py: Python<'_>,
    path: PathBuf,
    text: &str,
    shard: &str,
    folder: PathBuf,
    jobs: usize,
    with_series: bool,
    retry_failed: bool,
    drives: Option<(PathBuf, u64, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, u64)> {
    let plan = parsed(&path, text)?;
    let shard: Shard = shard.parse().map_err(errors::config)?;
    let drives = cache(drives);
    let done = watched(py, progress.as_ref(), |watch| {
        let options = Options {
            jobs,
            build: &crate::build(),
            with_series,
            retry_failed,
            cache: drives.as_ref(),
            cancel: watch.cancel(),
            progress: &|fraction| watch.tell(fraction),
            note: &|_| {},
        };
        leyden_sweep::run_shard(&plan, shard, &folder, &options)
    })?;
    let done = done.map_err(|error| errors::sweep(&error))?;
    Ok((done.points, done.made, done.failed))
}

/// Joins a sweep's parts. Returns the rows.
#[pyfunction]
#[pyo3(signature = (folder, to, series, is_partial))]
fn sweep_merge(
    py: Python<'_>,
    folder: PathBuf,
    to: PathBuf,
    series: Option<PathBuf>,
    is_partial: bool,
) -> PyResult<u64> {
    let merged = py.detach(|| leyden_sweep::merge(&folder, &to, series.as_deref(), is_partial));
    merged.map(|merged| merged.rows).map_err(|error| errors::sweep(&error))
}

/// Shards in all, those that are whole, and the numbers of those that are missing.
#[pyfunction]
fn sweep_status(py: Python<'_>, folder: PathBuf) -> PyResult<(u32, u32, Vec<u32>)> {
    let status =
        py.detach(|| leyden_sweep::status(&folder)).map_err(|error| errors::sweep(&error))?;
    Ok((status.shards, status.whole, status.missing))
}

/// The points of all plans, one after another, as one table.
#[pyfunction]
#[pyo3(signature = (plans, jobs, drives, progress))]
fn compare(
    py: Python<'_>,
    plans: Vec<(PathBuf, String, Option<String>)>,
    jobs: usize,
    drives: Option<(PathBuf, u64, String)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Table> {
    let parse = |(path, text, base): (PathBuf, String, Option<String>)| {
        let plan = Plan::parse(&path, &text).map_err(|error| errors::sweep(&error))?;
        let plan = match base {
            Some(base) => plan.on_text(base),
            None => plan,
        };
        plan.check().map_err(|error| errors::load(&error))?;
        Ok(plan)
    };
    let plans: Vec<Plan> = plans.into_iter().map(parse).collect::<PyResult<_>>()?;
    let drives = cache(drives);
    let all = plans.len().max(1) as f64;
    let batches = watched(py, progress.as_ref(), |watch| {
        let each = plans.iter().enumerate().map(|(number, plan)| {
            let options = Options {
                jobs,
                build: &crate::build(),
                with_series: false,
                retry_failed: false,
                cache: drives.as_ref(),
                cancel: watch.cancel(),
                progress: &|fraction| watch.tell((number as f64 + fraction) / all),
                note: &|_| {},
            };
            run_plan(plan, &options)
        });
        each.collect::<Result<Vec<_>, SweepError>>()
    })?;
    let batches = batches.map_err(|error| errors::sweep(&error))?;
    Ok(Table::new(leyden_sweep::table::stacked(&plans, &batches)))
}

/// The whole plan's table, by way of a folder that is gone afterwards.
fn run_plan(plan: &Plan, options: &Options<'_>) -> Result<RecordBatch, SweepError> {
    let failed = |source| SweepError::Read { path: std::env::temp_dir(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    leyden_sweep::run_shard(plan, Shard::WHOLE, folder.path(), options)?;
    let merged = folder.path().join("runs.parquet");
    leyden_sweep::merge(folder.path(), &merged, None, false)?;
    leyden_sweep::read_table(&merged)
}

/// A Parquet file of a sweep as a table.
#[pyfunction]
fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let batch = py.detach(|| leyden_sweep::read_table(&path));
    batch.map(Table::new).map_err(|error| errors::sweep(&error))
}

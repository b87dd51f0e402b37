//! Torture of seeds.

use leyden_torture::Subject;
use leyden_torture::campaign::Campaign;
use pyo3::prelude::*;

use crate::errors;
use crate::interrupt::watched;

/// The summary of a campaign over `seeds` seeds from `start` on, as JSON.
#[pyfunction]
#[pyo3(signature = (start, seeds, kind, jobs, progress))]
pub(crate) fn torture(
    py: Python<'_>,
    start: u64,
    seeds: u64,
    kind: &str,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let subject = match kind {
        "conventional" => Subject::Conventional,
        "zoned" => Subject::Zoned,
        "zoned_block" => Subject::ZonedBlock,
        other => {
            let help = "write conventional, zoned or zoned_block";
            return Err(errors::config(format!(
                "there is no kind of drive `{other}`\n  help: {help}"
            )));
        }
    };
    let campaign = Campaign { subject, start, seeds, threads: jobs, state: None, guided: false };
    let summary = watched(py, progress.as_ref(), |watch| {
        let mut tell = |progress: leyden_torture::campaign::Progress<'_>| {
            watch.tell(progress.done as f64 / progress.seeds.max(1) as f64);
        };
        campaign.run(watch.cancel(), &mut tell)
    })?;
    let summary = summary.map_err(errors::config)?;
    serde_json::to_string(&summary).map_err(errors::config)
}

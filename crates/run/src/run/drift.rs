//! Whether the drive that a run measured was the same at its end as at its beginning.

use leyden_config::{PreconditionKind, Scenario};
use leyden_record::RunRecord;

/// More than this from the first third of a run to the last, or from a run to the next, and it was not in a steady state.
pub(super) const MOST_DRIFT: f64 = 0.05;

/// A warning if jobs, which ask for the same from beginning to end, saw another drive at the end than at the
/// beginning, though it was brought into a steady state.
pub(super) fn warning(scenario: &Scenario, record: &RunRecord) -> Option<String> {
    let is_aged =
        matches!(scenario.precondition.kind, PreconditionKind::Steady | PreconditionKind::Sampled)
            || scenario.settling_ramp().is_some();
    let drift = record.steadiness.drift()?;
    if !is_aged || !scenario.workload.is_of_jobs() || drift.abs() <= MOST_DRIFT {
        return None;
    }
    let [first, .., last] = record.steadiness.waf_by_third[..] else { return None };
    Some(format!(
        "the drive was not in a steady state: write amplification went from {first:.2} in the first third of \
         the measured part to {last:.2} in the last; let it settle under this very work \
         (run.ramp.settle = \"1 %\"), or leave out more of it (run.ramp.requests)"
    ))
}

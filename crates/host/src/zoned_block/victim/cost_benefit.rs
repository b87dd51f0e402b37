//! Cost-benefit, as log-structured file systems clean (Kawaguchi et al., USENIX 1995).

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, ReclaimPolicy};

/// See the registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CostBenefit {}

/// Age, and blocks that need not be copied, over blocks that must be: as integers, to be compared crosswise. A merge
/// may copy more than a zone holds of data; it gains least.
fn value(it: &Candidate) -> (u128, u128) {
    let gained = u128::from(it.zone_blocks.saturating_sub(it.to_copy)) + 1;
    (u128::from(it.age + 1) * gained, u128::from(it.to_copy))
}

fn compare(a: &Candidate, b: &Candidate) -> Ordering {
    let ((a_up, a_down), (b_up, b_down)) = (value(a), value(b));
    match (a_down, b_down) {
        (0, 0) => a_up.cmp(&b_up),
        _ => (a_up * b_down).cmp(&(b_up * a_down)),
    }
}

impl ReclaimPolicy for CostBenefit {
    fn victim(&self, candidates: &[Candidate]) -> Option<usize> {
        let all = candidates.iter().enumerate();
        all.max_by(|(_, a), (_, b)| compare(a, b)).map(|(number, _)| number)
    }
}

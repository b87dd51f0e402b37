//! Hot and cold chunks told apart by how much is written to them.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, ReclaimPolicy};

/// See the registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Coldest {}

impl ReclaimPolicy for Coldest {
    fn victim(&self, candidates: &[Candidate]) -> Option<usize> {
        let all = candidates.iter().enumerate();
        all.min_by_key(|(_, it)| (it.heat, Reverse(it.age))).map(|(number, _)| number)
    }
}

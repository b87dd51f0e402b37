//! `oldest`: in turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ZoneSchedule, ZoneView, first_by};

/// The zone that has waited longest for its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oldest {}

impl ZoneSchedule for Oldest {
    fn next(&self, zones: &[ZoneView]) -> usize {
        first_by(zones, |zone| zone.since)
    }
}

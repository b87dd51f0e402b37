//! `fullest`: long runs of one zone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ZoneSchedule, ZoneView, first_by};

/// The zone with the most data; of equals the one with the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fullest {}

impl ZoneSchedule for Fullest {
    fn next(&self, zones: &[ZoneView]) -> usize {
        first_by(zones, |zone| (std::cmp::Reverse(zone.dirty), zone.since))
    }
}

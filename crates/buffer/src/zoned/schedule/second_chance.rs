//! `second_chance`: data that is read stays a little longer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ZoneSchedule, ZoneView, first_by};

/// The zone that has waited longest, of those that were not read from if there are such.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecondChance {}

impl ZoneSchedule for SecondChance {
    fn next(&self, zones: &[ZoneView]) -> usize {
        first_by(zones, |zone| (zone.is_referenced, zone.since))
    }
}

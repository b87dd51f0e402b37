//! dm-zoned's choice (drivers/md/dm-zoned-metadata.c, `dmz_get_rnd_zone_for_reclaim`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Candidate, ReclaimPolicy};

/// See the registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Lru {}

impl ReclaimPolicy for Lru {
    fn victim(&self, candidates: &[Candidate]) -> Option<usize> {
        let all = || candidates.iter().enumerate();
        let plain = all().filter(|(_, it)| !it.is_buffer).max_by_key(|(_, it)| it.age);
        let heaviest = || all().max_by_key(|(_, it)| it.data_blocks);
        plain.or_else(heaviest).map(|(number, _)| number)
    }
}

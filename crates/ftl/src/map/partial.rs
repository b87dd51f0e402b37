//! `partial`: only so many mapping pages may be dirty; the least recently used is written back.
//!
//! Hexa (section III): "When the dirty pages of mapping table become more than the maximum number of
//! protected pages, Hexa flushes them to flash memory based on the LRU algorithm."

use leyden_sim::Ratio;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Capacitors protect a share of the mapping table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Partial {
    /// Share of the table's mapping pages that may be dirty at once. Rounded down to pages, but never
    /// fewer than one flash page's units may need.
    pub protected: Ratio,
}

impl Default for Partial {
    /// 10 %: where Hexa still reaches 94 % of the speed of full protection.
    fn default() -> Self {
        Self { protected: Ratio::from_percent(10) }
    }
}

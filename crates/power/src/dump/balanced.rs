//! Balanced dump: "balanced flush" in Selective-PLP (section 4.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each page goes to the die that is free first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Balanced {}

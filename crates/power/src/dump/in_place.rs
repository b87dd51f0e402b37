//! Dump in place: "normal flush" in Selective-PLP (section 4.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Each page goes to the die its address names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InPlace {}

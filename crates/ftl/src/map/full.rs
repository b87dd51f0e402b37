//! `full`: the whole table is protected; nothing of it is written while the power is on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Capacitors protect the whole mapping table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Full {}

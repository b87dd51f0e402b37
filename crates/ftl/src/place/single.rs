//! `single`: one stream for everything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stream for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Single {}

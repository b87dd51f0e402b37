//! `off`: logs lie among other data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Logs lie among other data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Off {}

//! `hinted`: a log is what the host says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A log is what the host says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hinted {}

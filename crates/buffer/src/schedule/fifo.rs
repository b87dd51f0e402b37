//! `fifo`: in order of arrival.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fifo {}

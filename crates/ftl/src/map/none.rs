//! `none`: the table is not protected; recovery scans every page's out-of-band area.
//!
//! The out-of-band area names a unit's logical page and the order in which it was written, so the
//! newest copy of everything written can be found. What cannot be found is a trim: nothing is written
//! for it. So a mapping page that a trim has changed is written at once, and stands for its entries
//! against anything older.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nothing protects the mapping table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unprotected {}

//! `off`: no block is collected for its wear.

use leyden_nand::BlockId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LevelPolicy, WearView};

/// None.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Off {}

impl LevelPolicy for Off {
    fn block(&self, _: &WearView<'_>) -> Option<BlockId> {
        None
    }
}

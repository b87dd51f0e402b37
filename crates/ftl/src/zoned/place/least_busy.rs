//! `least_busy`: streams that are written at once get dies of their own.

use leyden_nand::DieId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DieView, PlacePolicy};

/// The die on which the fewest sets are being filled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeastBusy {}

impl PlacePolicy for LeastBusy {
    fn die(&self, dies: &[DieView]) -> Option<DieId> {
        dies.iter().min_by_key(|die| (die.open_sets, die.distance)).map(|die| die.die)
    }
}

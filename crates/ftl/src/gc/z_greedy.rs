//! `z_greedy`: the most invalid units, less the zombies, which will be invalid for nothing soon.
//!
//! Zombie Chasing, section 3.2.1: a block with zombies is put off, as its collection will cost less
//! once they are dead; by no more than half of its invalid units, as no more zombies die while the
//! space of another block is filled.

use leyden_nand::{BlockId, DieId};
use leyden_sim::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Order, VictimIndex, VictimPolicy};

/// The block with the largest i - min(z, i / 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZGreedy {}

impl VictimPolicy for ZGreedy {
    fn victim(&self, index: &VictimIndex, die: DieId, _: Time) -> Option<BlockId> {
        index.candidates(die).next().map(|candidate| candidate.block)
    }

    fn order(&self) -> Order {
        Order::Score
    }
}

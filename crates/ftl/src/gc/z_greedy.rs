//! `z_greedy`: the most invalid units, less the zombies, which will be invalid for nothing soon.
//!
//! Zombie Chasing, section 3.2.1: a block with zombies is put off, as its collection will cost less
//! once they are dead; by no more than half of its invalid units, as no more zombies die while the
//! space of another block is filled.

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::tests::{Block, Twin};
use super::{DieView, Order, VictimPolicy};

/// The block with the largest i - min(z, i / 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZGreedy {}

impl VictimPolicy for ZGreedy {
    fn victim(&self, blocks: &DieView<'_>, _: &mut Rng) -> Option<BlockId> {
        blocks.by_rank().next().map(|candidate| candidate.block)
    }

    fn order(&self) -> Order {
        Order::Score
    }

    #[cfg(test)]
    fn is_right(&self, chosen: &Block, die: &Twin<'_>) -> bool {
        chosen.id == die.first_by(|block| (std::cmp::Reverse(block.score()), block.scored))
    }
}

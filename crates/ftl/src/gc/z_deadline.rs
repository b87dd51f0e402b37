//! `z_deadline`: (age x i / 2v) x i / (i + z x age / d): what the block will give anyway is not counted.
//!
//! Our own; beyond Zombie Chasing. Age says that a block that has kept its data for so long will keep it
//! for as long again. That is not so of zombies: hints come true at an age that the drive learns
//! ([`DieView::lead`]), which is the deadline by which the host's flusher, or a database's checkpoint,
//! writes. If it is d, then z x age / d zombies die in the time that age stands for, and of the i + that
//! many units that would be garbage then, a collection now gains i. Other than equations 2 and 3, which
//! take the same half of the invalid units off every block that has enough zombies, this still tells
//! blocks apart when zombies are everywhere.

use leyden_nand::BlockId;
use leyden_sim::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::tests::{Block, Twin};
use super::worth::{Worth, most_worth};
use super::{DieView, VictimPolicy};

/// The block with the largest (age x i / 2v) x i / (i + z x age / d).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZDeadline {}

impl VictimPolicy for ZDeadline {
    /// Before the first hint has come true, the choice is that of `cost_benefit`.
    fn victim(&self, blocks: &DieView<'_>, _: &mut Rng) -> Option<BlockId> {
        let (units, now) = (blocks.units_per_block(), blocks.now());
        most_worth(blocks, |candidate, zombies| {
            let worth = Worth::of(candidate, 0, units, now);
            match blocks.lead() {
                Some(lead) if zombies > 0 => {
                    worth.less_what_dies_anyway(candidate, zombies, units, lead, now)
                }
                _ => worth,
            }
        })
    }

    fn depends_on_time(&self) -> bool {
        true
    }

    fn asks_for_lead(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn is_right(&self, chosen: &Block, die: &Twin<'_>) -> bool {
        let Some(lead) = die.lead else { return die.has_none_above(chosen, Block::benefit) };
        // To 1/256 of the last factor.
        let worth = |block: &Block, now| {
            let (benefit, cost) = block.benefit(now);
            let dying = 256 * u64::from(block.zombies) * block.age(now);
            (256 * benefit, cost * (256 + dying / (lead * block.invalid().max(1))))
        };
        die.has_none_above(chosen, worth)
    }
}

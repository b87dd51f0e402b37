//! Ranks of blocks.

use serde::{Deserialize, Serialize};

/// The rank of blocks: a lower one is collected sooner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Order {
    /// Valid units.
    #[default]
    Valid,
    /// How much less than all of a block's units equation 2 of Zombie Chasing gives, in halves.
    Score,
}

impl Order {
    /// Ranks of a block of `units` units.
    pub(super) const fn ranks(self, units: u32) -> u32 {
        match self {
            Self::Valid => units + 1,
            Self::Score => 2 * units + 1,
        }
    }

    #[inline]
    pub(super) fn rank(self, units: u32, valid: u32, zombies: u32) -> u32 {
        match self {
            Self::Valid => valid,
            Self::Score => 2 * units - score_in_halves(units - valid, zombies),
        }
    }
}

/// Twice the benefit of collecting a block with `invalid` units, when `zombies` of the others will be
/// dead soon: i - min(z, i / 2) (Zombie Chasing, equation 2).
#[inline]
pub fn score_in_halves(invalid: u32, zombies: u32) -> u32 {
    2 * invalid - invalid.min(2 * zombies)
}

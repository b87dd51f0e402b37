//! The system area's entry for a block.

use serde::{Deserialize, Serialize};

use crate::{BlockUse, Health};

/// The use of a block, its health, and how far it is written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Block {
    /// Pages programmed since the last erase.
    pub(super) written_pages: u32,
    pub(super) erases: u32,
    /// `None` of an erased block.
    pub(super) used_for: Option<BlockUse>,
    pub(super) health: Health,
    /// Its erase was broken off.
    pub(super) is_poisoned: bool,
}

impl Block {
    /// True if what is programmed into it cannot be read: a program in it has failed, its erase was broken off, it is worn
    /// (after `endurance_cycles` erases; never, if that is 0) or bad.
    pub(super) fn spoils(&self, endurance_cycles: u32) -> bool {
        self.health != Health::Good || self.is_unfit(endurance_cycles)
    }

    /// The same of a dump, which goes on in a block in which one of its programs has failed.
    pub(super) fn is_unfit(&self, endurance_cycles: u32) -> bool {
        let is_worn = endurance_cycles != 0 && self.erases >= endurance_cycles;
        self.health == Health::Bad || self.is_poisoned || is_worn
    }
}

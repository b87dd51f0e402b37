//! A slot of the buffer.

use leyden_nand::{Content, Lpn};
use serde::{Deserialize, Serialize};

use crate::PoolKind;
use crate::barrier::Epoch;

/// A place in the buffer that holds one mapping unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlotId(pub u32);

impl SlotId {
    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

/// In place of a newer version: there was one, and it is on flash or has been trimmed.
pub(crate) const SUPERSEDED: u32 = u32::MAX - 1;

/// The state of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum State {
    Free,
    /// In the schedule.
    Dirty,
    /// Taken from the schedule (or urgent), waits for the rest of its page.
    Staged,
    /// Its program is under way.
    InFlight,
    /// Its program is under way, but its data is not wanted any more: overwritten and settled, or
    /// trimmed.
    Stale,
}

/// The content of a slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub(crate) struct Slot<C> {
    pub(crate) lpn: Lpn,
    pub(crate) state: State,
    pub(crate) pool: PoolKind,
    /// Older version, if any: in flight, or in a buffer that does not coalesce.
    pub(crate) older: u32,
    /// Newer version, if any: of slots in flight, or in a buffer that does not coalesce.
    pub(crate) newer: u32,
    /// Of no meaning in the protected pool: no FLUSH waits for what is there.
    pub(crate) epoch: Epoch,
    pub(crate) content: C,
}

impl<C> Slot<C> {
    /// True if its program has not started.
    pub(crate) const fn is_dirty(&self) -> bool {
        matches!(self.state, State::Dirty | State::Staged)
    }
}

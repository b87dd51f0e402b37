//! Answers of the buffer.

use crate::slot::SlotId;

/// The effect of a write on the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Took a free slot.
    Inserted(SlotId),
    /// Replaced buffered data.
    Coalesced(SlotId),
    /// There is no room.
    Full,
}

/// The state of a slot whose program failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failed {
    /// It is staged again.
    Again,
    /// It is free; this slot holds a newer version of its page, and will be written.
    LeftTo(SlotId),
    /// It is free; its data is obsolete.
    Unwanted,
}

/// A slot that a trim has freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Discarded {
    /// The slot.
    pub slot: SlotId,
    /// True if the caller had taken it, and must let go of it.
    pub staged: bool,
}

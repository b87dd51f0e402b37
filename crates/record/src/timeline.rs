//! Activity around one command of a run.

use leyden_device::{ActivityKind, Op};
use leyden_sim::Span;

/// A slow command, in times from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCommand {
    /// When the host asked for it.
    pub arrived: Span,
    /// When it completed.
    pub completed: Span,
}

/// Activity in a part of a run. Times count from the beginning of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Where it begins and ends.
    pub window: (Span, Span),
    /// The command it is about, if it is about one.
    pub slow: Option<SlowCommand>,
    /// Commands that were outstanding, in the order of their submission.
    pub commands: Vec<FollowedCommand>,
    /// Flash operations, in the order of their beginning.
    pub operations: Vec<FollowedOperation>,
    /// How full things were.
    pub levels: Vec<Levels>,
}

/// A command of the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedCommand {
    /// What.
    pub op: Op,
    /// Its first sector.
    pub lba: u64,
    /// Its sectors.
    pub sectors: u32,
    /// When the host asked for it.
    pub arrived: Span,
    /// When it was submitted to the drive.
    pub submitted: Span,
    /// When it completed; none if that was after the end.
    pub ended: Option<Span>,
}

/// A flash operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedOperation {
    /// Its die.
    pub die: u32,
    /// The die's channel.
    pub channel: u32,
    /// The kind of operation.
    pub kind: ActivityKind,
    /// Its page, or the block that is erased.
    pub address: u32,
    /// When it was seen to wait for its channel, from when until when.
    pub waited: Option<(Span, Span)>,
    /// On the channel.
    pub transfer: Option<(Span, Span)>,
    /// In the array.
    pub array: Option<(Span, Span)>,
}

/// How full things were at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// When.
    pub at: Span,
    /// Bytes in the write buffer.
    pub buffered_bytes: u64,
    /// Free blocks that data may have, of all dies.
    pub free_blocks: u64,
    /// Programs that had ended, and waited at the gate of the mapping table.
    pub at_gate: u64,
}

impl FollowedOperation {
    /// When it was first seen, or began.
    pub fn begin(&self) -> Span {
        let spans = [self.waited, self.transfer, self.array];
        spans.into_iter().flatten().map(|span| span.0).min().unwrap_or(Span::ZERO)
    }

    /// When it ended, or was last seen.
    pub fn end(&self) -> Span {
        let spans = [self.waited, self.transfer, self.array];
        spans.into_iter().flatten().map(|span| span.1).max().unwrap_or(Span::ZERO)
    }
}

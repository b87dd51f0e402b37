//! A die: its current operation, and its queue.

use std::collections::VecDeque;

use leyden_sim::{Span, Time};

use crate::{ChannelId, Kind, Operation};

/// How far the operation in progress is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing in progress.
    Idle,
    /// Data in the page register (or to come into it) waits for the channel.
    WaitingForChannel,
    /// On the channel, or past it: a program that has begun its transfer goes on to its end.
    Transferring,
    /// In the array, before any transfer.
    Array,
}

#[derive(Clone, Debug)]
pub(crate) struct Die {
    /// The bus it hangs on.
    pub(crate) channel: ChannelId,
    pub(crate) stage: Stage,
    /// In progress, unless idle.
    pub(crate) current: Option<Operation>,
    /// Host reads to do next.
    pub(crate) host_reads: VecDeque<Operation>,
    /// The next operation after them.
    pub(crate) accepted: Option<Operation>,
    /// Bumped whenever the die stops waiting for its channel: an older place there is void.
    pub(crate) ticket: u32,
    /// When the current operation began.
    pub(crate) began: Time,
    /// Time spent on operations.
    pub(crate) busy_time: Span,
}

impl Die {
    /// An idle die on `channel`.
    pub(crate) const fn new(channel: ChannelId) -> Self {
        Self {
            channel,
            stage: Stage::Idle,
            current: None,
            host_reads: VecDeque::new(),
            accepted: None,
            ticket: 0,
            began: Time::ZERO,
            busy_time: Span::ZERO,
        }
    }

    /// True if the die would accept an operation other than a host read.
    #[inline]
    pub(crate) fn accepts(&self) -> bool {
        self.accepted.is_none()
            && self.current.is_none_or(|current| matches!(current.kind, Kind::HostRead(_)))
    }

    /// True if a host read may push aside the current operation: a program whose transfer has not
    /// begun has changed nothing yet.
    #[inline]
    pub(crate) fn can_be_pushed_aside(&self) -> bool {
        self.stage == Stage::WaitingForChannel
            && self.current.is_some_and(|current| matches!(current.kind, Kind::Program(_)))
    }

    /// The next operation, if there is one.
    #[inline]
    pub(crate) fn take_next(&mut self) -> Option<Operation> {
        if self.host_reads.is_empty() { self.accepted.take() } else { self.host_reads.pop_front() }
    }
}

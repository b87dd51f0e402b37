//! A channel: one transfer at a time, and who waits for it.

use std::collections::VecDeque;

use leyden_sim::{Span, Time};

use crate::DieId;

/// What a die wants the channel for, most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// Data the host waits for.
    HostRead = 0,
    /// Data the drive reads for itself.
    Read = 1,
    /// Data to program.
    Program = 2,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    busy: bool,
    /// Dies waiting, by urgency; first come, first served within one. A die that gave up its place
    /// for a host read has a newer ticket than its entry here.
    waiting: [VecDeque<(DieId, u32)>; 3],
    /// Time spent transferring.
    pub(crate) busy_time: Span,
}

impl Channel {
    /// Takes the channel if it is free.
    #[inline]
    pub(crate) fn try_take(&mut self) -> bool {
        !std::mem::replace(&mut self.busy, true)
    }

    /// Queues a die for the channel.
    pub(crate) fn wait(&mut self, die: DieId, ticket: u32, urgency: Urgency) {
        self.waiting[urgency as usize].push_back((die, ticket));
    }

    /// Ends a transfer that began at `since`.
    #[inline]
    pub(crate) fn release(&mut self, since: Time, now: Time) {
        self.busy = false;
        self.busy_time += now - since;
    }

    /// The die to serve next, if one waits whose ticket is `current`.
    #[inline]
    pub(crate) fn next(&mut self, current: impl Fn(DieId, u32) -> bool) -> Option<DieId> {
        for queue in &mut self.waiting {
            while let Some((die, ticket)) = queue.pop_front() {
                if current(die, ticket) {
                    return Some(die);
                }
            }
        }
        None
    }
}

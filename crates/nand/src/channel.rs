//! A channel: one transfer at a time, and the dies waiting for it.

use std::collections::VecDeque;

use leyden_sim::{Span, Time};

use crate::DieId;

/// A die's purposes for the channel, most urgent first.
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
    /// When the transfer in progress ends. No event is scheduled unless a die waits: most
    /// transfers find the channel free, and cost no event of its own.
    busy_until: Time,
    /// A die waits, and will be woken at `busy_until`.
    wake_set: bool,
    /// Dies waiting, by urgency; first come, first served within one. A die that gave up its place
    /// for a host read has a newer ticket than its entry here.
    waiting: [VecDeque<(DieId, u32)>; 3],
    /// Time of all transfers that have begun.
    pub(crate) busy_time: Span,
}

impl Channel {
    /// True if a transfer may begin now: none is in progress, and no die waits.
    #[inline]
    pub(crate) fn is_free(&self, now: Time) -> bool {
        now >= self.busy_until && !self.wake_set
    }

    /// When the transfer in progress ends, or the last one has.
    pub(crate) const fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Drops all transfers and waiting dies: the power is gone.
    pub(crate) fn reset(&mut self, now: Time) {
        self.busy_until = now;
        self.wake_set = false;
        self.waiting.iter_mut().for_each(VecDeque::clear);
    }

    /// Begins a transfer.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time, span: Span) {
        self.busy_until = now + span;
        self.busy_time += span;
    }

    /// Queues a die. If it is the first, yields when the channel is to be woken.
    pub(crate) fn wait(&mut self, die: DieId, ticket: u32, urgency: Urgency) -> Option<Time> {
        self.waiting[urgency as usize].push_back((die, ticket));
        (!std::mem::replace(&mut self.wake_set, true)).then_some(self.busy_until)
    }

    /// The channel is woken: the die to serve next, if one still waits whose ticket is `current`.
    pub(crate) fn wake(&mut self, current: impl Fn(DieId, u32) -> bool) -> Option<DieId> {
        self.wake_set = false;
        for queue in &mut self.waiting {
            while let Some((die, ticket)) = queue.pop_front() {
                if current(die, ticket) {
                    return Some(die);
                }
            }
        }
        None
    }

    /// After a die was served: yields when to wake the channel again, if a die waits.
    pub(crate) fn wake_again(&mut self) -> Option<Time> {
        self.wake_set = self.waiting.iter().any(|queue| !queue.is_empty());
        self.wake_set.then_some(self.busy_until)
    }
}

//! The host interface: queue slots, the controller's time for each command, and the link.
//!
//! Three stages, each serving one command at a time in order, so their events need no heap: the
//! controller takes a command from its queue; a write's data comes in over the link; a read's data
//! goes out over it. The link carries data both ways at once.

use std::collections::VecDeque;

use leyden_sim::{BytesPerSec, Span, Time};

use super::requests::RequestId;
use crate::FrontendConfig;

/// A command on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrontendEvent {
    /// A command, with its data if it is a write, is in the controller.
    Arrived(RequestId),
    /// A read's data is with the host.
    Delivered(RequestId),
}

/// The commands in a stage, in the order in which they leave it.
#[derive(Clone, Debug)]
struct Stage {
    commands: VecDeque<(Time, RequestId)>,
    /// When the first of them leaves; [`Time::MAX`] if there is none.
    next: Time,
}

impl Stage {
    const fn new() -> Self {
        Self { commands: VecDeque::new(), next: Time::MAX }
    }

    #[inline]
    fn push(&mut self, leaves_at: Time, request: RequestId) {
        if self.commands.is_empty() {
            self.next = leaves_at;
        }
        self.commands.push_back((leaves_at, request));
    }

    /// The first command, if it leaves at or before `now`.
    #[inline]
    fn pop(&mut self, now: Time) -> Option<RequestId> {
        if self.next > now {
            return None;
        }
        let (_, request) = self.commands.pop_front()?;
        self.next = self.commands.front().map_or(Time::MAX, |&(time, _)| time);
        Some(request)
    }

    fn clear(&mut self) {
        *self = Self::new();
    }
}

#[derive(Clone, Debug)]
pub(super) struct Frontend {
    command: Span,
    link_rate: BytesPerSec,
    slots: usize,
    /// Commands that have a queue slot.
    taken: usize,
    /// Commands that wait in the host for one: since when, request and bytes to bring in.
    outside: VecDeque<(Time, RequestId, u64)>,
    controller_free: Time,
    link_in_free: Time,
    link_out_free: Time,
    without_data: Stage,
    with_data: Stage,
    outgoing: Stage,
    /// When the next command leaves one of these stages; [`Time::MAX`] if none will.
    next: Time,
    /// The length of the transfer computed last: most are alike.
    last_transfer: (u64, Span),
}

impl Frontend {
    pub(super) fn new(config: &FrontendConfig) -> Self {
        Self {
            command: config.command,
            link_rate: config.link_rate,
            // 2^32 at most, which a `usize` of 32 bits cannot hold.
            slots: (config.queues as usize).saturating_mul(config.queue_depth as usize),
            taken: 0,
            outside: VecDeque::new(),
            controller_free: Time::ZERO,
            link_in_free: Time::ZERO,
            link_out_free: Time::ZERO,
            without_data: Stage::new(),
            with_data: Stage::new(),
            outgoing: Stage::new(),
            next: Time::MAX,
            last_transfer: (0, Span::ZERO),
        }
    }

    /// Takes a command that brings `bytes` of data with it.
    #[inline]
    pub(super) fn submit(&mut self, now: Time, request: RequestId, bytes: u64) {
        if self.taken < self.slots {
            self.taken += 1;
            self.enter(now, request, bytes);
        } else {
            self.outside.push_back((now, request, bytes));
        }
    }

    /// A command has ended: its queue slot goes to the next one.
    #[inline]
    pub(super) fn leave(&mut self, now: Time) {
        match self.outside.pop_front() {
            // A late driver hears of an end after it has submitted what came later.
            Some((since, request, bytes)) => self.enter(now.max(since), request, bytes),
            None => self.taken -= 1,
        }
    }

    /// Sends `bytes` of a read to the host.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, request: RequestId, bytes: u64) {
        self.link_out_free = now.max(self.link_out_free) + self.transfer(bytes);
        self.outgoing.push(self.link_out_free, request);
        self.next = self.next.min(self.link_out_free);
    }

    /// Forgets every command: the power is gone.
    pub(super) fn lose_power(&mut self) {
        self.taken = 0;
        for queue in [&mut self.without_data, &mut self.with_data, &mut self.outgoing] {
            queue.clear();
        }
        self.next = Time::MAX;
        self.outside.clear();
        let free = Time::ZERO;
        (self.controller_free, self.link_in_free, self.link_out_free) = (free, free, free);
    }

    /// Takes no command in before `ready`.
    pub(super) fn hold_until(&mut self, ready: Time) {
        self.controller_free = ready;
    }

    /// When a command next arrives or is delivered; [`Time::MAX`] if none will, or only at the end of time.
    #[inline]
    pub(super) fn next_time(&self) -> Time {
        self.next
    }

    /// True if a command is to arrive or to be delivered.
    pub(super) fn has_passages(&self) -> bool {
        let stages = [&self.without_data, &self.with_data, &self.outgoing];
        stages.iter().any(|stage| !stage.commands.is_empty())
    }

    /// The next command to arrive or be delivered at `now`. At the same instant deliveries go
    /// first, then commands without data.
    #[inline]
    pub(super) fn next_passage(&mut self, now: Time) -> Option<FrontendEvent> {
        if self.next > now {
            return None;
        }
        let passage = if let Some(request) = self.outgoing.pop(now) {
            Some(FrontendEvent::Delivered(request))
        } else {
            let arrived = self.without_data.pop(now).or_else(|| self.with_data.pop(now));
            arrived.map(FrontendEvent::Arrived)
        };
        self.next = self.without_data.next.min(self.with_data.next).min(self.outgoing.next);
        passage
    }

    /// True if no command is anywhere between host and controller.
    pub(super) fn is_idle(&self) -> bool {
        self.taken == 0
    }

    #[inline]
    fn enter(&mut self, now: Time, request: RequestId, bytes: u64) {
        self.controller_free = now.max(self.controller_free) + self.command;
        if bytes == 0 {
            self.without_data.push(self.controller_free, request);
            self.next = self.next.min(self.controller_free);
        } else {
            let begin = self.controller_free.max(self.link_in_free);
            self.link_in_free = begin + self.transfer(bytes);
            self.with_data.push(self.link_in_free, request);
            self.next = self.next.min(self.link_in_free);
        }
    }

    #[inline]
    fn transfer(&mut self, bytes: u64) -> Span {
        if self.last_transfer.0 != bytes {
            self.last_transfer = (bytes, self.link_rate.time_for(bytes));
        }
        self.last_transfer.1
    }
}

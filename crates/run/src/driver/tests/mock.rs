//! A device that takes a fixed time per command and works on a fixed number at once.

use std::collections::VecDeque;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Hint, NoData, Op, Output, SECTOR_BYTES, Stats,
    Status,
};
use leyden_sim::{Span, Time};

pub(super) const CAPACITY_SECTORS: u64 = 1 << 20;

/// Something the device saw, for tests to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Submitted(Time, Op, u64),
    Completed(Time, Op, u64),
    /// First unit, and how many.
    Announced(Time, u32, u32),
}

pub(super) struct Mock {
    latency: Span,
    /// Commands worked on at once.
    parallel: usize,
    /// In the order they end: all take the same time.
    working: VecDeque<Completion<NoData>>,
    waiting: VecDeque<Completion<NoData>>,
    lbas: Vec<u64>,
    pub(super) seen: Vec<Seen>,
    pub(super) deepest: usize,
    /// Every command on this sector or above fails.
    pub(super) failing_from: u64,
    /// Never completes anything.
    pub(super) broken: bool,
    bytes_written: u64,
    advanced: Time,
}

impl Mock {
    pub(super) fn new(latency: Span, parallel: usize) -> Self {
        Self {
            latency,
            parallel,
            working: VecDeque::new(),
            waiting: VecDeque::new(),
            lbas: Vec::new(),
            seen: Vec::new(),
            deepest: 0,
            failing_from: u64::MAX,
            broken: false,
            bytes_written: 0,
            advanced: Time::ZERO,
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = super::amplified(self.bytes_written);
        stats.die_busy = vec![Span::from_ns(self.bytes_written)];
        stats
    }

    /// The power fails: what is under way is forgotten.
    pub(super) fn cut(&mut self) {
        self.working.clear();
        self.waiting.clear();
    }

    pub(super) fn submissions(&self) -> Vec<(Time, Op)> {
        let submitted = self.seen.iter().filter_map(|seen| match seen {
            Seen::Submitted(time, op, _) => Some((*time, *op)),
            Seen::Completed(..) | Seen::Announced(..) => None,
        });
        submitted.collect()
    }

    fn start_waiting(&mut self, now: Time) {
        while self.working.len() < self.parallel
            && let Some(mut completion) = self.waiting.pop_front()
        {
            completion.time = now + self.latency;
            self.working.push_back(completion);
        }
    }
}

impl BlockDevice<NoData> for Mock {
    fn submit(&mut self, now: Time, command: Command<NoData>) -> CommandId {
        assert!(now >= self.advanced, "time ran backwards");
        assert!(
            self.next_event().is_none_or(|event| event > now || self.latency == Span::ZERO),
            "what is due comes before what is asked"
        );
        let id = CommandId(self.lbas.len() as u64);
        let (lba, sectors) = command.extent().unwrap_or_default();
        self.lbas.push(lba.0);
        self.seen.push(Seen::Submitted(now, command.op(), lba.0));
        let failed = lba.0 >= self.failing_from;
        if command.op() == Op::Write && !failed {
            self.bytes_written += u64::from(sectors) * SECTOR_BYTES;
        }
        self.waiting.push_back(Completion {
            id,
            op: command.op(),
            tag: command.tag,
            submitted: now,
            time: now,
            status: if failed { Status::WriteFault } else { Status::Success },
            output: Output::None,
        });
        if !self.broken {
            self.start_waiting(now);
        }
        self.deepest = self.deepest.max(self.working.len() + self.waiting.len());
        id
    }

    fn announce(&mut self, now: Time, hint: Hint) {
        assert!(now >= self.advanced, "time ran backwards");
        self.seen.push(Seen::Announced(now, hint.first_unit(), hint.units()));
    }

    fn next_event(&self) -> Option<Time> {
        self.working.front().map(|completion| completion.time)
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<NoData>>) {
        assert!(now >= self.advanced, "time ran backwards");
        self.advanced = now;
        while self.next_event().is_some_and(|time| time <= now)
            && let Some(completion) = self.working.pop_front()
        {
            let time = completion.time;
            let lba = self.lbas[completion.id.0 as usize];
            self.seen.push(Seen::Completed(time, completion.op, lba));
            completions.push(completion);
            self.start_waiting(time);
        }
    }

    fn capacity_sectors(&self) -> u64 {
        CAPACITY_SECTORS
    }
}

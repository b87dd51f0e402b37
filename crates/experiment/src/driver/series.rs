//! What happened over time, in at most [`MAX_INTERVALS`] intervals of equal simulated length.
//!
//! The length is not known beforehand: it starts small, and when the intervals are used up,
//! neighbours are merged and the length doubles. Merging only adds counters, so that the sums over
//! the series are the run's totals, exactly.

use leyden_device::{Programs, Reads, Stats};
use leyden_sim::{Span, Time, counters};

/// The most intervals kept; an even number.
pub(super) const MAX_INTERVALS: usize = 1024;
/// The length of the first intervals.
pub(super) const FIRST_INTERVAL: Span = Span::from_us(100);

/// What the host saw in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) reads: Direction,
    pub(super) writes: Direction,
}

/// Reads or writes of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) latency_sum_ns: u64,
    pub(super) latency_max_ns: u64,
}

impl Direction {
    #[inline]
    pub(super) fn record(&mut self, bytes: u64, latency_ns: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(latency_ns);
        self.latency_max_ns = self.latency_max_ns.max(latency_ns);
    }

    fn merge(&mut self, later: &Self) {
        self.count += later.count;
        self.bytes += later.bytes;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(later.latency_sum_ns);
        self.latency_max_ns = self.latency_max_ns.max(later.latency_max_ns);
    }
}

counters! {
    /// The device's counters that the series shows, at the end of an interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Snapshot {
        pub(super) programs: Programs,
        pub(super) reads: Reads,
        /// That the drive was asked to write.
        pub(super) units_written: u64,
        /// Summed over dies.
        pub(super) die_busy: Span,
        /// Summed over channels.
        pub(super) channel_busy: Span,
    }
}

impl Snapshot {
    pub(super) fn new(stats: &Stats) -> Self {
        let sum = |spans: &[Span]| spans.iter().fold(Span::ZERO, |sum, span| sum + *span);
        Self {
            programs: stats.ftl.programs,
            reads: stats.ftl.reads,
            units_written: stats.ssd.units_written,
            die_busy: sum(&stats.die_busy),
            channel_busy: sum(&stats.channel_busy),
        }
    }
}

/// A finished interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) host: Interval,
    /// The device's counters at its end.
    pub(super) device: Snapshot,
    pub(super) end: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Intervals {
    pub(super) start: Time,
    pub(super) before: Snapshot,
    pub(super) length: Span,
    pub(super) closed: Vec<Closed>,
    pub(super) current: Interval,
    /// When the current interval ends.
    next_end: Time,
}

impl Intervals {
    pub(super) fn new(start: Time, before: Snapshot) -> Self {
        Self {
            start,
            before,
            length: FIRST_INTERVAL,
            closed: Vec::with_capacity(MAX_INTERVALS),
            current: Interval::default(),
            next_end: start + FIRST_INTERVAL,
        }
    }

    #[inline]
    pub(super) fn next_end(&self) -> Time {
        self.next_end
    }

    /// Ends the current interval, whose time has come.
    pub(super) fn close(&mut self, device: Snapshot) {
        self.push(device, self.next_end);
        if self.closed.len() == MAX_INTERVALS {
            self.double();
        }
        self.next_end += self.length;
    }

    /// Ends the current interval early, with the run.
    pub(super) fn finish(&mut self, device: Snapshot, end: Time) {
        let last = self.closed.last().map_or(self.start, |closed| closed.end);
        if end > last || self.current != Interval::default() {
            self.push(device, end.max(last));
        }
    }

    fn push(&mut self, device: Snapshot, end: Time) {
        self.closed.push(Closed { host: std::mem::take(&mut self.current), device, end });
    }

    fn double(&mut self) {
        for pair in 0..MAX_INTERVALS / 2 {
            let (mut first, second) = (self.closed[2 * pair], self.closed[2 * pair + 1]);
            first.host.reads.merge(&second.host.reads);
            first.host.writes.merge(&second.host.writes);
            first.device = second.device;
            first.end = second.end;
            self.closed[pair] = first;
        }
        self.closed.truncate(MAX_INTERVALS / 2);
        self.length = self.length.saturating_mul(2);
    }
}

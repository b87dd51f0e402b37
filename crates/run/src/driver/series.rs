//! Counters over time, in at most [`MAX_INTERVALS`] intervals of equal simulated length.
//!
//! The length is not known beforehand: it starts small, and when the intervals are used up,
//! neighbours are merged and the length doubles. Merging only adds counters, so that the sums over
//! the series are the run's totals, exactly.

use leyden_device::{Programs, Reads, Stats};
use leyden_sim::{Level, Span, Time, counters};

use super::buckets::{Filled, Filling};

/// The most intervals kept; an even number.
pub(super) const MAX_INTERVALS: usize = 1024;
/// The length of the first intervals.
pub(super) const FIRST_INTERVAL: Span = Span::from_us(100);

/// The host's view of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) reads: Direction,
    pub(super) writes: Direction,
    pub(super) flushes: Direction,
    /// Commands outstanding, summed over the nanoseconds of the interval.
    pub(super) outstanding_ns: u64,
}

/// Reads, writes or flushes of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) latency_sum_ns: u64,
    pub(super) latency_max_ns: u64,
    pub(super) latencies: Filled,
}

/// Reads, writes or flushes of the interval that goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    so_far: Direction,
    latencies: Filling,
}

impl Running {
    #[inline]
    pub(super) fn record(&mut self, bytes: u64, latency_ns: u64) {
        let so_far = &mut self.so_far;
        so_far.count += 1;
        so_far.bytes += bytes;
        so_far.latency_sum_ns = so_far.latency_sum_ns.saturating_add(latency_ns);
        so_far.latency_max_ns = so_far.latency_max_ns.max(latency_ns);
        self.latencies.record(latency_ns);
    }

    fn take(&mut self) -> Direction {
        let latencies = self.latencies.take();
        Direction { latencies, ..std::mem::take(&mut self.so_far) }
    }
}

/// Commands outstanding over time. Between two moments the sum of each command's time outstanding is the
/// sum of its ends less that of its begins, so that a command costs one addition at each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outstanding {
    commands: u64,
    /// Of all that have begun, less that of all that have ended; modulo 2^64.
    begins_less_ends_ns: u64,
    /// The sum up to the last interval's end.
    before_ns: u64,
}

impl Outstanding {
    #[inline]
    pub(super) fn begin(&mut self, at: Time) {
        self.commands += 1;
        self.begins_less_ends_ns = self.begins_less_ends_ns.wrapping_add(at.as_ns());
    }

    #[inline]
    pub(super) fn end(&mut self, at: Time) {
        self.commands -= 1;
        self.begins_less_ends_ns = self.begins_less_ends_ns.wrapping_sub(at.as_ns());
    }

    /// The sum since this was last asked.
    fn since_last(&mut self, now: Time) -> u64 {
        let sum = self.commands.wrapping_mul(now.as_ns()).wrapping_sub(self.begins_less_ends_ns);
        let grown = sum.wrapping_sub(self.before_ns);
        self.before_ns = sum;
        grown
    }
}

impl Direction {
    fn merge(&mut self, later: &Self) {
        self.count += later.count;
        self.bytes += later.bytes;
        self.latency_sum_ns = self.latency_sum_ns.saturating_add(later.latency_sum_ns);
        self.latency_max_ns = self.latency_max_ns.max(later.latency_max_ns);
        self.latencies.merge(&later.latencies);
    }
}

impl Interval {
    fn merge(&mut self, later: &Self) {
        self.reads.merge(&later.reads);
        self.writes.merge(&later.writes);
        self.flushes.merge(&later.flushes);
        self.outstanding_ns = self.outstanding_ns.saturating_add(later.outstanding_ns);
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
        /// In the write buffer.
        pub(super) buffered_units: Level,
        /// Of all dies.
        pub(super) free_blocks: Level,
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
            buffered_units: stats.buffered_units,
            free_blocks: stats.free_blocks,
        }
    }
}

/// A finished interval.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub(super) reads: Running,
    pub(super) writes: Running,
    pub(super) flushes: Running,
    outstanding: Outstanding,
    /// When the current interval ends.
    next_end: Time,
}

impl Intervals {
    /// Intervals from `start` on, with commands outstanding from before.
    pub(super) fn new(start: Time, before: Snapshot, mut outstanding: Outstanding) -> Self {
        outstanding.since_last(start);
        Self {
            start,
            before,
            length: FIRST_INTERVAL,
            closed: Vec::with_capacity(MAX_INTERVALS),
            reads: Running::default(),
            writes: Running::default(),
            flushes: Running::default(),
            outstanding,
            next_end: start + FIRST_INTERVAL,
        }
    }

    /// Commands outstanding.
    #[inline]
    pub(super) fn outstanding(&mut self) -> &mut Outstanding {
        &mut self.outstanding
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
        let running = [&self.reads, &self.writes, &self.flushes];
        if end > last || running.iter().any(|running| running.so_far.count > 0) {
            self.push(device, end.max(last));
        }
    }

    fn push(&mut self, device: Snapshot, end: Time) {
        let host = Interval {
            reads: self.reads.take(),
            writes: self.writes.take(),
            flushes: self.flushes.take(),
            outstanding_ns: self.outstanding.since_last(end),
        };
        self.closed.push(Closed { host, device, end });
    }

    fn double(&mut self) {
        let mut fine =
            std::mem::replace(&mut self.closed, Vec::with_capacity(MAX_INTERVALS)).into_iter();
        while let (Some(mut first), Some(second)) = (fine.next(), fine.next()) {
            first.host.merge(&second.host);
            (first.device, first.end) = (second.device, second.end);
            self.closed.push(first);
        }
        self.length = self.length.saturating_mul(2);
    }
}

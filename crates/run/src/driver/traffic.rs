//! A host's requests and their latencies, in all of a run or in a part of it.

use hdrhistogram::Histogram;
use leyden_device::{Op, Status};
use leyden_sim::Time;

/// Significant decimal digits of latency percentiles.
const LATENCY_DIGITS: u8 = 3;
/// Longer latencies count as this long in percentiles (mean and maximum are exact): 1,000 s.
const LATENCY_MAX_NS: u64 = 1_000_000_000_000;

/// A completion, as far as it is measured.
pub(super) struct Sample {
    pub(super) op: Op,
    /// The tenant that asked ([`Tenants`](super::tenants::Tenants)).
    pub(super) tenant: u8,
    pub(super) tag: u32,
    pub(super) bytes: u64,
    pub(super) arrived: Time,
    pub(super) time: Time,
    pub(super) status: Status,
}

/// Latencies of one kind of command, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Latencies {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, LATENCY_DIGITS)
            .expect("constant bounds that the histogram documents as valid");
        Self { histogram, sum_ns: 0, max_ns: 0 }
    }

    #[inline]
    fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// How many commands there were.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Arithmetic mean, exact; 0 without commands.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        self.sum_ns as f64 / self.count() as f64
    }

    /// Largest, exact.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency that the share `quantile` (0..=1) of commands did not exceed, to 3 digits.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    /// The distribution, as (percentile 0..=100, nanoseconds), ascending.
    pub(super) fn distribution(&self) -> Vec<(f64, u64)> {
        // Steps that halve with the distance to 100 %: the tail is what people look at.
        let steps = self.histogram.iter_quantiles(5);
        let mut points: Vec<(f64, u64)> = steps
            .map(|step| {
                let value = step.value_iterated_to().min(self.max_ns);
                (step.quantile_iterated_to() * 100.0, value)
            })
            .collect();
        // Where the histogram's last entry ends says less than the largest latency itself.
        if let Some((_, last)) = points.last_mut() {
            *last = self.max_ns;
        }
        points
    }
}

/// Commands that succeeded, and what they moved.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Reads.
    pub reads: Latencies,
    /// Writes.
    pub writes: Latencies,
    /// Flushes.
    pub flushes: Latencies,
    /// Trims and write-zeroes.
    pub trims: Latencies,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl Traffic {
    pub(super) fn new() -> Self {
        Self {
            reads: Latencies::new(),
            writes: Latencies::new(),
            flushes: Latencies::new(),
            trims: Latencies::new(),
            bytes_read: 0,
            bytes_written: 0,
        }
    }

    /// Takes a command in; yields how long the longest of its kind before it took.
    #[inline]
    pub(super) fn record(&mut self, op: Op, bytes: u64, latency_ns: u64) -> u64 {
        let kind = match op {
            Op::Read => {
                self.bytes_read += bytes;
                &mut self.reads
            }
            Op::Write | Op::ZoneAppend => {
                self.bytes_written += bytes;
                &mut self.writes
            }
            Op::Flush => &mut self.flushes,
            Op::Trim | Op::WriteZeroes => &mut self.trims,
            Op::WritePrepare | Op::Copy | Op::Zone(_) | Op::ZoneReport => return u64::MAX,
        };
        let longest_ns = kind.max_ns;
        kind.record(latency_ns);
        longest_ns
    }

    /// How many commands there were.
    pub(super) fn commands(&self) -> u64 {
        let kinds = [&self.reads, &self.writes, &self.flushes, &self.trims];
        kinds.iter().map(|kind| kind.count()).sum()
    }
}

//! What a run measures.

use hdrhistogram::Histogram;
use leyden_device::{Op, Stats, Status};
use leyden_sim::{Digest, Span, Time};

use super::Ramp;
use super::series::{Intervals, Snapshot};
use super::tenants::Tenants;

/// Significant decimal digits of latency percentiles.
const LATENCY_DIGITS: u8 = 3;
/// Longer latencies count as this long in percentiles (mean and maximum are exact): 1,000 s.
const LATENCY_MAX_NS: u64 = 1_000_000_000_000;

/// Latencies of one kind of command, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
}

impl Latencies {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, LATENCY_DIGITS)
            .expect("constant bounds that the histogram documents as valid");
        Self { histogram, sum_ns: 0, max_ns: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, latency_ns: u64) {
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

/// What a run measured, after its ramp.
#[derive(Clone, Debug)]
pub struct Measured {
    /// When measurement began: the start of the workload, or the end of its ramp.
    pub start: Time,
    /// When the last command completed, or the run was interrupted.
    pub end: Time,
    /// The run was cancelled; everything is up to then.
    pub interrupted: bool,
    /// Reads that succeeded.
    pub reads: Latencies,
    /// Writes that succeeded.
    pub writes: Latencies,
    /// Flushes that succeeded.
    pub flushes: Latencies,
    /// Trims and write-zeroes that succeeded.
    pub trims: Latencies,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Hints that were handed to the device.
    pub hints: u64,
    /// Commands that ended with an error status.
    pub errors: u64,
    /// Fingerprint of every completion since the start of the workload, ramp included.
    pub digest: Digest,
    /// The device's counters at `start`.
    pub before: Stats,
    /// The device's counters at `end`.
    pub after: Stats,
    /// What is worth knowing before trusting the rest.
    pub warnings: Vec<String>,
    pub(super) series: Intervals,
    pub(super) tenants: Tenants,
}

impl Measured {
    /// How long was measured.
    pub fn elapsed(&self) -> Span {
        self.end.since(self.start)
    }

    /// Commands that completed, with success or not.
    pub fn completions(&self) -> u64 {
        let kinds = [&self.reads, &self.writes, &self.flushes, &self.trims];
        kinds.iter().map(|kind| kind.count()).sum::<u64>() + self.errors
    }
}

/// A completion, as far as it is measured.
pub(super) struct Sample {
    pub(super) op: Op,
    /// Who asked ([`Tenants`]).
    pub(super) tenant: u8,
    pub(super) tag: u32,
    pub(super) bytes: u64,
    pub(super) arrived: Time,
    pub(super) time: Time,
    pub(super) status: Status,
}

/// What is left of the ramp, apart from its time, whose end is the next boundary.
struct Ramping {
    requests: u64,
}

/// A measurement under way.
pub(super) struct Measure {
    ramping: Option<Ramping>,
    start: Time,
    before: Stats,
    reads: Latencies,
    writes: Latencies,
    flushes: Latencies,
    trims: Latencies,
    hints: u64,
    errors: u64,
    first_error: Option<(Op, Status)>,
    digest: Digest,
    series: Intervals,
    next_boundary: Time,
    bytes: [u64; 2],
    tenants: Tenants,
}

impl Measure {
    pub(super) fn new(start: Time, ramp: Ramp, before: Stats, tenants: Vec<String>) -> Self {
        let series = Intervals::new(start, Snapshot::new(&before));
        let ramping = (ramp != Ramp::default()).then_some(Ramping { requests: ramp.requests });
        let next_boundary = if ramping.is_none() {
            series.next_end()
        } else if ramp.time == Span::ZERO {
            Time::MAX
        } else {
            start + ramp.time
        };
        Self {
            ramping,
            start,
            before,
            reads: Latencies::new(),
            writes: Latencies::new(),
            flushes: Latencies::new(),
            trims: Latencies::new(),
            hints: 0,
            errors: 0,
            first_error: None,
            digest: Digest::default(),
            series,
            next_boundary,
            bytes: [0; 2],
            tenants: Tenants::new(tenants),
        }
    }

    /// When [`Measure::boundary`] must be called next.
    #[inline]
    pub(super) fn next_boundary(&self) -> Time {
        self.next_boundary
    }

    /// An interval ends, or the ramp's time; true if the measurement begins with that.
    pub(super) fn boundary(&mut self, now: Time, stats: &Stats) -> bool {
        match &self.ramping {
            None => {
                self.series.close(Snapshot::new(stats));
                self.next_boundary = self.series.next_end();
            }
            Some(ramping) if ramping.requests == 0 => {
                self.begin(now, stats.clone());
                return true;
            }
            // Time is up, completions are still missing.
            Some(_) => self.next_boundary = Time::MAX,
        }
        false
    }

    /// The ramp is over: measurement begins.
    pub(super) fn begin(&mut self, now: Time, before: Stats) {
        self.ramping = None;
        self.start = now;
        self.series = Intervals::new(now, Snapshot::new(&before));
        self.next_boundary = self.series.next_end();
        self.before = before;
        self.tenants.begin();
    }

    /// A hint was handed to the device.
    pub(super) fn hint(&mut self) {
        self.hints += u64::from(self.ramping.is_none());
    }

    /// Takes a completion in; true if the ramp ends with it.
    #[inline]
    pub(super) fn record(&mut self, sample: &Sample) -> bool {
        let kind = sample.op as u64 | u64::from(sample.status.code()) << 8;
        self.digest.add(sample.time.as_ns()).add(kind << 32 | u64::from(sample.tag));
        if self.ramping.is_some() {
            return self.ramp();
        }
        if sample.status != Status::Success {
            self.errors += 1;
            self.first_error.get_or_insert((sample.op, sample.status));
            return false;
        }
        let latency_ns = sample.time.since(sample.arrived).as_ns();
        self.tenants.record(sample, latency_ns);
        match sample.op {
            Op::Read => {
                self.reads.record(latency_ns);
                self.series.current.reads.record(sample.bytes, latency_ns);
                self.bytes[0] += sample.bytes;
            }
            Op::Write => {
                self.writes.record(latency_ns);
                self.series.current.writes.record(sample.bytes, latency_ns);
                self.bytes[1] += sample.bytes;
            }
            Op::Flush => self.flushes.record(latency_ns),
            Op::Trim | Op::WriteZeroes => self.trims.record(latency_ns),
            Op::WritePrepare => {}
        }
        false
    }

    /// Counts a completion of the ramp; true if the ramp ends with it.
    #[cold]
    fn ramp(&mut self) -> bool {
        match &mut self.ramping {
            Some(ramping) if ramping.requests > 0 => {
                ramping.requests -= 1;
                // Else the ramp's time is still to come, and ends it.
                ramping.requests == 0 && self.next_boundary == Time::MAX
            }
            _ => false,
        }
    }

    fn is_empty(&self) -> bool {
        let kinds = [&self.reads, &self.writes, &self.flushes, &self.trims];
        self.errors == 0 && kinds.iter().all(|kind| kind.count() == 0)
    }

    pub(super) fn finish(mut self, end: Time, after: Stats, interrupted: bool) -> Measured {
        let mut warnings = Vec::new();
        if self.ramping.is_some() {
            warnings.push("the run ended within its ramp: nothing was measured".to_owned());
            self.begin(end, after.clone());
        } else if self.is_empty() {
            warnings
                .push("no command completed in the measured part: nothing was measured".to_owned());
        }
        if let Some((op, status)) = self.first_error {
            warnings.push(format!(
                "{} commands failed, the first of them a {op:?} with {status:?}",
                self.errors
            ));
        }
        if interrupted {
            warnings.push("the run was interrupted; its results end there".to_owned());
        }
        self.series.finish(Snapshot::new(&after), end);
        Measured {
            start: self.start,
            end,
            interrupted,
            reads: self.reads,
            writes: self.writes,
            flushes: self.flushes,
            trims: self.trims,
            bytes_read: self.bytes[0],
            bytes_written: self.bytes[1],
            hints: self.hints,
            errors: self.errors,
            digest: self.digest,
            before: self.before,
            after,
            warnings,
            series: self.series,
            tenants: self.tenants,
        }
    }
}

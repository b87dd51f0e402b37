//! Latencies of commands since the last sample.

use hdrhistogram::Histogram;
use leyden_sim::Span;
use serde::Serialize;

/// Longer than this counts as this: a thousand seconds.
const MOST_NS: u64 = 1_000_000_000_000;
/// A latency is right within a percent.
const DIGITS: u8 = 2;
/// Fewer commands have no 99th percentile.
const FOR_P99: u64 = 100;

/// The kinds of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
}

/// Percentiles; none without enough commands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
}

/// Latencies by kind.
#[derive(Clone, Debug)]
pub(crate) struct Latencies([Histogram<u64>; 3]);

impl Default for Latencies {
    fn default() -> Self {
        let new = || {
            Histogram::new_with_max(MOST_NS, DIGITS)
                .expect("a maximum above one, and digits up to five")
        };
        Self([new(), new(), new()])
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, kind: Kind, took: Span) {
        self.0[kind as usize].saturating_record(took.as_ns());
    }

    /// The percentiles since they were taken last, in the order of [`Kind`].
    pub(crate) fn take(&mut self) -> [Percentiles; 3] {
        let taken = [0, 1, 2].map(|kind: usize| {
            let of = &self.0[kind];
            let at = |quantile, least| (of.len() >= least).then(|| of.value_at_quantile(quantile));
            Percentiles { p50_ns: at(0.5, 1), p99_ns: at(0.99, FOR_P99) }
        });
        self.0.iter_mut().for_each(Histogram::reset);
        taken
    }
}

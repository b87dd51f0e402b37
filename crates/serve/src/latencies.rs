//! Latencies of commands by kind: how long the modelled drive took, in its own time.

use hdrhistogram::Histogram;
use leyden_sim::Span;

use crate::ask::Ask;

/// Longer than this counts as this: a thousand seconds.
const MOST_NS: u64 = 1_000_000_000_000;
/// Digits of a latency: it is right within a percent.
const DIGITS: u8 = 2;

/// The kinds of commands whose latency is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    /// Appends, too.
    Write,
    Flush,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Flush];

    /// The kind of a command, if its latency is kept.
    pub(crate) const fn of(ask: &Ask) -> Option<Self> {
        match ask {
            Ask::Read(..) => Some(Self::Read),
            Ask::Write(..) | Ask::Append(..) => Some(Self::Write),
            Ask::Flush => Some(Self::Flush),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// Latencies of commands of one kind that have succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    pub(crate) histogram: Histogram<u64>,
    pub(crate) sum_ns: u64,
}

/// Latencies by kind.
#[derive(Clone, Debug)]
pub(crate) struct Latencies([Latency; Kind::ALL.len()]);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_max(MOST_NS, DIGITS);
        let histogram = histogram.expect("a largest value above one, and up to five digits");
        let none = Latency { histogram, sum_ns: 0 };
        Self([none.clone(), none.clone(), none])
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, kind: Kind, took: Span) {
        let latency = &mut self.0[kind as usize];
        latency.histogram.saturating_record(took.as_ns());
        latency.sum_ns = latency.sum_ns.saturating_add(took.as_ns());
    }

    pub(crate) const fn of(&self, kind: Kind) -> &Latency {
        &self.0[kind as usize]
    }
}

impl Latency {
    /// The latencies since `before`, which is a part of these.
    pub(crate) fn since(&self, before: &Self) -> Histogram<u64> {
        let mut between = self.histogram.clone();
        between.subtract(&before.histogram).expect("counts only grow");
        between
    }
}

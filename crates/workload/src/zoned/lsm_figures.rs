//! Figures of a key-value store.

use leyden_sim::{Span, Time};

/// The store's counters.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LsmFigures {
    /// Pairs that were put.
    pub puts: u64,
    /// Memtables that were flushed.
    pub flushed: u64,
    /// Tables that were compacted.
    pub compacted: u64,
    /// How long the writer waited for memtables and for compaction.
    pub stalled: Span,
    /// How long it was slowed down because tables waited to be compacted.
    pub delayed: Span,
    /// Bytes of tables that durable metadata referred to, whose logs were deleted, and that no FLUSH had made
    /// durable: on the average over time.
    pub exposed_mean: f64,
    /// The most of them.
    pub exposed_peak: u64,
    /// Pairs of acknowledged puts that power cuts took from the log before they were in a table.
    pub lost_puts: u64,
    /// Bytes that power cuts took from tables whose logs were deleted.
    pub lost_table_bytes: u64,
}

/// Bytes over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Exposure {
    pub(super) bytes: u64,
    pub(super) since: Time,
    pub(super) byte_ns: u128,
    pub(super) peak: u64,
}

impl Exposure {
    pub(super) fn set(&mut self, now: Time, bytes: u64) {
        self.byte_ns += u128::from(self.bytes) * u128::from(now.since(self.since).as_ns());
        (self.bytes, self.since) = (bytes, now);
        self.peak = self.peak.max(bytes);
    }
}

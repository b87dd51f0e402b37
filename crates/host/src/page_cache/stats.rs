//! Counters of a page cache.

use leyden_sim::{Level, Span, counters};
use serde::Serialize;

counters! {
    /// Counts since the cache was made. Pages are the drive's mapping units.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct PageCacheStats {
        /// Pages read that were in the cache.
        pub hits: u64,
        /// Pages read that were not, or were still on their way.
        pub misses: u64,
        /// Clean pages that were written to, or written though not cached: they became dirty, and were
        /// announced.
        pub dirtied_pages: u64,
        /// Dirty pages that were written to again before they were written out.
        pub rewritten_pages: u64,
        /// Pages read because a part of them was written.
        pub partial_reads: u64,
        /// Clean pages that made room.
        pub evictions: u64,
        /// Write commands to the device below.
        pub writebacks: u64,
        /// Pages in them.
        pub written_back_pages: u64,
        /// Dirty pages that were trimmed or overwritten by zeroes, and so never written out.
        pub discarded_pages: u64,
        /// Pages that could not be written out. Their data is lost, and the next flush fails.
        pub failed_pages: u64,
        /// Requests that passed the cache by.
        pub direct_requests: u64,
        /// Laps of the flusher because data was too old.
        pub laps: u64,
        /// Writes that had to wait because too much was dirty.
        pub throttled_writes: u64,
        /// How long these waited, all together.
        pub throttled: Span,
        /// Requests that waited for a page to become clean.
        pub starved: u64,
        /// The most pages that were dirty at once.
        pub dirty_peak: Level,
    }
}

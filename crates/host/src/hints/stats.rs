//! Counters of a hint channel.

use leyden_sim::{Level, counters};
use serde::Serialize;

counters! {
    /// Announcements, and their outcomes. Units are of 4 KiB, and each is counted once:
    /// `announced_units + false_units` is the sum of all that follow it, and what still waits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct HintChannelStats {
        /// Announcements.
        pub announced: u64,
        /// Hints that went to the drive.
        pub sent: u64,
        /// Commands of their own that these went with.
        pub commands: u64,
        /// Announcements that were made up ([`false_share`](super::HintChannelConfig::false_share)).
        pub false_hints: u64,
        /// The most ranges that waited at once.
        pub waiting_peak: Level,
        /// Units of all announcements.
        pub announced_units: u64,
        /// Units of those that were made up.
        pub false_units: u64,
        /// Units of the hints that went to the drive.
        pub sent_units: u64,
        /// Units that waited, and were written or trimmed before their hint went out.
        pub withdrawn_units: u64,
        /// Units that waited already when they were announced again.
        pub repeated_units: u64,
        /// Units that had to make room in the queue.
        pub dropped_units: u64,
        /// Units that were lost ([`missing`](super::HintChannelConfig::missing)).
        pub missing_units: u64,
        /// Units of announcements that go beyond the drive's end; these are ignored whole.
        pub beyond_end_units: u64,
        /// Units that waited when the power went.
        pub lost_units: u64,
    }
}

//! Counters of a conventional drive; its layers count the rest.

use leyden_sim::{Span, counters};
use serde::Serialize;

use super::hints::HintStats;

counters! {
    /// Counters of a conventional drive itself.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct SsdStats {
        /// Mapping units the host wrote (before coalescing).
        pub units_written: u64,
        /// Unit reads served from the buffer.
        pub read_hits: u64,
        /// Time that writes spent waiting for room in the buffer, summed over commands.
        pub stalled: Span,
        /// Mapping units that a dump was to save, and did not reach.
        pub lost_units: u64,
        /// Zombie hints heard.
        pub hints: HintStats,
    }
}

//! Counters of the FTL.

use leyden_sim::counters;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

counters! {
    /// Counts of page operations by cause.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Programs {
        /// Data the host wrote.
        pub user: u64,
        /// Data that garbage collection copied.
        pub gc_user: u64,
        /// Mapping pages written back.
        pub map: u64,
        /// Mapping pages that garbage collection copied.
        pub gc_map: u64,
        /// Pages dumped on a power loss.
        pub dump: u64,
    }
}

impl Programs {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.user + self.gc_user + self.map + self.gc_map + self.dump
    }

    /// `of` each cause's count.
    #[must_use]
    pub fn map_each(&self, of: impl Fn(u64) -> u64) -> Self {
        Self {
            user: of(self.user),
            gc_user: of(self.gc_user),
            map: of(self.map),
            gc_map: of(self.gc_map),
            dump: of(self.dump),
        }
    }
}

counters! {
    /// Counts of page reads by cause.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub struct Reads {
        /// The host read.
        pub host: u64,
        /// The host wrote part of a mapping unit, whose rest had to be read.
        pub rmw: u64,
        /// Garbage collection copied data.
        pub gc_user: u64,
        /// Recovery scanned.
        pub recovery: u64,
    }
}

impl Reads {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.host + self.rmw + self.gc_user + self.recovery
    }

    /// `of` each cause's count.
    #[must_use]
    pub fn map_each(&self, of: impl Fn(u64) -> u64) -> Self {
        Self {
            host: of(self.host),
            rmw: of(self.rmw),
            gc_user: of(self.gc_user),
            recovery: of(self.recovery),
        }
    }
}

counters! {
    /// Counters of garbage collection of data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct GcStats {
        /// Blocks chosen.
        pub collections: u64,
        /// Of those, blocks emptied for their wear.
        pub wear_moves: u64,
        /// Valid units in all of them, when they were chosen.
        pub victim_valid_units: u64,
        /// Units copied.
        pub copied_units: u64,
        /// Of those, zombies: what the host has said it will overwrite.
        pub copied_zombie_units: u64,
    }
}

counters! {
    /// Counters of the FTL since it was made.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct FtlStats {
        /// Page programs. Those of the mapping table's journal are among those of mapping pages.
        pub programs: Programs,
        /// Page reads.
        pub reads: Reads,
        /// Garbage collection.
        pub gc: GcStats,
        /// Blocks erased.
        pub erases: u64,
        /// Programs that failed (also counted by cause).
        pub program_failures: u64,
        /// Erases that failed.
        pub erase_failures: u64,
        /// Units of user data programmed.
        pub user_units: u64,
        /// Units left empty in programmed pages.
        pub padded_units: u64,
        /// Units on flash that the host overwrote, and had said that it would.
        pub overwritten_zombie_units: u64,
        /// Units on flash that the host overwrote without having said so, since the first hint.
        pub overwritten_live_units: u64,
    }
}

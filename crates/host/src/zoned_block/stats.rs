//! What a zoned block device counts.

use leyden_sim::counters;
use serde::Serialize;

counters! {
    /// Counts since the device was made. Blocks are mapping units of the members.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct ZonedBlockStats {
        /// Blocks that the host has written, zeroes that are stored among them.
        pub host_blocks: u64,
        /// Of those, blocks of journals.
        pub host_journal_blocks: u64,
        /// Of those, a file system's other metadata.
        pub host_meta_blocks: u64,
        /// Blocks that went to journal zones.
        pub separated_blocks: u64,
        /// Blocks written at the write pointer of a sequential zone.
        pub direct_blocks: u64,
        /// Blocks of journals that reclaim has copied.
        pub copied_journal_blocks: u64,
        /// Blocks of a file system's other metadata that it has copied.
        pub copied_meta_blocks: u64,
        /// Other blocks that it has copied.
        pub copied_data_blocks: u64,
        /// Blocks of zeroes that it has written to fill holes.
        pub filled_blocks: u64,
        /// Chunks that were moved.
        pub reclaimed: u64,
        /// Of those, sequential zones that were copied into their buffer.
        pub merged_into_buffer: u64,
        /// Moves that were given up because somebody used the chunk.
        pub aborted: u64,
        /// Requests that waited for a free random zone.
        pub starved: u64,
        /// Zones that were reset.
        pub resets: u64,
        /// Zones that were finished, to be allowed to begin others.
        pub finishes: u64,
        /// Times that tables were written.
        pub commits: u64,
        /// Blocks of metadata written.
        pub metadata_blocks: u64,
        /// Times that the tables were read back after a power cut.
        pub recoveries: u64,
    }
}

//! The part of a run record about a block device on a conventional and a zoned drive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Chunk, RandomZone};

/// The layer that makes a block device of two drives. Write amplification of the whole is `waf`; it is the layer's
/// times the drives', each drive's weighted by the bytes sent to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZonedBlock {
    /// Bytes that the host has written.
    pub host_bytes: u64,
    /// Of those, journals.
    pub host_journal_bytes: u64,
    /// Of those, a file system's other metadata, as far as the commands said so.
    pub host_meta_bytes: u64,
    /// Bytes that went to journal zones.
    pub separated_bytes: u64,
    /// Bytes written at the write pointer of a sequential zone.
    pub direct_bytes: u64,
    /// Bytes that reclaim has copied.
    pub copied_bytes: u64,
    /// Of those, journals.
    pub copied_journal_bytes: u64,
    /// Of those, a file system's other metadata.
    pub copied_meta_bytes: u64,
    /// Of those, all else.
    pub copied_data_bytes: u64,
    /// The share of journals in the copies of reclaim; 0 without copies.
    pub journal_share_of_copies: f64,
    /// Zeroes that reclaim has written to fill holes.
    pub filled_bytes: u64,
    /// Bytes of the layer's own tables that were written.
    pub metadata_bytes: u64,
    /// Times that they were.
    pub commits: u64,
    /// Chunks that were moved.
    pub reclaimed: u64,
    /// Of those, sequential zones that were copied into their buffer zone.
    pub merged_into_buffer: u64,
    /// Moves aborted by a request for the chunk.
    pub aborted: u64,
    /// Requests that waited for a free random zone.
    pub starved: u64,
    /// Zones that were reset.
    pub resets: u64,
    /// Zones that were finished to be allowed to begin others.
    pub finishes: u64,
    /// Bytes that the layer has sent to the drives, over bytes that the host has written.
    pub layer_waf: f64,
    /// Bytes that the conventional drive's flash has programmed, over bytes sent to it.
    pub conventional_waf: f64,
    /// The same of the zoned drive.
    pub zoned_waf: f64,
    /// Bytes that the flash of both has programmed, over bytes that the host has written.
    pub waf: f64,
    /// Blocks of a chunk, and of a zone.
    #[serde(default)]
    pub chunk_blocks: u64,
    /// Bytes of a block, which is a mapping unit of the drives.
    #[serde(default)]
    pub block_bytes: u64,
    /// Each chunk at the end of the run, in the order of addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Chunk>,
    /// The use of each zone of the conventional drive at the end of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub random_zones: Vec<RandomZone>,
}

//! The part of a run record about a zoned drive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The zones of a zoned drive, its two pools, and the store on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Zones {
    /// Zones of the drive.
    pub zones: u64,
    /// Bytes that can be written to a zone.
    pub capacity_bytes: u64,
    /// Zones in each state at the end.
    pub states: Vec<(String, u64)>,
    /// The state of each zone at the end: the field `ZS` of its descriptor (NVMe ZNS 1.1, figure 37).
    #[serde(default)]
    pub state_codes: Vec<u8>,
    /// Of each zone at the end, the share that is written, in per mille; 1000 for a full one.
    pub written_per_mille: Vec<u32>,
    /// Zone Appends.
    pub appends: u64,
    /// Zones reset.
    pub resets: u64,
    /// Zones finished before they were full.
    pub finishes: u64,
    /// Zones that the controller closed to open others.
    pub implicit_closes: u64,
    /// The most bytes in the protected pool, Zone Random Write Areas included.
    pub protected_peak_bytes: u64,
    /// The most bytes in the unprotected pool.
    pub plain_peak_bytes: u64,
    /// Bytes that a reset has taken out of the protected pool before they were programmed.
    pub discarded_protected_bytes: u64,
    /// Bytes that a reset has taken out of the unprotected pool.
    pub discarded_plain_bytes: u64,
    /// Bytes that were protected because something above them in their zone had to be.
    pub promoted_bytes: u64,
    /// Flushes that left protected data in the buffer.
    pub flushes_past_protected: u64,
    /// Waits of flushes.
    #[serde(default)]
    pub flush_waits: FlushWaits,
    /// The drive's state at moments of the run.
    pub moments: Vec<ZoneMoment>,
    /// The key-value store, if the workload is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
}

/// Waits of flushes: unprotected data in the buffer at their arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushWaits {
    /// Flushes that had to wait.
    pub flushes: u64,
    /// Bytes that had to get to flash first, in all of them.
    pub bytes: u64,
    /// The most that one of them waited for.
    pub bytes_peak: u64,
    /// Zones in which those bytes lay, summed over flushes.
    pub zones: u64,
    /// Protected bytes that were buffered when flushes came, those that did not wait included, and that no flush
    /// waited for.
    pub passed_bytes: u64,
}

/// A zoned drive at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneMoment {
    /// When, in seconds from the beginning of the run.
    pub at_s: f64,
    /// Open zones.
    pub open: u32,
    /// Active zones, open ones among them.
    pub active: u32,
    /// Full zones.
    #[serde(default)]
    pub full: u32,
    /// Zones that faults have made read-only or offline.
    #[serde(default)]
    pub failed: u32,
    /// Bytes in the protected pool.
    pub protected_bytes: u64,
    /// Bytes in the unprotected pool.
    pub plain_bytes: u64,
}

/// An LSM key-value store on the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    /// Pairs put.
    pub puts: u64,
    /// Pairs put per simulated second.
    pub puts_per_s: f64,
    /// MiB of pairs put per simulated second.
    pub mib_per_s: f64,
    /// Memtables flushed.
    pub flushed: u64,
    /// Tables compacted.
    pub compacted: u64,
    /// Seconds that the writer waited for memtables or for compaction.
    pub stalled_s: f64,
    /// Seconds that it was slowed down because tables waited to be compacted.
    #[serde(default)]
    pub delayed_s: f64,
    /// The 99th percentile of log appends, in microseconds.
    #[serde(default)]
    pub log_append_p99_us: f64,
    /// Bytes of tables that durable metadata referred to, whose logs were deleted, and that no FLUSH had made
    /// durable: a power cut would lose them for good. On the average over time.
    pub exposed_bytes_mean: f64,
    /// The most of them.
    pub exposed_bytes_peak: u64,
    /// Pairs of acknowledged puts that power cuts took from the log before they were in a table.
    #[serde(default)]
    pub lost_puts: u64,
    /// Bytes that power cuts took from tables whose logs were deleted: the store is damaged by that.
    #[serde(default)]
    pub lost_table_bytes: u64,
}

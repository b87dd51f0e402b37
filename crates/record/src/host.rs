//! Statistics of the layers between software and drive, and each tenant's share of the drive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// A tenant of the drive: a job of the workload, or a class of a trace's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    /// The job's name, or the class: `data`, `wal`, `journal`, `fs-meta`, `unknown`, or the trace's own name.
    pub name: String,
    /// Read commands completed.
    pub reads: u64,
    /// Write commands completed.
    pub writes: u64,
    /// Flush commands completed.
    pub flushes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads and writes per simulated second.
    pub iops: f64,
    /// MiB read and written per simulated second.
    pub mib_per_s: f64,
    /// Latency of reads, from submission to completion.
    pub read_latency_us: Latency,
    /// Latency of writes.
    pub write_latency_us: Latency,
    /// Latency of flushes.
    pub flush_latency_us: Latency,
}

/// Zombie hints: announcements of coming writes, and their effect. Announcements of the host are counted in
/// units of 4 KiB, those received by the drive in its mapping units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hints {
    /// How they got to the drive: `piggyback` or `command`.
    pub channel: String,
    /// 4 KiB units that were announced.
    pub announced: u64,
    /// Units that were announced falsely, by `host.hints.false_share`, beside those.
    pub false_announced: u64,
    /// Units in hints that went to the drive.
    pub sent: u64,
    /// Those hints.
    pub sent_hints: u64,
    /// Commands of their own that brought hints.
    pub commands: u64,
    /// Units that were written or trimmed before their hint went out.
    pub withdrawn: u64,
    /// Units that waited already when they were announced again.
    pub repeated: u64,
    /// Units that had to make room in the queue.
    pub dropped: u64,
    /// Units that got lost, by `host.hints.missing`.
    pub missing: u64,
    /// Units in announcements that go beyond the drive's end, which are ignored.
    pub beyond_end: u64,
    /// The most ranges that waited at once.
    pub waiting_peak: u64,
    /// Mapping units that the drive heard named.
    pub heard_units: u64,
    /// Of those, named before and not overwritten since.
    pub repeated_units: u64,
    /// Of those, holding no data: never written, or trimmed. Ignored.
    pub empty_units: u64,
    /// Mapping units on flash that the drive knew to be zombies when they were overwritten.
    pub overwritten_zombie_units: u64,
    /// Mapping units on flash that were overwritten without a hint.
    pub overwritten_live_units: u64,
    /// Data that the drive knew to be overwritten soon, whose new version it had not got yet, on the
    /// average over time, in bytes.
    pub zombie_bytes_mean: f64,
    /// That over the mean of the page cache's data that is dirty or being written out: the share of coming
    /// overwrites that the drive knows of (table 3 of Zombie Chasing). `null` without a page cache.
    pub known_dirty_share: Option<f64>,
    /// Of the mapping units on flash that were overwritten, the share that the drive knew to be zombies then.
    /// `null` if
    /// none was.
    pub known_overwrite_share: Option<f64>,
}

/// The page cache above the drive. Its pages are the drive's mapping units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Pages read that were in it.
    pub hits: u64,
    /// Pages read that were not.
    pub misses: u64,
    /// Share of the pages read that were in it; 0 if none was read.
    pub hit_ratio: f64,
    /// Pages that became dirty.
    pub dirtied: u64,
    /// Dirty pages that were written to again before they were written out.
    pub rewritten: u64,
    /// Pages read because a part of them was written.
    pub partial_reads: u64,
    /// Clean pages that made room.
    pub evictions: u64,
    /// Write commands to the drive.
    pub writebacks: u64,
    /// Pages in them.
    pub written_back: u64,
    /// Dirty pages that were trimmed, and never written out.
    pub discarded: u64,
    /// Pages that could not be written out.
    pub failed: u64,
    /// Requests that passed it by.
    #[serde(default)]
    pub direct: u64,
    /// Laps of the flusher because data was too old.
    pub laps: u64,
    /// Writes that had to wait because too much was dirty.
    pub throttled_writes: u64,
    /// How long these waited, summed over writes, seconds.
    pub throttled_s: f64,
    /// Requests that waited for a page to become clean.
    pub starved: u64,
    /// Dirty data, on the average over time.
    pub dirty_bytes_mean: f64,
    /// The most dirty data at once.
    pub dirty_bytes_peak: u64,
    /// Dirty data at the end of the run, which the drive never got.
    pub dirty_bytes_left: u64,
}

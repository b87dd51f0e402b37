//! A recorded key-value store: `[workload.recorded]`.

use leyden_sim::{ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::SyncOrder;
use super::super::lsm_config::rocksdb;

/// RocksDB's calls on its file system, recorded by its plugin (docs/rocksdb.md), on the small zoned file
/// system of `workload.lsm`. The calls of each thread, their order, and the processor time between them are
/// the recording's; waits follow from the files and from RocksDB's limits below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedConfig {
    /// The recording, relative to the file that says so, plain or compressed with zstd.
    pub path: String,
    /// Puts that are made first and not measured: an earlier benchmark's of the same recording.
    pub skip: u64,
    /// Puts that are measured; 0 for all that follow.
    pub puts: u64,
    /// Processor time of a put, in place of the recorded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_time: Option<Span>,
    /// How much of the recorded processor time is spent: less on a faster host.
    pub work: Ratio,
    /// Tables of flushed memtables at which the writer is slowed down (`level0_slowdown_writes_trigger`).
    pub slowdown_at: u32,
    /// Where it stops (`level0_stop_writes_trigger`).
    pub stop_at: u32,
    /// When tables are made durable.
    pub order: SyncOrder,
    /// Whether a log is made durable where its zone ends, on a drive without a protected region. Its writer waits for
    /// the rest of the zone then.
    pub log_zone_end: LogZoneEnd,
}

/// A log's behaviour at the end of its zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogZoneEnd {
    /// The last write of the zone has FUA: a cut leaves no hole in the log, as in the RocksDB plugin.
    #[default]
    Sync,
    /// The log continues in the next zone at once, and a cut may leave a hole.
    NoSync,
}

impl Default for RecordedConfig {
    fn default() -> Self {
        Self {
            path: String::new(),
            skip: 0,
            puts: 0,
            put_time: None,
            work: Ratio::ONE,
            slowdown_at: rocksdb::SLOWDOWN_AT,
            stop_at: rocksdb::STOP_AT,
            order: SyncOrder::default(),
            log_zone_end: LogZoneEnd::default(),
        }
    }
}

impl RecordedConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// Names the key that is impossible, and what would be right.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.path.is_empty() {
            return Err(ConfigError::new("path", "the path is empty; name a recording"));
        }
        let positive = [("slowdown_at", self.slowdown_at), ("stop_at", self.stop_at)];
        if let Some((key, _)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(ConfigError::new(key, "0: give 1 or more"));
        }
        Ok(())
    }
}

//! A recorded key-value store: `[workload.recorded]`.

use leyden_sim::{Bytes, BytesPerSec, ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{LsmConfig, SyncOrder};

/// What RocksDB asked of its file system, as its plugin wrote it down (docs/rocksdb.md), on the small zoned file
/// system of `workload.lsm`. What each thread did, in which order, and its processor time between are the recording's;
/// what had to wait for what follows from the files, and from RocksDB's limits below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedConfig {
    /// The recording, relative to the file that says so, plain or compressed with zstd.
    pub path: String,
    /// Puts that are made first and not measured: an earlier benchmark's of the same recording.
    pub skip: u64,
    /// Puts that are measured; 0 for all that follow.
    pub puts: u64,
    /// Bytes of a pair, for figures in bytes.
    pub pair: Bytes,
    /// Log appends that share a write. A block of 4 KiB holds four records of 925 bytes.
    pub puts_per_append: u32,
    /// Processor time of a put, in place of the recorded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_time: Option<Span>,
    /// How much of the recorded processor time is spent: less on a faster host.
    pub work: Ratio,
    /// Bytes of a write of a table at most.
    pub table_io: Bytes,
    /// Memtables at most, the one that is written included (`max_write_buffer_number`).
    pub write_buffers: u32,
    /// Tables of flushed memtables at which the writer is slowed down (`level0_slowdown_writes_trigger`).
    pub slowdown_at: u32,
    /// How fast it may put then (`delayed_write_rate`).
    pub delayed_write_rate: BytesPerSec,
    /// Where it stops (`level0_stop_writes_trigger`).
    pub stop_at: u32,
    /// When tables are made durable.
    pub order: SyncOrder,
    /// Whether a log is made durable where its zone ends, on a drive without a protected region. Its writer waits for
    /// the rest of the zone then.
    pub log_zone_end: LogZoneEnd,
}

/// What a log does where its zone ends.
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
        let LsmConfig { pair, puts_per_append, table_io, write_buffers, .. } = LsmConfig::default();
        let LsmConfig { slowdown_at, stop_at, order, .. } = LsmConfig::default();
        Self {
            path: String::new(),
            skip: 0,
            puts: 0,
            pair,
            puts_per_append,
            put_time: None,
            work: Ratio::ONE,
            table_io,
            write_buffers,
            slowdown_at,
            // What db_bench says if it is not told (`db_bench --help`); RocksDB's own default is 16 MiB/s.
            delayed_write_rate: BytesPerSec::new(8 << 20),
            stop_at,
            order,
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
        let positive = [
            ("pair", self.pair.get()),
            ("puts_per_append", self.puts_per_append.into()),
            ("table_io", self.table_io.get()),
            ("slowdown_at", self.slowdown_at.into()),
            ("delayed_write_rate", self.delayed_write_rate.get()),
            ("stop_at", self.stop_at.into()),
        ];
        if let Some((key, _)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(ConfigError::new(key, "0: give 1 or more"));
        }
        if self.write_buffers < 2 {
            let problem =
                format!("{}: one is written while another is flushed", self.write_buffers);
            return Err(ConfigError::new("write_buffers", problem));
        }
        Ok(())
    }

    /// What [`super::super::pace::Pace`] goes by.
    pub(super) fn pace(&self) -> LsmConfig {
        LsmConfig {
            slowdown_at: self.slowdown_at,
            delayed_write_rate: self.delayed_write_rate,
            ..LsmConfig::default()
        }
    }
}

//! An LSM key-value store: `[workload.lsm]`.

use leyden_sim::{Bytes, BytesPerSec, ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ZoneLayout;

/// An LSM key-value store on a zoned file system, as RocksDB on ZenFS is one: its log appends, tables,
/// syncs, metadata and deletions, without its keys. The defaults are the set-up of Selective-PLP (tables 2
/// and 3); sizes and syncs were counted from RocksDB 7.8.3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LsmConfig {
    /// What is done.
    pub benchmark: Benchmark,
    /// Key-value pairs that are put.
    pub puts: u64,
    /// Bytes of a pair (table 3: a key of 100 and a value of 800 bytes).
    pub pair: Bytes,
    /// Bytes of a pair in the log.
    pub log_record: Bytes,
    /// Pairs whose records share a log append. A block of 4 KiB holds four.
    pub puts_per_append: u32,
    /// Processor time of a put, on the average: what the puts of an append take is drawn from half of that to
    /// half as much again. All other waiting comes from the drive, and from the limits below.
    pub put_time: Span,
    /// Bytes of a memtable (`write_buffer_size`).
    pub write_buffer: Bytes,
    /// Memtables at most, the one that is written included (`max_write_buffer_number`).
    pub write_buffers: u32,
    /// Bytes of a write or read of a table.
    pub table_io: Bytes,
    /// Bytes that are compacted for each byte that a memtable is flushed, with `overwrite`. Counted from RocksDB
    /// 7.8.3 with 3,000,000 pairs: 21.9 GB beside 2.5 GB of memtables, and none with `fillseq`.
    pub compaction_factor: u32,
    /// Threads that compact.
    pub compactors: u32,
    /// Memtables' worth of tables that wait to be compacted at which the writer is slowed down
    /// (`level0_slowdown_writes_trigger`).
    pub slowdown_at: u32,
    /// How fast it may put then (`delayed_write_rate`). While more and more waits to be compacted, the rate
    /// falls by a fifth with every table; while it gets less, it grows by a quarter, up to this.
    pub delayed_write_rate: BytesPerSec,
    /// Where it stops (`level0_stop_writes_trigger`).
    pub stop_at: u32,
    /// When tables are made durable.
    pub order: SyncOrder,
}

/// What `db_bench` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Benchmark {
    /// Keys in order: tables never overlap, and nothing is compacted.
    #[default]
    Fillseq,
    /// Keys at random, in a store that has them all.
    Overwrite,
}

/// When the host flushes a table that is referred to by durable metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncOrder {
    /// Before the metadata is written: a log is deleted only when its table is durable.
    #[default]
    Sound,
    /// Never: no FLUSH is sent. The flag protects metadata, and the table may still be volatile when its log is deleted
    /// (the published host code; ZenFS at the end of 2021 sends none either).
    Published,
}

impl Default for LsmConfig {
    fn default() -> Self {
        Self {
            benchmark: Benchmark::default(),
            puts: 3_000_000,
            pair: Bytes::new(900),
            log_record: Bytes::new(925),
            puts_per_append: 4,
            // The writing thread of db_bench took 3.13 to 3.19 us of processor time for a put of this size
            // (RocksDB 7.8.3, fillseq, 1,000,000 puts, log on a RAM disk, three runs).
            put_time: Span::from_ns(3_200),
            write_buffer: Bytes::new(8 << 20),
            write_buffers: 2,
            table_io: Bytes::new(1 << 20),
            compaction_factor: 8,
            compactors: 1,
            // RocksDB's own defaults, these three and `write_buffers`.
            slowdown_at: 20,
            delayed_write_rate: BytesPerSec::new(16 << 20),
            stop_at: 36,
            order: SyncOrder::default(),
        }
    }
}

impl LsmConfig {
    /// Checks every value.
    ///
    /// # Errors
    /// Names the key that is impossible, and what would be right.
    pub fn check(&self, layout: &ZoneLayout) -> Result<(), ConfigError> {
        let positive = [
            ("puts", self.puts),
            ("pair", self.pair.get()),
            ("log_record", self.log_record.get()),
            ("puts_per_append", self.puts_per_append.into()),
            ("write_buffer", self.write_buffer.get()),
            ("table_io", self.table_io.get()),
            ("compactors", self.compactors.into()),
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
        if self.compactors > 64 {
            let problem = format!("{} is more than 64", self.compactors);
            return Err(ConfigError::new("compactors", problem));
        }
        let most = self.log_record.get() * u64::from(self.puts_per_append);
        if most > layout.capacity * 512 || self.table_io.get() > layout.capacity * 512 {
            let problem = "a log append, or a write of a table, is more than a zone holds";
            return Err(ConfigError::new("table_io", problem));
        }
        Ok(())
    }
}

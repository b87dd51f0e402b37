//! An LSM key-value store: `[workload.lsm]`.

use leyden_sim::{Bytes, ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ZoneLayout;

/// Constants of the store: RocksDB's and `db_bench`'s defaults, and counts from RocksDB 7.8.3.
pub mod rocksdb {
    use leyden_sim::BytesPerSec;

    /// Bytes of a pair (Selective-PLP, table 3: a key of 100 and a value of 800 bytes).
    pub const PAIR: u64 = 900;
    /// Bytes of a pair in the log.
    pub const LOG_RECORD: u64 = 925;
    /// Pairs whose records share a log append: a block of 4 KiB holds four.
    pub const PUTS_PER_APPEND: u32 = 4;
    /// Memtables at most, the one that is written included (`max_write_buffer_number`).
    pub const WRITE_BUFFERS: u32 = 2;
    /// Bytes of a write or read of a table, unless configured.
    pub const TABLE_IO: u64 = 1 << 20;
    /// Bytes that are compacted for each byte that a memtable is flushed, with `overwrite`: with 3,000,000 pairs
    /// 21.9 GB beside 2.5 GB of memtables, and none with `fillseq`.
    pub const COMPACTION_FACTOR: u64 = 8;
    /// Memtables' worth of tables that wait to be compacted at which the writer is slowed down
    /// (`level0_slowdown_writes_trigger`).
    pub const SLOWDOWN_AT: u32 = 20;
    /// Where it stops (`level0_stop_writes_trigger`).
    pub const STOP_AT: u32 = 36;
    /// How fast a slowed writer may put (`delayed_write_rate`). While more waits to be compacted, the rate falls by a
    /// fifth with every table; while less waits, it grows by a quarter, up to this.
    pub const DELAYED_WRITE_RATE: BytesPerSec = BytesPerSec::new(16 << 20);
    /// The same where `db_bench` sets it (`db_bench --help`).
    pub const DB_BENCH_DELAYED_WRITE_RATE: BytesPerSec = BytesPerSec::new(8 << 20);
}

/// An LSM key-value store on a zoned file system, as RocksDB on ZenFS is one: its log appends, tables,
/// syncs, metadata and deletions, without its keys. The defaults are the set-up of Selective-PLP (tables 2
/// and 3); sizes and syncs were counted from RocksDB 7.8.3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LsmConfig {
    /// The operation.
    pub benchmark: Benchmark,
    /// Key-value pairs that are put.
    pub puts: u64,
    /// Processor time of a put, on the average: the time for the puts of an append is drawn from 50 % to 150
    /// % of it. All other waiting comes from the drive, and from the limits below.
    pub put_time: Span,
    /// Bytes of a memtable (`write_buffer_size`).
    pub write_buffer: Bytes,
    /// Bytes of a write or read of a table; no more than a zone holds.
    pub table_io: Bytes,
    /// When tables are made durable.
    pub order: SyncOrder,
}

/// The benchmark of `db_bench`.
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
    /// Never: no FLUSH is sent. The flag protects metadata, and the table may still be volatile when its log
    /// is deleted
    /// (the published host code; ZenFS at the end of 2021 sends none either).
    Published,
}

impl Default for LsmConfig {
    fn default() -> Self {
        Self {
            benchmark: Benchmark::default(),
            puts: 3_000_000,
            // The writing thread of db_bench took 3.13 to 3.19 us of processor time for a put of this size
            // (RocksDB 7.8.3, fillseq, 1,000,000 puts, log on a RAM disk, three runs).
            put_time: Span::from_ns(3_200),
            write_buffer: Bytes::new(8 << 20),
            table_io: Bytes::new(rocksdb::TABLE_IO),
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
            ("write_buffer", self.write_buffer.get()),
            ("table_io", self.table_io.get()),
        ];
        if let Some((key, _)) = positive.into_iter().find(|&(_, value)| value == 0) {
            return Err(ConfigError::new(key, "0: give 1 or more"));
        }
        let append = rocksdb::LOG_RECORD * u64::from(rocksdb::PUTS_PER_APPEND);
        let most = layout.capacity * 512;
        if append > most || self.table_io.get() > most {
            let problem = "a log append, or a write of a table, is more than a zone holds";
            return Err(ConfigError::new("table_io", problem));
        }
        Ok(())
    }
}

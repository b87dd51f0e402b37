//! The run record: what a run yields, as JSON (schema-versioned). Other tools rely on these names.
//!
//! Latencies are in microseconds, rates per simulated second, sizes in bytes; `sim.*` alone speaks
//! of the machine that ran the simulation.

mod host;
mod lifetime;
mod power;
mod steadiness;
mod timeline;
mod zoned_block;
mod zones;

pub use leyden_device::{Programs, Reads, ZoneState};
pub use leyden_host::zoned_block::{Chunk, ChunkPlace, RandomZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use host::{Cache, Hints, Tenant};
pub use lifetime::Lifetime;
pub use power::{
    Bank, MadeCut, Power, PowerMoment, Recovery, RecoveryStep, Sampled, Spread, WithLess, Worst,
};
pub use steadiness::{Repetition, Settling, Steadiness};
pub use timeline::{FollowedCommand, FollowedOperation, Levels, SlowCommand, Timeline};
pub use zoned_block::ZonedBlock;
pub use zones::{FlushWaits, Store, ZoneMoment, Zones};

/// Bumped when a name or meaning changes; readers refuse what they don't know. Parts that may be absent
/// can be added without. Version 2 had `programs.recovery`, which was always 0.
pub const RECORD_VERSION: u32 = 3;
/// The oldest version that is read.
pub const RECORD_VERSION_LEAST: u32 = 2;

/// True if records of `version` are read.
pub fn is_version_read(version: u64) -> bool {
    (u64::from(RECORD_VERSION_LEAST)..=u64::from(RECORD_VERSION)).contains(&version)
}

/// Everything a run tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// The version of these names and meanings that the writer held to.
    pub record_version: u32,
    /// Version of Leyden that ran.
    pub leyden_version: String,
    /// The run's name: the configuration's, or its file's.
    pub name: String,
    /// The scenario's name, if the run has another because it is one of several.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scenario: String,
    /// The commit that Leyden was built from, if that is known; with `+` if its files had been changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The command that repeats the run.
    pub reproduce: String,
    /// The seed everything random came from.
    pub seed: u64,
    /// The configuration, with every default filled in.
    pub config: serde_json::Value,
    /// The keys that a comparison varied, and this run's values of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varied: Vec<Varied>,
    /// The drive in numbers that follow from the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<Drive>,
    /// The files that the workload was read from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Warnings about the rest (clipped requests, a late trace, ...).
    pub warnings: Vec<String>,
    /// The simulation itself.
    pub sim: Sim,
    /// The host's view.
    pub host: Host,
    /// Flash operations.
    pub flash: Flash,
    /// Garbage collection.
    pub gc: Gc,
    /// The mapping table.
    pub map: Map,
    /// The write buffer.
    pub buffer: Buffer,
    /// The page cache; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Zombie hints; absent if there is no way for them to the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
    /// The zones; absent on a conventional drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Zones>,
    /// The layer that makes a block device of a conventional and a zoned drive; absent without one. The record's
    /// flash is that of both drives then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned_block: Option<ZonedBlock>,
    /// Power loss; absent if the drive's power is never cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// How the drive came back from a power cut; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Wear of the blocks at the end.
    pub wear: Wear,
    /// How busy dies and channels were.
    pub utilisation: Utilisation,
    /// How steady the drive was.
    #[serde(default)]
    pub steadiness: Steadiness,
    /// All of the above over time; absent in records without series (`leyden run --no-series`).
    #[serde(default, skip_serializing_if = "Series::is_empty")]
    pub series: Series,
}

impl RunRecord {
    /// The published schema of a run record.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(RunRecord)
    }
}

/// A key that a comparison varied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Varied {
    /// The key, as it was written: `device.ftl.gc.victim`; `device` for a whole drive.
    pub key: String,
    /// Its value, as it was written.
    pub value: String,
}

/// A drive in numbers: figures that follow from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Drive {
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Channels.
    pub channels: u32,
    /// Dies, of all channels.
    pub dies: u32,
    /// Bytes of a flash page.
    pub page_bytes: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
}

/// A file that a workload was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// Its path, as the configuration writes it.
    pub path: String,
    /// Its bytes, as stored.
    pub bytes: u64,
    /// SHA-256 of its bytes as stored, 64 hex digits, as printed by `sha256sum`.
    pub sha256: String,
}

/// The simulation itself: the machine's time, not the drive's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sim {
    /// Wall time of the measured part, seconds.
    pub wall_s: f64,
    /// Simulated host I/Os per second of wall time.
    pub host_ios_per_s: f64,
    /// Simulated flash page operations (reads, programs, erases) per second of wall time.
    pub flash_ops_per_s: f64,
    /// Processor time of the measured part, user and system, seconds. Unlike wall time, it hardly depends on
    /// the machine's other work.
    #[serde(default)]
    pub cpu_s: f64,
    /// Simulated host I/Os per second of processor time.
    #[serde(default)]
    pub host_ios_per_cpu_s: f64,
    /// Simulated flash page operations per second of processor time.
    #[serde(default)]
    pub flash_ops_per_cpu_s: f64,
    /// Wall time of preconditioning (or of loading its snapshot), seconds.
    pub precondition_wall_s: f64,
    /// Peak resident memory of the process, MiB: with other runs at the same time, of all of them.
    pub peak_rss_mib: f64,
    /// Bytes of device state per logical mapping unit.
    pub bytes_per_mapping_unit: f64,
    /// Whether the drive's own invariants were checked after the run (`run.check`).
    #[serde(default)]
    pub checked: bool,
    /// Fingerprint of everything that happened, 16 hex digits; same inputs, same digest.
    pub digest: String,
}

/// The host's view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Read commands completed.
    pub reads: u64,
    /// Write commands completed.
    pub writes: u64,
    /// Flush commands completed.
    pub flushes: u64,
    /// Trim and write-zeroes commands completed.
    pub trims: u64,
    /// Commands that ended with an error status.
    pub errors: u64,
    /// Of these, writes that the drive refused because its flash had no room left: it is worn out. Those that
    /// `run.faults` made fail are not among them.
    #[serde(default)]
    pub write_faults: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Simulated time, seconds.
    pub elapsed_s: f64,
    /// Of a trace: the time that its measured part took when it was recorded, seconds. Over `elapsed_s`, how
    /// many times
    /// as fast it was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_s: Option<f64>,
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
    /// The same for each of several jobs, or for each class of a trace's requests. Empty if there is only
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<Tenant>,
}

/// A latency distribution, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile. Of fewer than 10,000 commands it is the largest.
    #[serde(default)]
    pub p9999: f64,
    /// Largest.
    pub max: f64,
    /// The whole distribution, as `[percentile (0..=100), microseconds]`, ascending. Empty if
    /// nothing was measured.
    pub distribution: Vec<(f64, f64)>,
}

/// Flash operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flash {
    /// Write amplification: bytes programmed over bytes the host wrote. 0 if it wrote nothing.
    pub waf: f64,
    /// Block erases.
    pub erases: u64,
    /// Page programs.
    pub programs: Programs,
    /// Page reads.
    pub reads: Reads,
    /// Mapping units left empty in programmed pages (a flush could not wait for a full page).
    pub padded_units: u64,
    /// Programs that failed and were repeated elsewhere.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
}

/// Garbage collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gc {
    /// Name of the victim policy.
    pub policy: String,
    /// Blocks collected.
    pub collections: u64,
    /// Of those, blocks emptied to level wear.
    #[serde(default)]
    pub wear_moves: u64,
    /// Pages' worth of data copied (units copied over units per page).
    pub copied_pages: f64,
    /// Of those, zombie data.
    pub copied_zombie_pages: f64,
    /// Mean share of valid units in the blocks collected.
    pub victim_utilisation: f64,
}

/// The mapping table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Map {
    /// Mapping pages in all.
    pub pages: u64,
    /// Pages that capacitors protect: how many mapping pages may be dirty at once; with the protection
    /// `journal`, which lets all of them be dirty, the pages of the journal that DRAM holds.
    pub protected_pages: u64,
    /// The most that were dirty at once.
    pub dirty_peak: u64,
    /// Mapping pages written back.
    pub writebacks: u64,
    /// Pages of the mapping table's journal written; 0 but with the protection `journal`.
    #[serde(default)]
    pub journal_pages: u64,
    /// Share of updates that found their mapping page dirty already.
    pub hit_ratio: f64,
}

/// The write buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Buffer {
    /// The most bytes held at once.
    pub peak_bytes: u64,
    /// Time writes spent waiting for room, summed over commands, seconds.
    pub stalls_s: f64,
    /// Bytes dropped unwritten, because they were trimmed.
    pub discarded_bytes: u64,
    /// Unit writes that replaced data still in the buffer.
    pub coalesced_writes: u64,
    /// Unit reads served from the buffer.
    pub read_hits: u64,
}

/// Wear at the end of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wear {
    /// Erases of the least worn good block over the device's life.
    pub min: u64,
    /// Mean over good blocks.
    pub mean: f64,
    /// Erases of the most worn good block.
    pub max: u64,
    /// Blocks retired (worn, failed, or bad from the factory).
    pub bad_blocks: u64,
    /// Blocks by erase count: `[erase count at the bar's left edge, blocks]`, at most 64 bars of
    /// equal width.
    pub histogram: Vec<(u64, u64)>,
}

/// Shares of simulated time that things were busy, 0..=1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Utilisation {
    /// Per die, in die order.
    pub dies: Vec<f64>,
    /// Per channel.
    pub channels: Vec<f64>,
}

/// Figures of intervals of equal length. All vectors are as long as `time_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Length of an interval, simulated seconds.
    pub interval_s: f64,
    /// From the beginning of the run to that of the first interval: its ramp. Simulated seconds.
    #[serde(default)]
    pub start_s: f64,
    /// End of each interval; the last may be short.
    pub time_s: Vec<f64>,
    /// Reads per second.
    pub read_iops: Vec<f64>,
    /// Writes per second.
    pub write_iops: Vec<f64>,
    /// MiB read per second.
    pub read_mib_per_s: Vec<f64>,
    /// MiB written per second.
    pub write_mib_per_s: Vec<f64>,
    /// Mean read latency; 0 where nothing was read.
    pub read_mean_us: Vec<f64>,
    /// Median read latency, at most a sixteenth too high; 0 where nothing was read.
    #[serde(default)]
    pub read_p50_us: Vec<f64>,
    /// 99th percentile of the read latency, likewise.
    #[serde(default)]
    pub read_p99_us: Vec<f64>,
    /// Largest read latency.
    pub read_max_us: Vec<f64>,
    /// Mean write latency; 0 where nothing was written.
    pub write_mean_us: Vec<f64>,
    /// Median write latency, at most a sixteenth too high; 0 where nothing was written.
    #[serde(default)]
    pub write_p50_us: Vec<f64>,
    /// 99th percentile of the write latency, likewise.
    #[serde(default)]
    pub write_p99_us: Vec<f64>,
    /// Flushes per second.
    #[serde(default)]
    pub flushes_per_s: Vec<f64>,
    /// Mean latency of flushes; 0 where there was none.
    #[serde(default)]
    pub flush_mean_us: Vec<f64>,
    /// Median latency of flushes, at most a sixteenth too high; 0 where there was none.
    #[serde(default)]
    pub flush_p50_us: Vec<f64>,
    /// 99th percentile of the latency of flushes, likewise.
    #[serde(default)]
    pub flush_p99_us: Vec<f64>,
    /// Largest latency of a flush.
    #[serde(default)]
    pub flush_max_us: Vec<f64>,
    /// Commands outstanding at the drive, mean over the interval.
    #[serde(default)]
    pub queue_depth: Vec<f64>,
    /// Bytes in the write buffer at the interval's end.
    #[serde(default)]
    pub buffered_bytes: Vec<u64>,
    /// Free blocks that data may have, of all dies, at the interval's end.
    #[serde(default)]
    pub free_blocks: Vec<u64>,
    /// Largest write latency.
    pub write_max_us: Vec<f64>,
    /// Write amplification in the interval; 0 where nothing was written.
    pub waf: Vec<f64>,
    /// Programs per second by cause.
    pub programs: Vec<Programs>,
    /// Reads per second by cause.
    pub reads: Vec<Reads>,
    /// Mean share of time dies were busy.
    pub die_busy: Vec<f64>,
    /// Mean share of time channels were busy.
    pub channel_busy: Vec<f64>,
}

impl Series {
    /// Whether it has no interval.
    pub fn is_empty(&self) -> bool {
        self.time_s.is_empty()
    }
}

/// Several configurations on the same work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The runs, in the order they were named; ratios are over the first.
    pub runs: Vec<RunRecord>,
}

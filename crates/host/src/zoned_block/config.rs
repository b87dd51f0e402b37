//! The table `[host.zoned_block]`.

use leyden_sim::{Bytes, ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::victim::ReclaimConfig;

/// A block device on a conventional and a zoned drive. The defaults are dm-zoned's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZonedBlockConfig {
    /// Sequential zones that no chunk gets: reclaim moves data there (`DMZ_NR_RESERVED_SEQ`).
    pub reserved_zones: u32,
    /// Which random zone is reclaimed next.
    pub victim: ReclaimConfig,
    /// The treatment of a chunk whose buffer zone is reclaimed.
    pub merge: Merge,
    /// When a move is aborted by a conflicting request.
    pub give_up: GiveUp,
    /// When a chunk is moved, the writers that have waited for it may take zones before reclaim asks whether
    /// few are free: after this share of the moves, drawn from the seed. Reclaim stops where it asks first
    /// and finds enough. In dm-zoned two threads
    /// race (`dmz_reclaim_rnd_data` wakes the writers, `dmz_flush_metadata` keeps them out); in seven runs of
    /// Linux 6.1 the
    /// writers won after 12 of 19 moves (docs/papers/journal-zones.md).
    pub writers_first: Ratio,
    /// Reclaim begins when no more than this share of the random zones is free
    /// (`DMZ_RECLAIM_LOW_UNMAP_FRAC`).
    pub low_free: Ratio,
    /// While a chunk is moved, others are begun (`reclaims`) as long as no more than this share is free.
    /// dm-zoned moves one at
    /// a time: its `DMZ_RECLAIM_HIGH_UNMAP_FRAC` decides nothing, for it asks for the lower share, too.
    pub high_free: Ratio,
    /// The device is idle without a request for this time (`DMZ_IDLE_PERIOD`). Then everything is reclaimed,
    /// at the next check: when a zone is taken or a move has ended, and at this interval until the first
    /// work. 0 s: never.
    pub idle: Span,
    /// Which requests are a use of the device.
    pub idle_of: IdleOf,
    /// Chunks that are reclaimed at once.
    pub reclaims: u32,
    /// The most that reclaim moves with one read and one write (`DM_KCOPYD_SUBJOB_SIZE`).
    pub copy_size: Bytes,
    /// How long changed tables may wait to be written (`DMZ_FLUSH_PERIOD`). 0 s: until a FLUSH.
    pub commit_interval: Span,
    /// The treatment of journals.
    pub journal: JournalConfig,
}

/// How journals are recognised, and whether they are kept apart (Separating Journal Placement, section IV).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JournalConfig {
    /// Whether journal blocks get zones of their own, which are never reclaimed. If not, they are only counted.
    pub separate: bool,
    /// Recognition of journal blocks.
    pub recognise: Recognise,
    /// With `recognise = "range"`: where the journal begins.
    pub offset: Bytes,
    /// With `recognise = "range"`: its size.
    pub size: Bytes,
    /// The most random zones for journals. Journal blocks beyond them are treated as other data.
    pub max_zones: u32,
    /// Whether writes to journal zones ask the conventional drive to protect them (the PLP flag of
    /// Selective-PLP): then
    /// they are durable in its buffer, where that has a protected region.
    #[serde(skip_serializing_if = "is_off")]
    pub protect: bool,
}

/// Recognition of journal blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recognise {
    /// The command says so: a trace's class `journal` or `wal`.
    #[default]
    Class,
    /// It lies between `offset` and `offset + size`.
    Range,
    /// The superblock of ext4 or XFS says where it is. Only devices with bytes have superblocks: no simulation.
    Superblock,
}

/// The treatment of a chunk whose buffer zone is reclaimed, and has blocks below the write pointer of the chunk's
/// sequential zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// As dm-zoned: valid data of the sequential zone is copied into the buffer zone, which is the chunk's data
    /// zone from then on, and reclaimed again later.
    #[default]
    IntoBuffer,
    /// As the paper tells it (section II): both are copied into a new sequential zone.
    NewZone,
}

/// When a move is aborted by a conflicting request, which waits until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GiveUp {
    /// As dm-zoned (`dmz_reclaim_copy`): when a run of valid blocks is copied, however long it is, with the
    /// holes before it; the move of a buffer behind its sequential zone is never given up. A single run is
    /// moved whole.
    #[default]
    AfterRun,
    /// When the copy in flight has ended, `copy_size` at most: requests wait least, and a chunk in use is
    /// never moved.
    AfterCopy,
}

/// Which requests keep the device from being idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleOf {
    /// Those for chunks that have a sequential zone, as dm-zoned does it on two drives
    /// (`dmz_reclaim_bio_acc`): each drive
    /// has its own time of last use, and only the zoned one's reclaim moves anything.
    #[default]
    Zoned,
    /// All, as dm-zoned does it on one drive that has conventional zones, too.
    Both,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_off(flag: &bool) -> bool {
    !*flag
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            separate: false,
            recognise: Recognise::default(),
            offset: Bytes::new(0),
            size: Bytes::new(0),
            max_zones: 4,
            protect: false,
        }
    }
}

impl Default for ZonedBlockConfig {
    fn default() -> Self {
        Self {
            reserved_zones: 16,
            victim: ReclaimConfig::default(),
            merge: Merge::default(),
            give_up: GiveUp::default(),
            writers_first: Ratio::from_percent(63),
            low_free: Ratio::from_percent(30),
            high_free: Ratio::from_percent(50),
            idle: Span::from_ms(10_000),
            idle_of: IdleOf::default(),
            reclaims: 1,
            copy_size: Bytes::new(512 << 10),
            commit_interval: Span::from_ms(10_000),
            journal: JournalConfig::default(),
        }
    }
}

impl ZonedBlockConfig {
    /// Checks what can be checked without the members, whose blocks have `unit_bytes`.
    ///
    /// # Errors
    /// Names the key that is impossible.
    pub fn check(&self, unit_bytes: u32) -> Result<(), ConfigError> {
        let refuse = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        if self.low_free > self.high_free || self.high_free > Ratio::ONE {
            let problem = format!(
                "{} is more than high_free, {}, or that is more than 100 %",
                self.low_free, self.high_free
            );
            return refuse("low_free", problem);
        }
        if self.writers_first > Ratio::ONE {
            return refuse("writers_first", format!("{} is more than 100 %", self.writers_first));
        }
        if !(1..=64).contains(&self.reclaims) {
            return refuse("reclaims", format!("{} is not in 1..=64", self.reclaims));
        }
        if self.copy_size.get() < u64::from(unit_bytes) || self.copy_size.get() > 64 << 20 {
            let problem = format!(
                "{} is not between a block ({}) and 64 MiB",
                self.copy_size,
                Bytes::new(u64::from(unit_bytes))
            );
            return refuse("copy_size", problem);
        }
        let journal = &self.journal;
        if journal.separate && journal.max_zones == 0 {
            let problem =
                "0 zones leave no room for a journal: raise it, or turn journal.separate off";
            return refuse("journal.max_zones", problem.to_owned());
        }
        if journal.max_zones > 1 << 12 {
            return refuse("journal.max_zones", format!("{} is more than 4096", journal.max_zones));
        }
        if journal.protect && !journal.separate {
            let problem =
                "there are no journal zones to protect: set journal.separate, or turn this off";
            return refuse("journal.protect", problem.to_owned());
        }
        let is_range = journal.recognise == Recognise::Range;
        if is_range != (journal.size.get() > 0) {
            let problem = if is_range {
                "a range of no bytes: give journal.offset and journal.size"
            } else {
                "there is a range, and journal.recognise is not \"range\": set it, or leave the range out"
            };
            return refuse("journal.size", problem.to_owned());
        }
        let unit = u64::from(unit_bytes);
        for (key, value) in [("journal.offset", journal.offset), ("journal.size", journal.size)] {
            if !value.get().is_multiple_of(unit) {
                return refuse(
                    key,
                    format!("{value} is not a multiple of a block, {}", Bytes::new(unit)),
                );
            }
        }
        Ok(())
    }
}

//! Where zones, chunks and metadata lie on the two members.
//!
//! A *block* is a mapping unit. A zone has as many blocks as can be written to one of the zoned member's;
//! the conventional member is cut into zones of that size. Zones are numbered through: the random ones of
//! the conventional member first. A *chunk* is as much of the device's address space as a zone holds.
//!
//! ```text
//! conventional:  | set 0 | set 1 | (rest of the metadata zones) | random zones ...
//! zoned:         | zone 0: label | sequential zones ...
//! ```
//!
//! There are fewer chunks than sequential zones, so that every chunk can lie in one, and reclaim has
//! zones to move to.

use leyden_device::{Lba, SECTOR_BYTES, ZoneShape};
use leyden_sim::ConfigError;

use super::ZonedBlockConfig;

/// A zone of either member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ZoneNo(pub(super) u32);

/// A range of blocks of one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) zone: ZoneNo,
    /// The first block, counted from the zone's.
    pub(super) at: u32,
    pub(super) blocks: u32,
}

/// Which of the two drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Member {
    Conventional,
    Zoned,
}

/// The layout of the configuration on two members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) unit_bytes: u32,
    pub(super) zone_blocks: u32,
    /// From the first block of a zone of the zoned member to the next's.
    pub(super) stride: u32,
    /// Zones of the conventional member, those of the metadata among them.
    pub(super) random: u32,
    /// Of those, the first ones that hold metadata.
    pub(super) meta: u32,
    /// Zones of the zoned member, the one of the label among them.
    pub(super) sequential: u32,
    pub(super) chunks: u32,
    /// Zones that may hold a journal at most.
    pub(super) journal: u32,
    /// Sequential zones that may be written in part at once.
    pub(super) active: u32,
}

/// Runs of journal blocks that the metadata has room for.
pub(super) const JOURNAL_RUNS: u32 = 1024;

impl Layout {
    /// For a conventional member of `conventional_sectors` and a zoned one of `shape`.
    ///
    /// # Errors
    /// Names the key that is impossible, and what would be right.
    pub(super) fn new(
        config: &ZonedBlockConfig,
        unit_bytes: u32,
        conventional_sectors: u64,
        shape: &ZoneShape,
    ) -> Result<Self, ConfigError> {
        let unit_sectors = u64::from(unit_bytes) / SECTOR_BYTES;
        let zone_blocks = shape.capacity;
        let random = (conventional_sectors / unit_sectors / u64::from(zone_blocks)) as u32;
        let reserved = config.reserved_zones;
        if reserved < 2 || shape.zones < reserved + 2 {
            let problem = format!(
                "{reserved} is not between 2 and {}: the zoned member has {} zones, of which one is for \
                 its label and one at least for data",
                shape.zones.saturating_sub(2),
                shape.zones,
            );
            return Err(ConfigError::new("reserved_zones", problem));
        }
        let journal = if config.journal.separate { config.journal.max_zones } else { 0 };
        let mut layout = Self {
            unit_bytes,
            zone_blocks,
            stride: shape.size,
            random,
            meta: 0,
            sequential: shape.zones,
            chunks: shape.zones - 1 - reserved,
            journal,
            active: shape.max_active.min(shape.zones),
        };
        let meta = (2 * u64::from(layout.set_blocks())).div_ceil(u64::from(zone_blocks)) as u32;
        layout.meta = meta;
        let least = meta + journal + 2;
        if random < least {
            let problem = format!(
                "the conventional member has {random} zones of {zone_blocks} blocks, and {least} are \
                 needed: {meta} for metadata, {journal} for journals, 2 for data; make it larger, the \
                 zones smaller, or journal.max_zones less"
            );
            return Err(ConfigError::new("conventional", problem));
        }
        if layout.active < 3 {
            let problem = format!(
                "the zoned member allows {} active zones, and 3 are needed: for its label, for a \
                 chunk, and for the writes of reclaim; raise zoned.max_active",
                layout.active
            );
            return Err(ConfigError::new("zoned.max_active", problem));
        }
        Ok(layout)
    }

    pub(super) fn unit_sectors(&self) -> u64 {
        u64::from(self.unit_bytes) / SECTOR_BYTES
    }

    pub(super) fn zones(&self) -> u32 {
        self.random + self.sequential
    }

    /// The zone of the zoned member that says to whom it belongs.
    pub(super) fn label(&self) -> ZoneNo {
        ZoneNo(self.random)
    }

    /// Random zones that may hold data or a journal.
    pub(super) fn random_zones(&self) -> impl Iterator<Item = ZoneNo> + use<> {
        (self.meta..self.random).map(ZoneNo)
    }

    /// Sequential zones that may hold data.
    pub(super) fn sequential_zones(&self) -> impl Iterator<Item = ZoneNo> + use<> {
        (self.random + 1..self.zones()).map(ZoneNo)
    }

    pub(super) fn is_random(&self, zone: ZoneNo) -> bool {
        zone.0 < self.random
    }

    /// True if `zone` may be a chunk's, its buffer or a journal's.
    pub(super) fn is_for_data(&self, zone: ZoneNo) -> bool {
        (self.meta..self.random).contains(&zone.0)
            || (self.random + 1..self.zones()).contains(&zone.0)
    }

    pub(super) fn member(&self, zone: ZoneNo) -> Member {
        if self.is_random(zone) { Member::Conventional } else { Member::Zoned }
    }

    /// The first sector of block `at` of `zone`, on its member.
    pub(super) fn lba(&self, zone: ZoneNo, at: u32) -> Lba {
        let first = if self.is_random(zone) {
            u64::from(zone.0) * u64::from(self.zone_blocks)
        } else {
            u64::from(zone.0 - self.random) * u64::from(self.stride)
        };
        Lba((first + u64::from(at)) * self.unit_sectors())
    }

    /// Where block `block` of the metadata set `set` lies; its superblock is block 0.
    pub(super) fn meta_place(&self, set: usize, block: u32) -> Place {
        let number = set as u32 * self.set_blocks() + block;
        let (zone, at) = (number / self.zone_blocks, number % self.zone_blocks);
        Place { zone: ZoneNo(zone), at, blocks: 1 }
    }

    /// Words of the tables in a block of metadata; its last word is for its number and checksum.
    pub(super) fn words_per_block(&self) -> u32 {
        self.unit_bytes / 8 - 1
    }

    pub(super) fn bitmap_words(&self) -> u32 {
        self.zone_blocks.div_ceil(64)
    }

    /// Words of all tables: chunks, bitmaps of valid blocks, the journal's zones and runs.
    pub(super) fn words(&self) -> u32 {
        let journal = if self.journal == 0 { 0 } else { 1 + self.journal + 2 * JOURNAL_RUNS };
        self.chunks + self.zones() * self.bitmap_words() + journal
    }

    /// Blocks of the tables.
    pub(super) fn table_blocks(&self) -> u32 {
        self.words().div_ceil(self.words_per_block())
    }

    /// Blocks of a set: its superblock and the tables.
    pub(super) fn set_blocks(&self) -> u32 {
        1 + self.table_blocks()
    }
}

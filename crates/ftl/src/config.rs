//! The FTL's configuration.

use leyden_nand::Geometry;
use leyden_sim::{Bytes, ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gc::level::LevelConfig;
use crate::gc::{AgeClock, AgeOf, VictimConfig};
use crate::logs::LogConfig;
use crate::map::journal::JournalShape;
use crate::map::{ENTRY_BYTES, ProtectionConfig};
use crate::page_mapped::map_blocks_per_die;
use crate::place::{PlacementConfig, Streams};

/// The flash translation layer of a page-mapped drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Flash beyond the logical capacity, as a share of it: physical / logical - 1.
    pub over_provisioning: Ratio,
    /// Logical capacity, if given: overrides `over_provisioning`.
    pub capacity: Option<Bytes>,
    /// The unit of mapping: each has a 4-byte entry in the table. Smaller writes are
    /// read-modify-write.
    pub mapping_unit: Bytes,
    /// Garbage collection.
    pub gc: GcConfig,
    /// Which data shares blocks.
    pub placement: PlacementConfig,
    /// Copies of zombies, which the host has said it will overwrite, get blocks of their own (Zombie
    /// Chasing, section 3.2.2).
    pub zombie_block: bool,
    /// Logs, which are overwritten in sequence over and over, get blocks of their own.
    pub log_stream: LogConfig,
    /// The mapping table.
    pub map: MapConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            over_provisioning: Ratio::from_percent(7),
            capacity: None,
            mapping_unit: Bytes::new(4096),
            gc: GcConfig::default(),
            placement: PlacementConfig::default(),
            zombie_block: false,
            log_stream: LogConfig::default(),
            map: MapConfig::default(),
        }
    }
}

/// When garbage is collected, and from where. Each die collects its own blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// Which block is collected next.
    pub victim: VictimConfig,
    /// Which block is collected for its wear: static wear levelling.
    pub levelling: LevelConfig,
    /// At this many free blocks on a die or fewer, it collects in the background: when it has
    /// nothing to do for the host.
    pub soft_free_blocks: u32,
    /// At this many free blocks on a die or fewer, collecting goes before the host's writes. With 0 in
    /// both, a die collects on demand: when a write finds no page but in the last free block, the destination
    /// of a collection.
    pub hard_free_blocks: u32,
    /// How a die with `hard_free_blocks` free blocks shares its time between its collection and the
    /// host's writes. With fewer, collecting always goes first.
    pub pace: Pace,
    /// The origin of a block's age, for the victim policies that use it.
    #[serde(skip_serializing_if = "is_of_invalidation")]
    pub age_of: AgeOf,
    /// The clock of block ages, for the victim policies that use them.
    #[serde(skip_serializing_if = "is_time")]
    pub age_clock: AgeClock,
    /// That clock moves on in steps of this length: blocks that changed within one are equally old. 0: it
    /// always does.
    #[serde(skip_serializing_if = "is_no_time")]
    pub age_tick: Span,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_of_invalidation(of: &AgeOf) -> bool {
    *of == AgeOf::LastInvalidation
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_time(clock: &AgeClock) -> bool {
    *clock == AgeClock::Time
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_no_time(tick: &Span) -> bool {
    *tick == Span::ZERO
}

/// How a die that is short of blocks shares its time between its collection and the host's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// It collects, and writes for the host once it has an erased block again.
    #[default]
    AtOnce,
    /// The victim is emptied as fast as the open block fills: when that is full, the victim is erased.
    Even,
}

impl Default for GcConfig {
    fn default() -> Self {
        Self {
            victim: VictimConfig::default(),
            levelling: LevelConfig::default(),
            soft_free_blocks: 2,
            hard_free_blocks: 1,
            pace: Pace::default(),
            age_of: AgeOf::default(),
            age_clock: AgeClock::default(),
            age_tick: Span::ZERO,
        }
    }
}

/// The mapping table and its protection against power loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapConfig {
    /// The share that capacitors protect, and the handling of the rest.
    pub protection: ProtectionConfig,
    /// Entries of a mapping page, if not as many as fit in a flash page (4 bytes each).
    pub entries_per_page: Option<u32>,
    /// Effect of garbage collection's copies on the table, where a share of it is protected.
    pub copies: Copies,
    /// Blocks of each die that are kept back for the table and its journal, if more than they need: so that drives
    /// with different protection have as many for data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_blocks: Option<u32>,
}

/// Effect of garbage collection's copies on a table with a protected share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Copies {
    /// They make no mapping page dirty: flash points to where the data was copied from, which stays until its
    /// mapping pages have become dirty otherwise, or are written back because the die needs the block.
    #[default]
    Deferred,
    /// They make mapping pages dirty as writes do (Hexa, figure 4: mapping pages written for garbage collection).
    Dirty,
}

impl MapConfig {
    /// Entries of a mapping page.
    pub fn entries_per_page(&self, geometry: &Geometry) -> u32 {
        self.entries_per_page.unwrap_or(geometry.page_bytes() / ENTRY_BYTES)
    }

    /// Blocks of each die that are kept back for `pages` mapping pages.
    pub fn blocks_per_die(&self, geometry: &Geometry, pages: u32) -> u32 {
        let needed = self.needed_blocks_per_die(geometry, pages);
        self.kept_blocks.map_or(needed, |kept| {
            kept.saturating_sub(self.journal_blocks_per_die(geometry, pages)).max(needed)
        })
    }

    fn needed_blocks_per_die(&self, geometry: &Geometry, pages: u32) -> u32 {
        if self.protection.writes_back() { map_blocks_per_die(geometry, pages) } else { 0 }
    }

    /// Blocks of each die that are kept back for the journal of a table of `pages` mapping pages.
    pub fn journal_blocks_per_die(&self, geometry: &Geometry, pages: u32) -> u32 {
        self.journal_shape(geometry, pages).map_or(0, |shape| shape.blocks_per_die(geometry))
    }

    /// Blocks of each die that are kept back for a table of `pages` mapping pages and its journal.
    pub fn kept_blocks_per_die(&self, geometry: &Geometry, pages: u32) -> u32 {
        self.blocks_per_die(geometry, pages) + self.journal_blocks_per_die(geometry, pages)
    }

    fn journal_shape(&self, geometry: &Geometry, pages: u32) -> Option<JournalShape> {
        match &self.protection {
            ProtectionConfig::Journal(journal) => Some(journal.shape(geometry, pages)),
            _ => None,
        }
    }

    fn blocks_for_units(&self, geometry: &Geometry, units: u64) -> u32 {
        let pages = units.div_ceil(u64::from(self.entries_per_page(geometry))) as u32;
        self.kept_blocks_per_die(geometry, pages)
    }

    fn check(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let most = geometry.page_bytes() / ENTRY_BYTES;
        if let Some(entries) = self.entries_per_page
            && !(1..=most).contains(&entries)
        {
            let problem = format!("{entries} is not in 1..={most}, the entries of a flash page");
            return Err(ConfigError::new("map.entries_per_page", problem));
        }
        if let ProtectionConfig::Partial(partial) = &self.protection
            && (partial.protected == Ratio::ZERO || partial.protected > Ratio::ONE)
        {
            let problem = format!("{} is not above 0 % and up to 100 %", partial.protected);
            return Err(ConfigError::new("map.protection.protected", problem));
        }
        if let ProtectionConfig::Journal(journal) = &self.protection {
            if journal.size == Bytes::new(0) {
                let problem = "a journal of no size protects nothing".to_owned();
                return Err(ConfigError::new("map.protection.size", problem));
            }
            if journal.flash == Ratio::ZERO || journal.flash > Ratio::ONE {
                let problem = format!("{} is not above 0 % and up to 100 %", journal.flash);
                return Err(ConfigError::new("map.protection.flash", problem));
            }
        }
        Ok(())
    }
}

impl Config {
    /// The streams that this placement, these logs, zombies and moves for wear take.
    pub fn streams(&self) -> Streams {
        let levels = !matches!(self.gc.levelling, LevelConfig::Off(_));
        Streams::new(&self.placement, &self.log_stream, self.zombie_block, levels)
    }

    /// Checks every value against `geometry`, and computes how many mapping units the host can
    /// address.
    ///
    /// `dump_blocks` of each die are kept back for what a power cut must save.
    pub fn logical_units(&self, geometry: &Geometry, dump_blocks: u32) -> Result<u32, ConfigError> {
        self.check_policies(geometry)?;
        let unit = self.mapping_unit.get();
        let (key, units) = self.units_asked(geometry);
        let most = self.most_logical_units(geometry, dump_blocks);
        if units == 0 && most > 0 {
            let problem = format!(
                "this leaves the host less than a mapping unit ({}); at most {} can be addressed",
                self.mapping_unit,
                Bytes::new(most * unit)
            );
            return Err(ConfigError::new(key, problem));
        }
        if most == 0 {
            let problem = format!(
                "no block of {} is left for the host: garbage collection needs {} free blocks, and as many open ones as \
                 there are streams ({}), on each of {} dies{}; give planes more blocks",
                Bytes::new(geometry.flash_bytes()),
                self.gc.hard_free_blocks.max(1),
                self.streams().count(),
                geometry.dies(),
                self.kept_text(geometry, dump_blocks, most),
            );
            return Err(ConfigError::new(key, problem));
        }
        if units == 0 || units > most {
            let problem = format!(
                "{} for the host, of {} of flash, is not possible: garbage collection needs \
                     {} free blocks, and as many open ones as there are streams ({}), on each of {} \
                     dies{}; at most {} can be addressed, with an over_provisioning of \"{}\"",
                Bytes::new(units * unit),
                Bytes::new(geometry.flash_bytes()),
                self.gc.hard_free_blocks.max(1),
                self.streams().count(),
                geometry.dies(),
                self.kept_text(geometry, dump_blocks, most),
                Bytes::new(most * unit),
                least_over_provisioning(geometry, most),
            );
            return Err(ConfigError::new(key, problem));
        }
        Ok(units as u32)
    }

    /// Mapping units that the host has at most, whatever is kept back for dumps.
    pub fn units_at_most(&self, geometry: &Geometry) -> Result<u32, ConfigError> {
        self.check_policies(geometry)?;
        let (_, asked) = self.units_asked(geometry);
        Ok(asked.min(self.most_logical_units(geometry, 0)) as u32)
    }

    /// Mapping units that are asked for, and by which key.
    fn units_asked(&self, geometry: &Geometry) -> (&'static str, u64) {
        if let Some(capacity) = self.capacity {
            return ("capacity", capacity.get() / self.mapping_unit.get());
        }
        let ppm = u128::from(1_000_000 + self.over_provisioning.as_ppm());
        ("over_provisioning", (u128::from(geometry.units()) * 1_000_000 / ppm) as u64)
    }

    /// Checks what other layers are built on: the mapping unit, which the geometry counts in, and the streams,
    /// for each of which the buffer has room.
    pub fn check_basis(&self) -> Result<(), ConfigError> {
        let unit = self.mapping_unit.get();
        if !unit.is_power_of_two() || !(512..=1 << 20).contains(&unit) {
            let problem = format!("{} is not a power of two in 512 B..=1 MiB", self.mapping_unit);
            return Err(ConfigError::new("mapping_unit", problem));
        }
        let streams = self.placement.streams();
        if !(1..=8).contains(&streams) {
            let problem = format!("{streams} is not in 2..=8");
            return Err(ConfigError::new("placement.regions", problem));
        }
        Ok(())
    }

    fn check_policies(&self, geometry: &Geometry) -> Result<(), ConfigError> {
        let error = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        self.check_basis()?;
        self.map.check(geometry)?;
        if self.gc.age_clock == AgeClock::Writes
            && matches!(self.gc.victim, VictimConfig::ZDeadline(_))
        {
            let problem = "\"writes\" has no deadlines, and z_deadline weighs ages against them: leave it out";
            return error("gc.age_clock", problem.to_owned());
        }
        let GcConfig { soft_free_blocks: soft, hard_free_blocks: hard, .. } = self.gc;
        if hard >= geometry.blocks_per_die() {
            let blocks = geometry.blocks_per_die();
            let problem = format!("{hard} is not below the blocks of a die ({blocks})");
            return error("gc.hard_free_blocks", problem);
        }
        if soft < hard || soft >= geometry.blocks_per_die() {
            let problem = format!(
                "{soft} is not between gc.hard_free_blocks ({hard}) and the blocks of a die ({})",
                geometry.blocks_per_die()
            );
            return error("gc.soft_free_blocks", problem);
        }
        Ok(())
    }

    /// The part of a refusal's message about blocks kept back.
    fn kept_text(&self, geometry: &Geometry, dump_blocks: u32, units: u64) -> String {
        let map = self.map.blocks_for_units(geometry, units);
        if map + dump_blocks == 0 {
            return String::new();
        }
        format!(" (and {map} for the mapping table, {dump_blocks} for dumps)")
    }

    /// The most units the host can address such that collection always finds a block that gains it
    /// a page, however the data lies.
    fn most_logical_units(&self, geometry: &Geometry, dump_blocks: u32) -> u64 {
        // More units need more mapping pages, and so leave room for fewer: bisection.
        let (mut fits, mut too_many) = (0, u64::from(geometry.units()) + 1);
        while too_many - fits > 1 {
            let units = fits.midpoint(too_many);
            let kept = dump_blocks + self.map.blocks_for_units(geometry, units);
            if self.units_beside(geometry, kept) >= units {
                fits = units;
            } else {
                too_many = units;
            }
        }
        fits
    }

    /// The most units the host can address if `kept` blocks of each die are not for data.
    fn units_beside(&self, geometry: &Geometry, kept: u32) -> u64 {
        let reserved = self.gc.hard_free_blocks.max(1) + u32::from(self.streams().count()) + kept;
        let blocks = u64::from(geometry.blocks_per_die().saturating_sub(reserved));
        // A closed block with less than a page of garbage is not worth collecting.
        let least_valid = u64::from(geometry.units_per_block() + 1 - geometry.units_per_page());
        (u64::from(geometry.dies()) * blocks * least_valid).saturating_sub(1)
    }
}

/// The least over-provisioning that leaves the host `units`, for the message.
fn least_over_provisioning(geometry: &Geometry, units: u64) -> Ratio {
    let spare = u64::from(geometry.units()) - units;
    Ratio::from_ppm((spare * 1_000_000).div_ceil(units.max(1)))
}

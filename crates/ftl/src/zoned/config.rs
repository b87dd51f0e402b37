//! The table `[device.zoned]`: what makes a drive a zoned one.

use leyden_nand::Geometry;
use leyden_sim::{Bytes, ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place::PlaceConfig;

/// A zoned namespace (NVMe Zoned Namespace Command Set 1.1). Its logical blocks are as large as
/// `ftl.mapping_unit`; nothing else of `[device.ftl]` matters to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// From the beginning of a zone to the beginning of the next (ZSZE). Linux wants a power of two.
    pub zone_size: Bytes,
    /// Writable capacity of a zone (ZCAP); whole blocks on each of its dies. If not given: all of it.
    pub zone_capacity: Option<Bytes>,
    /// Dies that a zone is spread over, page by page. The drive of Selective-PLP (section 4.5) has one:
    /// buffered data of a zone goes to one die.
    pub dies_per_zone: u32,
    /// Which dies and blocks a zone gets.
    pub place: PlaceConfig,
    /// Zones that may be open at once (MOR + 1); 0 for no limit.
    pub max_open: u32,
    /// Zones that may be active at once, open ones among them (MAR + 1); 0 for no limit.
    pub max_active: u32,
    /// The most data of a Zone Append (ZASL).
    pub append_limit: Bytes,
    /// The most data of a Copy (MCL), which the drive holds beside its buffer until that has room.
    pub copy_limit: Bytes,
    /// Share of the blocks that zones do not get, to replace bad ones.
    pub spare: Ratio,
    /// Zone Random Write Areas (TP 4076); none without this table.
    pub zrwa: Option<ZrwaConfig>,
    /// Bytes of a zone descriptor extension (ZDES), a multiple of 64 B; 0 for none.
    pub descriptor_extension: Bytes,
    /// Whether a read may continue into the next zone (RAZB).
    pub read_across_zones: bool,
}

/// Zone Random Write Areas: a window above the write pointer, in the protected region of the buffer, in
/// which the host may write in any order and overwrite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZrwaConfig {
    /// Size of an area (ZRWASZ).
    pub size: Bytes,
    /// The unit of its commits (ZRWAFG).
    pub granularity: Bytes,
    /// How many zones may have one at once (NUMZRWA).
    pub count: u32,
}

impl Default for ZrwaConfig {
    fn default() -> Self {
        // As Samsung's PM1731a has it: 64 KiB; the granularity is the least that makes sense here.
        Self { size: Bytes::new(64 << 10), granularity: Bytes::new(4 << 10), count: 4 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Selective-PLP, table 2.
            zone_size: Bytes::new(16 << 20),
            zone_capacity: None,
            dies_per_zone: 1,
            place: PlaceConfig::default(),
            max_open: 0,
            max_active: 0,
            append_limit: Bytes::new(1 << 20),
            copy_limit: Bytes::new(1 << 20),
            spare: Ratio::from_percent(2),
            zrwa: None,
            descriptor_extension: Bytes::new(0),
            read_across_zones: false,
        }
    }
}

/// The zones of the configuration on flash of a shape. All in mapping units but where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// Zones.
    pub zones: u32,
    /// From the beginning of a zone to the next.
    pub size: u32,
    /// Writable units of a zone.
    pub capacity: u32,
    /// Dies of a zone.
    pub dies_per_zone: u32,
    /// Zones that may be open; no more than there are zones.
    pub max_open: u32,
    /// Zones that may be active; no more than there are zones.
    pub max_active: u32,
    /// The most of an append.
    pub append_limit: u32,
    /// The most of a copy.
    pub copy_limit: u32,
    /// Of a Zone Random Write Area: its size and granularity; 0 if there are none.
    pub zrwa_size: u32,
    /// See `zrwa_size`.
    pub zrwa_granularity: u32,
    /// Areas.
    pub zrwa_count: u32,
    /// Bytes of a descriptor extension.
    pub extension_bytes: u32,
    /// Reads may go across zones.
    pub reads_across: bool,
}

impl Config {
    /// Checks every value. `kept_blocks` of each die are not for data.
    ///
    /// # Errors
    /// Names the key that is impossible, and what would be right.
    pub fn shape(&self, geometry: &Geometry, kept_blocks: u32) -> Result<ZoneShape, ConfigError> {
        let dies = geometry.dies();
        if self.dies_per_zone == 0 || self.dies_per_zone > dies {
            let problem = format!("{} is not in 1..={dies}, the dies", self.dies_per_zone);
            return Err(ConfigError::new("dies_per_zone", problem));
        }
        let row = u64::from(geometry.units_per_block())
            * u64::from(geometry.unit_bytes())
            * u64::from(self.dies_per_zone);
        let whole = |key: &str, size: Bytes| {
            if size.get() == 0 || !size.get().is_multiple_of(row) {
                let problem = format!(
                    "{size} is not a multiple of {}, a block on each of {} dies",
                    Bytes::new(row),
                    self.dies_per_zone
                );
                return Err(ConfigError::new(key, problem));
            }
            Ok(size.get())
        };
        let capacity_key = if self.zone_capacity.is_some() { "zone_capacity" } else { "zone_size" };
        let capacity = whole(capacity_key, self.zone_capacity.unwrap_or(self.zone_size))?;
        let unit = u64::from(geometry.unit_bytes());
        if capacity > self.zone_size.get() || !self.zone_size.get().is_multiple_of(unit) {
            let problem = format!(
                "{} is below the zone's capacity, or no multiple of ftl.mapping_unit: make it {} or more",
                self.zone_size,
                Bytes::new(capacity)
            );
            return Err(ConfigError::new("zone_size", problem));
        }
        let zones = self.zones(geometry, kept_blocks, capacity)?;
        self.check_limits(zones)?;
        let (zrwa_size, zrwa_granularity, zrwa_count) = self.zrwa_units(geometry, capacity)?;
        let extension = self.descriptor_extension.get();
        if !extension.is_multiple_of(64) || extension > 255 * 64 {
            let problem =
                format!("{} is not a multiple of 64 B up to 16320 B", self.descriptor_extension);
            return Err(ConfigError::new("descriptor_extension", problem));
        }
        let most = |key: &str, size: Bytes| {
            if size.get() < unit || size.get() > 1 << 30 {
                let block = Bytes::new(unit);
                let problem = format!("{size} is not between a logical block ({block}) and 1 GiB");
                return Err(ConfigError::new(key, problem));
            }
            Ok((size.get() / unit) as u32)
        };
        let limit = |most: u32| if most == 0 { zones } else { most.min(zones) };
        let units = |bytes: u64| (bytes / unit) as u32;
        Ok(ZoneShape {
            zones,
            size: units(self.zone_size.get()),
            capacity: units(capacity),
            dies_per_zone: self.dies_per_zone,
            max_open: limit(self.max_open),
            max_active: limit(self.max_active),
            append_limit: most("append_limit", self.append_limit)?,
            copy_limit: most("copy_limit", self.copy_limit)?,
            zrwa_size,
            zrwa_granularity,
            zrwa_count,
            extension_bytes: extension as u32,
            reads_across: self.read_across_zones,
        })
    }

    fn zones(
        &self,
        geometry: &Geometry,
        kept_blocks: u32,
        capacity: u64,
    ) -> Result<u32, ConfigError> {
        if self.spare > Ratio::from_percent(90) {
            return Err(ConfigError::new("spare", format!("{} is more than 90 %", self.spare)));
        }
        let per_zone = capacity / u64::from(geometry.unit_bytes() * geometry.units_per_block());
        let per_die = geometry.blocks_per_die().saturating_sub(kept_blocks);
        let blocks = u64::from(per_die) * u64::from(geometry.dies());
        // A zone takes as many blocks of each of its dies: what is odd of a die is no zone's.
        let left = blocks - self.spare.of(blocks);
        let zones = left / per_zone;
        let size_units = self.zone_size.get() / u64::from(geometry.unit_bytes());
        if zones == 0 || zones * size_units >= 1 << 31 {
            let problem = format!(
                "of {} blocks, {kept_blocks} of each die are kept for dumps and mapping and {} are \
                 spare, which leaves {zones} zones of {per_zone} blocks: 1 zone to fewer than 2^31 \
                 logical blocks must fit; change zone_size or the flash",
                geometry.blocks(),
                self.spare
            );
            return Err(ConfigError::new("zone_size", problem));
        }
        Ok(zones as u32)
    }

    fn check_limits(&self, zones: u32) -> Result<(), ConfigError> {
        let (open, active) = (self.max_open, self.max_active);
        if active != 0 && (open == 0 || open > active) {
            let problem = format!(
                "{} are more than max_active ({active}), and every open zone is active: lower it, or \
                 raise max_active",
                if open == 0 { "all".to_owned() } else { open.to_string() }
            );
            return Err(ConfigError::new("max_open", problem));
        }
        if open > zones || active > zones {
            let key = if active > zones { "max_active" } else { "max_open" };
            let problem = format!("there are only {zones} zones: 0 is no limit");
            return Err(ConfigError::new(key, problem));
        }
        Ok(())
    }

    fn zrwa_units(
        &self,
        geometry: &Geometry,
        capacity: u64,
    ) -> Result<(u32, u32, u32), ConfigError> {
        let Some(zrwa) = &self.zrwa else { return Ok((0, 0, 0)) };
        let unit = u64::from(geometry.unit_bytes());
        let (size, step) = (zrwa.size.get(), zrwa.granularity.get());
        if step == 0 || !step.is_multiple_of(unit) {
            let problem = format!("{} is not a multiple of ftl.mapping_unit", zrwa.granularity);
            return Err(ConfigError::new("zrwa.granularity", problem));
        }
        if size == 0 || !size.is_multiple_of(step) || !capacity.is_multiple_of(step) {
            let problem = format!(
                "{} is not a multiple of the granularity ({}), or the zone's capacity is not",
                zrwa.size, zrwa.granularity
            );
            return Err(ConfigError::new("zrwa.size", problem));
        }
        if size > capacity {
            let problem = format!("{} is more than a zone holds", zrwa.size);
            return Err(ConfigError::new("zrwa.size", problem));
        }
        if zrwa.count == 0 {
            return Err(ConfigError::new("zrwa.count", "0: leave the table `zrwa` out for none"));
        }
        Ok(((size / unit) as u32, (step / unit) as u32, zrwa.count))
    }
}

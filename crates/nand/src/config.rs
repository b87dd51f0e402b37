//! The flash: geometry, timing, endurance, faults. Validated once, by [`Config::geometry`].

use leyden_sim::{Bytes, BytesPerSec, ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Geometry;

/// The flash of a drive. Defaults are the parameters of Hexa (section V): 8 channels x 8 LUNs,
/// 8 KiB pages, 256 pages per block, 16 GiB in all, 60 us reads and 700 us programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Independent buses between the controller and the dies. 1 to 64.
    pub channels: u32,
    /// Dies (LUNs) on each channel. 1 to 64.
    pub dies_per_channel: u32,
    /// Planes of each die. 1 to 16.
    pub planes_per_die: u32,
    /// Blocks of each plane.
    pub blocks_per_plane: u32,
    /// Pages of each block.
    pub pages_per_block: u32,
    /// Data bytes of each page, a power of two.
    pub page_size: Bytes,
    /// Program, read and erase the same page or block of all planes of a die as one: the effective
    /// page and block are `planes_per_die` times as large. Off: planes only add blocks.
    pub multi_plane: bool,
    /// Array time of a page read (tR).
    pub read: Span,
    /// Array time of a page program (tPROG), an average over the pages of a cell.
    pub program: Span,
    /// Array time of a block erase (tBERS).
    pub erase: Span,
    /// The bandwidth of a channel.
    pub channel_rate: BytesPerSec,
    /// Program/erase cycles after which a block is retired; 0 for never.
    pub endurance_cycles: u32,
    /// Faults, all off by default.
    pub faults: FaultConfig,
}

/// How often the flash fails. All zero by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultConfig {
    /// Share of page programs that fail. The page's data is programmed again elsewhere, and its
    /// block is retired once its other data has been moved.
    pub program_failures: Ratio,
    /// Share of block erases that fail. The block is retired.
    pub erase_failures: Ratio,
    /// Share of blocks that are bad from the factory.
    pub factory_bad_blocks: Ratio,
    /// Single operations that fail, beside the shares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub occasions: Vec<Occasion>,
}

/// An operation that fails: the so-manyth of its kind since the drive was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Occasion {
    /// The kind of operation.
    pub what: FaultTarget,
    /// Which of them; 1 is the first.
    pub nth: u64,
}

/// A kind of operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultTarget {
    /// The program of a page of the host's data, or of a copy of it.
    Data,
    /// The program of a mapping page.
    Mapping,
    /// The program of a page of the mapping table's journal.
    Journal,
    /// The erase of a block.
    Erase,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            channels: 8,
            dies_per_channel: 8,
            planes_per_die: 1,
            blocks_per_plane: 128,
            pages_per_block: 256,
            page_size: Bytes::new(8 << 10),
            multi_plane: false,
            read: Span::from_us(60),
            program: Span::from_us(700),
            // Hexa gives no erase time nor bus speed; these are common for its generation of MLC
            // (ONFI 4 at 800 MT/s; tBERS 3 to 5 ms).
            erase: Span::from_us(3_500),
            channel_rate: BytesPerSec::new(800_000_000),
            endurance_cycles: 0,
            faults: FaultConfig::default(),
        }
    }
}

impl Config {
    /// Checks every value and computes the geometry in units of `mapping_unit`.
    pub fn geometry(&self, mapping_unit: Bytes) -> Result<Geometry, ConfigError> {
        let bounded = |key, value: u32, max: u32| {
            if value == 0 || value > max {
                return Err(ConfigError::new(key, format!("{value} is not in 1..={max}")));
            }
            Ok(u64::from(value))
        };
        let channels = bounded("channels", self.channels, 64)?;
        let dies = channels * bounded("dies_per_channel", self.dies_per_channel, 64)?;
        let planes = bounded("planes_per_die", self.planes_per_die, 16)?;
        let blocks_per_plane = bounded("blocks_per_plane", self.blocks_per_plane, 1 << 20)?;
        let pages_per_block = bounded("pages_per_block", self.pages_per_block, 1 << 16)?;

        let page = self.page_size.get();
        if !page.is_power_of_two() || !(512..=1 << 20).contains(&page) {
            return Err(ConfigError::new(
                "page_size",
                format!("{} is not a power of two in 512 B..=1 MiB", self.page_size),
            ));
        }
        // Multi-plane operation folds the planes into one effective page and block.
        let (fold, blocks_per_die) = if self.multi_plane {
            (planes, blocks_per_plane)
        } else {
            (1, planes * blocks_per_plane)
        };
        let page_bytes = page * fold;
        let unit = mapping_unit.get();
        if unit == 0 || !page_bytes.is_multiple_of(unit) || page_bytes / unit > 256 {
            return Err(ConfigError::new(
                "page_size",
                format!(
                    "a page of {} does not hold a whole number (1 to 256) of mapping units of {mapping_unit}",
                    Bytes::new(page_bytes)
                ),
            ));
        }
        self.check_timing()?;

        let units_per_block = pages_per_block * (page_bytes / unit);
        let units = dies * blocks_per_die * units_per_block;
        // Unit addresses are 31 bits: the top bit of a 4-byte map entry tells buffer from flash.
        if units >= 1 << 31 {
            return Err(ConfigError::new(
                "blocks_per_plane",
                format!(
                    "{} of flash is {units} mapping units, and 4-byte map entries address fewer than {}: \
                     shrink the geometry or raise ftl.mapping_unit",
                    Bytes::new(units.saturating_mul(unit)),
                    1_u64 << 31
                ),
            ));
        }
        Ok(Geometry::new(
            channels as u32,
            dies as u32,
            blocks_per_die as u32,
            pages_per_block as u32,
            (page_bytes / unit) as u32,
            unit as u32,
        ))
    }

    fn check_timing(&self) -> Result<(), ConfigError> {
        for (key, span) in [("read", self.read), ("program", self.program), ("erase", self.erase)] {
            if span == Span::ZERO || span > Span::from_ms(60_000) {
                return Err(ConfigError::new(key, format!("{span} is not in 1 ns..=60 s")));
            }
        }
        if self.channel_rate.get() < 1_000 {
            return Err(ConfigError::new(
                "channel_rate",
                format!("{} is less than 1 kB/s", self.channel_rate),
            ));
        }
        let faults = [
            ("faults.program_failures", self.faults.program_failures),
            ("faults.erase_failures", self.faults.erase_failures),
            ("faults.factory_bad_blocks", self.faults.factory_bad_blocks),
        ];
        if self.faults.occasions.iter().any(|occasion| occasion.nth == 0) {
            let problem = "operations are counted from 1: there is no operation 0".to_owned();
            return Err(ConfigError::new("faults.occasions", problem));
        }
        for (key, share) in faults {
            if share > Ratio::from_percent(50) {
                return Err(ConfigError::new(key, format!("{share} is more than 50 %")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Bytes = Bytes::new(4096);

    #[test]
    fn the_default_is_hexas_drive() {
        let geometry = Config::default().geometry(UNIT).unwrap();
        assert_eq!(geometry.dies(), 64);
        assert_eq!(geometry.units() as u64 * 4096, 16 << 30);
    }

    #[test]
    fn multi_plane_folds_the_planes() {
        let config = Config { planes_per_die: 4, multi_plane: true, ..Config::default() };
        let folded = config.geometry(UNIT).unwrap();
        assert_eq!((folded.units_per_page(), folded.blocks_per_die()), (8, 128));
        let flat = Config { multi_plane: false, ..config }.geometry(UNIT).unwrap();
        assert_eq!((flat.units_per_page(), flat.blocks_per_die()), (2, 512));
    }

    #[test]
    fn impossible_values_name_their_key() {
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.geometry(UNIT).unwrap_err().key
        };
        assert_eq!(wrong(|c| c.channels = 0), "channels");
        assert_eq!(wrong(|c| c.dies_per_channel = 1000), "dies_per_channel");
        assert_eq!(wrong(|c| c.page_size = Bytes::new(5000)), "page_size");
        assert_eq!(wrong(|c| c.page_size = Bytes::new(2048)), "page_size");
        assert_eq!(wrong(|c| c.blocks_per_plane = 1 << 20), "blocks_per_plane");
        assert_eq!(wrong(|c| c.read = Span::ZERO), "read");
        assert_eq!(wrong(|c| c.channel_rate = BytesPerSec::new(0)), "channel_rate");
        assert_eq!(wrong(|c| c.faults.erase_failures = Ratio::ONE), "faults.erase_failures");
    }
}

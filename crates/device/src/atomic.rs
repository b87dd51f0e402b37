//! Atomic writes: which commands a read finds whole, and which a power cut leaves whole (NVM Command Set 1.0a, 2.1.4).
//!
//! **What lives here**: the parameters, and which commands they are about. **What doesn't**: how a drive keeps to it (the
//! conventional namespace).

use leyden_buffer::{PoolKind, PoolSizes, Region};
use leyden_nand::Geometry;
use leyden_sim::{Bytes, ConfigError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lba::SECTOR_BYTES;

/// The largest logical block: of a larger mapping unit a host may write a part.
const BLOCK_MOST: u64 = 4_096;
/// NVMe counts what is atomic in 16 bits.
const BLOCKS_MOST: u64 = 1 << 16;

/// Atomic writes of a conventional drive, in the terms of NVMe. Without this table one mapping unit is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AtomicConfig {
    /// NAWUPF: a power cut leaves a write up to this size whole or lost. At most a flash page, unless `buffer.region` is
    /// `full`.
    pub nawupf: Bytes,
    /// NAWUN: a read sees all or nothing of a write up to this size. Default: `nawupf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nawun: Option<Bytes>,
    /// NABSPF: a power cut may tear a write across a multiple of this size, counted from `nabo`. Default: no boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nabspf: Option<Bytes>,
    /// NABSN: a read may see part of a write across a multiple of this size. Default: no boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nabsn: Option<Bytes>,
    /// NABO: the first boundary. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nabo: Option<Bytes>,
}

impl Default for AtomicConfig {
    fn default() -> Self {
        Self { nawupf: Bytes::new(16 << 10), nawun: None, nabspf: None, nabsn: None, nabo: None }
    }
}

/// Up to which size commands are atomic, and across which lines they are not. In logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicLimit {
    /// The most blocks.
    pub blocks: u64,
    /// From a boundary to the next; 0 if there are none.
    pub boundary: u64,
}

/// The promises of a drive on its writes. In logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomicity {
    /// Sectors of a logical block.
    pub block_sectors: u64,
    /// Sizes that reads see whole: NAWUN and NABSN.
    pub normal: AtomicLimit,
    /// Sizes that power cuts leave whole: NAWUPF and NABSPF.
    pub power_fail: AtomicLimit,
    /// The first boundary: NABO.
    pub offset: u64,
}

impl Atomicity {
    /// True if a read sees all or nothing of a write of `sectors` from `lba` on.
    pub(crate) fn is_normal(&self, lba: u64, sectors: u64) -> bool {
        self.covers(&self.normal, lba, sectors)
    }

    /// True if a power cut leaves all or nothing of it.
    pub(crate) fn survives(&self, lba: u64, sectors: u64) -> bool {
        self.covers(&self.power_fail, lba, sectors)
    }

    /// A write that begins or ends within a logical block is no command of NVMe's.
    fn covers(&self, limit: &AtomicLimit, lba: u64, sectors: u64) -> bool {
        let size = self.block_sectors;
        if !lba.is_multiple_of(size) || !sectors.is_multiple_of(size) {
            return false;
        }
        let (first, last) = (lba / size, (lba + sectors - 1) / size);
        last - first < limit.blocks && !self.crosses(limit.boundary, first, last)
    }

    const fn crosses(&self, boundary: u64, first: u64, last: u64) -> bool {
        // Shifted by a whole boundary: the offset is no more than that.
        boundary > 0
            && (first + boundary - self.offset) / boundary
                != (last + boundary - self.offset) / boundary
    }
}

impl AtomicConfig {
    /// Checks every value.
    pub(crate) fn resolve(
        &self,
        geometry: &Geometry,
        region: Region,
        coalesces: bool,
        pools: &PoolSizes,
    ) -> Result<Atomicity, ConfigError> {
        let block = u64::from(geometry.unit_bytes()).min(BLOCK_MOST);
        let blocks = |key: &str, size: Bytes| blocks_of(key, size, block);
        let power_fail = blocks("nawupf", self.nawupf)?;
        let normal = self.nawun.map_or(Ok(power_fail), |size| blocks("nawun", size))?;
        if normal < power_fail {
            let problem =
                format!("{} is less than nawupf, {}", size_of(normal, block), self.nawupf);
            return Err(ConfigError::new("nawun", problem));
        }
        let boundary = |key: &str, size: Option<Bytes>, least: u64| match size {
            None => Ok(0),
            Some(size) => {
                let boundary = blocks(key, size)?;
                let size_key = if key == "nabsn" { "nawun" } else { "nawupf" };
                let problem = format!("{size} is less than {size_key}, {}", size_of(least, block));
                (boundary >= least)
                    .then_some(boundary)
                    .ok_or_else(|| ConfigError::new(key, problem))
            }
        };
        let of_normal = boundary("nabsn", self.nabsn, normal)?;
        let of_power_fail = boundary("nabspf", self.nabspf, power_fail)?;
        let offset = self.offset(block, of_normal, of_power_fail)?;
        let atomicity = Atomicity {
            block_sectors: block / SECTOR_BYTES,
            normal: AtomicLimit { blocks: normal, boundary: of_normal },
            power_fail: AtomicLimit { blocks: power_fail, boundary: of_power_fail },
            offset,
        };
        atomicity.check_means(geometry, region, coalesces, pools)?;
        Ok(atomicity)
    }

    fn offset(&self, block: u64, normal: u64, power_fail: u64) -> Result<u64, ConfigError> {
        let offset = match self.nabo {
            None => return Ok(0),
            Some(size) if size.get() == 0 => return Ok(0),
            Some(size) => blocks_of("nabo", size, block)?,
        };
        let given = [normal, power_fail].into_iter().filter(|&boundary| boundary > 0).min();
        let problem = match given {
            Some(least) if offset <= least => return Ok(offset),
            Some(least) => format!(
                "{} is beyond the first boundary, {}: give the rest that it leaves",
                size_of(offset, block),
                size_of(least, block)
            ),
            None => {
                "it moves boundaries, and there are none: give nabspf, or leave it out".to_owned()
            }
        };
        Err(ConfigError::new("nabo", problem))
    }
}

impl Atomicity {
    /// Refuses what the drive has no means to keep.
    fn check_means(
        &self,
        geometry: &Geometry,
        region: Region,
        coalesces: bool,
        pools: &PoolSizes,
    ) -> Result<(), ConfigError> {
        let block = self.block_sectors * SECTOR_BYTES;
        let blocks_per_unit = u64::from(geometry.unit_bytes()) / block;
        // A write that begins within a unit touches one more.
        let units =
            |limit: &AtomicLimit| (limit.blocks + 2 * blocks_per_unit - 2) / blocks_per_unit;
        let page_units = u64::from(geometry.units_per_page());
        if region != Region::Full {
            if units(&self.power_fail) > page_units {
                let most = (page_units * blocks_per_unit + 2).saturating_sub(2 * blocks_per_unit);
                let problem = format!(
                    "{} may take more than a flash page, the most that a drive programs in one step: set it to \
                     \"{}\" at most, or buffer.region to \"full\"",
                    size_of(self.power_fail.blocks, block),
                    size_of(most.max(1), block)
                );
                return Err(ConfigError::new("nawupf", problem));
            }
            if !coalesces {
                let problem = "versions that wait beside each other cannot be kept together: set buffer.coalesce to true, \
                               or buffer.region to \"full\"";
                return Err(ConfigError::new("nawupf", problem));
            }
        }
        let slots = |kind: PoolKind| u64::from(pools[kind.index()].slots);
        let least =
            PoolKind::ALL.map(slots).into_iter().filter(|&slots| slots > 0).min().unwrap_or(0);
        if units(&self.normal) > least {
            let problem = format!(
                "{} is more than the buffer takes in one step, {}: set it to less, or buffer.size to more",
                size_of(self.normal.blocks, block),
                Bytes::new(least * u64::from(geometry.unit_bytes())),
            );
            return Err(ConfigError::new("nawun", problem));
        }
        Ok(())
    }
}

fn size_of(blocks: u64, block: u64) -> Bytes {
    Bytes::new(blocks * block)
}

fn blocks_of(key: &str, size: Bytes, block: u64) -> Result<u64, ConfigError> {
    let blocks = size.get() / block;
    if size.get().is_multiple_of(block) && (1..=BLOCKS_MOST).contains(&blocks) {
        return Ok(blocks);
    }
    let problem = format!(
        "{size} is not a multiple of the logical block, {}, up to {}",
        Bytes::new(block),
        size_of(BLOCKS_MOST, block)
    );
    Err(ConfigError::new(key, problem))
}

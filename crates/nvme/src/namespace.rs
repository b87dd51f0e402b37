//! Namespaces: their blocks, zones and names.

use leyden_device::{Atomicity, SECTOR_BYTES};

use crate::status::Status;

/// The most data of a command: MDTS, in pages of 4 KiB, as a power of two.
pub(crate) const MDTS: u8 = 8;
/// The same in bytes.
pub const TRANSFER_MOST: usize = 4_096 << MDTS;
/// Source ranges of a copy (MSRC + 1): an admin queue's data is as long as their list.
pub(crate) const COPY_RANGES_MOST: usize = 128;
/// The largest block that Linux takes.
const BLOCK_MOST: u32 = 4_096;

/// A namespace of a subsystem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Namespace {
    /// Bytes of a logical block, a power of two.
    pub block_bytes: u32,
    /// Logical blocks that can be addressed (NSZE).
    pub blocks: u64,
    /// Bytes of the drive's mapping unit: smaller writes read it first.
    pub unit_bytes: u32,
    /// Acknowledged writes may be lost when the power fails.
    pub has_cache: bool,
    /// A name of 16 bytes that no other namespace has (NGUID).
    pub guid: [u8; 16],
    /// The writes that are atomic, if not only those of a block. Its blocks are the namespace's.
    pub atomic: Option<Atomicity>,
    /// Of a zoned namespace.
    pub zones: Option<Zones>,
}

/// The zones of a zoned namespace. In blocks where nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zones {
    /// How many.
    pub count: u32,
    /// From a zone to the next (ZSZE).
    pub size: u64,
    /// Writable blocks of a zone (ZCAP).
    pub capacity: u64,
    /// Zones that may be open.
    pub open_most: u32,
    /// Zones that may be active.
    pub active_most: u32,
    /// The most data of an append, in bytes.
    pub append_bytes: u64,
    /// Size of a Zone Random Write Area; 0 if there are none.
    pub area_size: u32,
    /// The least that a flush of it commits.
    pub area_granularity: u32,
    /// How many there are.
    pub areas: u32,
    /// Reads may go on from a zone into the next (RAZB).
    pub reads_across: bool,
}

/// Why a drive cannot be a namespace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fit {
    /// A zoned drive's block is its mapping unit.
    #[error(
        "its blocks are {0} bytes, and hosts take 512 to 4,096\n  help: leyden image create --set \"device.ftl.mapping_unit=4 KiB\""
    )]
    Block(u32),
    /// Zones that are no power of two.
    #[error(
        "its zones are {0} blocks apart, and Linux takes powers of two only\n  help: leyden image create --set \"device.zoned.zone_size=16 MiB\""
    )]
    ZoneSize(u64),
}

impl Namespace {
    /// The namespace of this number; the first one has number 1.
    ///
    /// # Errors
    /// If there is none.
    pub fn numbered(all: &[Self], number: u32) -> Result<&Self, Status> {
        let index = number.checked_sub(1).ok_or(Status::INVALID_NAMESPACE)?;
        all.get(index as usize).ok_or(Status::INVALID_NAMESPACE)
    }

    pub(crate) const fn block_sectors(&self) -> u64 {
        self.block_bytes as u64 / SECTOR_BYTES
    }

    /// The command set identifier (CSI).
    pub(crate) const fn command_set(&self) -> u8 {
        if self.zones.is_some() { 2 } else { 0 }
    }

    /// Blocks of a copy, and of each of its source ranges (MCL, MSSRL): they pass through memory as a read does.
    pub(crate) const fn copy_blocks(&self) -> u16 {
        (TRANSFER_MOST / self.block_bytes as usize) as u16
    }

    /// Blocks that data may be in (NCAP).
    pub(crate) fn capacity(&self) -> u64 {
        self.zones.map_or(self.blocks, |zones| u64::from(zones.count) * zones.capacity)
    }

    /// The block of a conventional drive with this mapping unit.
    pub const fn block_of(unit_bytes: u32) -> u32 {
        if unit_bytes > BLOCK_MOST { BLOCK_MOST } else { unit_bytes }
    }

    /// Whether hosts can use it.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Fit> {
        let block = self.block_bytes;
        if !block.is_power_of_two() || !(512..=BLOCK_MOST).contains(&block) {
            return Err(Fit::Block(block));
        }
        match self.zones {
            Some(zones) if !zones.size.is_power_of_two() => Err(Fit::ZoneSize(zones.size)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{plain, zoned};

    #[test]
    fn drives_that_no_host_takes_are_refused_with_what_to_do() {
        assert_eq!(plain(4_096, 8).check(), Ok(()));
        assert_eq!(zoned().check(), Ok(()));
        let odd = Zones { size: 1_000, ..zoned().zones.unwrap() };
        let fit = Namespace { zones: Some(odd), ..zoned() }.check().unwrap_err();
        assert!(fit.to_string().contains("device.zoned.zone_size=16 MiB"));
        let large = Namespace { block_bytes: 16_384, ..zoned() }.check().unwrap_err();
        assert!(large.to_string().contains("device.ftl.mapping_unit"));
        assert_eq!(Namespace::block_of(16_384), 4_096);
        assert_eq!(Namespace::block_of(512), 512);
    }
}

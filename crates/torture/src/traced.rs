//! The payloads of a run, and what a read proves about them.
//!
//! **What lives here**: the kinds of content that a drive is tortured with ([`TracedPayload`]). Stamps of units are
//! cheap; stamps of sectors also show a unit put together wrongly, and sectors that lie elsewhere.

use leyden_device::{Payload, SectorStamps, Stamp};
use serde::{Deserialize, Serialize};

/// The grain of a run's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// Mapping units: the newest write that touched each.
    #[default]
    Unit,
    /// Sectors: the write that produced each, and its place.
    Sector,
}

/// A sector holds what was written elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misplaced {
    /// The sector.
    pub lba: u64,
    /// The command that wrote what it holds.
    pub stamp: u64,
    /// The lowest bits of where that was written.
    pub place: u64,
}

/// Content that tells which command wrote it.
pub trait TracedPayload: Payload {
    /// The grain of its content.
    const GRAIN: Grain;

    /// The data that command `id` writes to `sectors` from `lba` on.
    fn data(id: u64, lba: u64, sectors: u32) -> Self::WriteData;

    /// The stamps of what was read from `lba` on, one for each grain; zeroes are 0.
    ///
    /// # Errors
    /// If something lies where it was not written.
    fn stamps(read: &Self::ReadData, lba: u64, into: &mut Vec<u64>) -> Result<(), Misplaced>;
}

impl TracedPayload for Stamp {
    const GRAIN: Grain = Grain::Unit;

    fn data(id: u64, _: u64, _: u32) -> u64 {
        id
    }

    fn stamps(read: &Vec<Self>, _: u64, into: &mut Vec<u64>) -> Result<(), Misplaced> {
        into.extend(read.iter().map(|stamp| stamp.0));
        Ok(())
    }
}

/// The bits of a sector's stamp that tell its place.
const PLACE_BITS: u32 = 24;
const PLACE: u64 = (1 << PLACE_BITS) - 1;

impl TracedPayload for SectorStamps {
    const GRAIN: Grain = Grain::Sector;

    fn data(id: u64, lba: u64, sectors: u32) -> Self {
        let stamp = |lba| id << PLACE_BITS | (lba & PLACE);
        (lba..lba + u64::from(sectors)).map(stamp).collect::<Vec<u64>>().into()
    }

    fn stamps(read: &Vec<u64>, lba: u64, into: &mut Vec<u64>) -> Result<(), Misplaced> {
        for (lba, &sector) in (lba..).zip(read) {
            let (stamp, place) = (sector >> PLACE_BITS, sector & PLACE);
            if sector != 0 && place != lba & PLACE {
                return Err(Misplaced { lba, stamp, place });
            }
            into.push(stamp);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_tells_its_command_and_its_place() {
        let SectorStamps::Each(mut sectors) = SectorStamps::data(7, 100, 3) else { panic!() };
        let mut stamps = Vec::new();
        SectorStamps::stamps(&sectors.to_vec(), 100, &mut stamps).unwrap();
        assert_eq!(stamps, [7, 7, 7]);
        std::sync::Arc::make_mut(&mut sectors).swap(0, 2);
        let misplaced = SectorStamps::stamps(&sectors.to_vec(), 100, &mut stamps).unwrap_err();
        assert_eq!(misplaced, Misplaced { lba: 100, stamp: 7, place: 102 });
    }
}

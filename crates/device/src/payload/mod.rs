//! Payloads, the contents that the drive stores for each mapping unit: nothing, a stamp, a stamp
//! for each sector, or (served devices) real bytes.
//!
//! The payload is a type parameter, so that a simulation that does not look at content pays
//! nothing for it.
//!
//! **Invariants**: content is a value. Copying flash pages, dumping a buffer and putting it back clone
//! it, so a clone must be cheap: what is large is shared (`Arc`).

mod sector_stamps;

use std::fmt::Debug;

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

use crate::Part;
pub use sector_stamps::SectorStamps;

/// The content of a mapping unit. Its default is a unit that was never written: zeroes.
pub trait Payload: Content {
    /// Tells the kinds apart in a snapshot.
    const KIND: u8;
    /// True if there is content at all; false lets code skip moving it.
    const STORED: bool;
    /// The data of a write command for all its sectors. A clone is cheap, as the content's is.
    type WriteData: Clone + Default + Debug;
    /// The data of a read completion: the content of each unit, in address order.
    type ReadData: Default + Debug + Clone;

    /// The content of a unit that a write with `data` covers whole.
    fn written(data: &Self::WriteData, part: Part) -> Self;
    /// The content of a unit that held `old` after a write with `data` to a part of it.
    fn merged(old: &Self, data: &Self::WriteData, part: Part) -> Self;
    /// The content of a unit that held `old`, of which a command to write zeroes covers a part; `data`
    /// is the command's, which may tell who wrote them.
    fn zeroed(old: &Self, data: &Self::WriteData, part: Part) -> Self;
    /// Puts what a read wants of a unit in its place.
    fn gather(data: &mut Self::ReadData, part: Part, unit: &Self);
    /// A unit out of what was read; the read has covered the whole unit.
    fn unit(data: &Self::ReadData, part: Part) -> Self;
    /// The data of a write that gives neighbouring units of `unit_sectors` this content. They were
    /// last changed by the same write.
    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, unit_sectors: u32) -> Self::WriteData;
}

/// No content: the fastest simulations.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoData;

impl Content for NoData {}

impl Payload for NoData {
    const KIND: u8 = 0;
    const STORED: bool = false;
    type WriteData = ();
    type ReadData = ();
    #[inline]
    fn written((): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn merged(_: &Self, (): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn zeroed(_: &Self, (): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn gather((): &mut (), _: Part, _: &Self) {}
    #[inline]
    fn unit((): &(), _: Part) -> Self {
        Self
    }
    #[inline]
    fn data_of<'a>(_: impl Iterator<Item = &'a Self>, _: u32) {}
}

/// The newest write that touched the unit, whichever of its sectors; 0 is "never written" and reads as
/// zeroes. Lets an oracle check content at any size for 8 bytes a unit. What became of single sectors
/// only [`SectorStamps`] tells.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(pub u64);

impl Content for Stamp {}

impl Payload for Stamp {
    const KIND: u8 = 1;
    const STORED: bool = true;
    type WriteData = u64;
    /// One for each unit touched.
    type ReadData = Vec<Stamp>;
    #[inline]
    fn written(data: &u64, _: Part) -> Self {
        Self(*data)
    }
    #[inline]
    fn merged(_: &Self, data: &u64, _: Part) -> Self {
        Self(*data)
    }
    #[inline]
    fn zeroed(_: &Self, data: &u64, _: Part) -> Self {
        Self(*data)
    }
    #[inline]
    fn gather(data: &mut Vec<Self>, part: Part, unit: &Self) {
        data.resize(part.units as usize, Self::default());
        data[part.index as usize] = *unit;
    }
    #[inline]
    fn unit(data: &Vec<Self>, part: Part) -> Self {
        data[part.index as usize]
    }
    #[inline]
    fn data_of<'a>(mut units: impl Iterator<Item = &'a Self>, _: u32) -> u64 {
        units.next().map_or(0, |stamp| stamp.0)
    }
}

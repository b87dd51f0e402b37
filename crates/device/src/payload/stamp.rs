//! A stamp for each unit.

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

use super::compiled::compiled_here;
use crate::{Part, Payload};

/// The newest write that touched the unit, whichever of its sectors; 0 is "never written" and reads as
/// zeroes. Lets an oracle check content at any size for 8 bytes a unit. What became of single sectors
/// only [`SectorStamps`](crate::SectorStamps) tells.
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
    compiled_here!(Stamp);
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

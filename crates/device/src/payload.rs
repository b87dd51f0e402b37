//! What the drive stores for each mapping unit: nothing, a stamp, or (served devices) real bytes.
//!
//! The payload is a type parameter, so that a simulation that does not look at content pays
//! nothing for it.

use std::fmt::Debug;

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

/// The content of a mapping unit.
pub trait Payload: Content {
    /// Tells the kinds apart in a snapshot.
    const KIND: u8;
    /// True if there is content at all; false lets code skip moving it.
    const STORED: bool;
    /// What a write command carries for all its units.
    type WriteData: Copy + Default + Debug;
    /// What a read completion carries: one entry per unit.
    type ReadData: Default + Debug + Clone;

    /// The content that a write with `data` gives the unit `index` units after its first one.
    fn written(data: Self::WriteData, index: u32) -> Self;
    /// What a write with `data` would carry if it began `units` units later:
    /// `written(rest(data, n), i) == written(data, n + i)`.
    fn rest(data: Self::WriteData, units: u32) -> Self::WriteData;
    /// Puts unit `index` of a read of `count` units in its place.
    fn gather(data: &mut Self::ReadData, index: u32, count: u32, unit: Self);
    /// Unit `index` of what was read.
    fn unit(data: &Self::ReadData, index: u32) -> Self;
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
    fn written((): (), _: u32) -> Self {
        Self
    }
    #[inline]
    fn rest((): (), _: u32) {}
    #[inline]
    fn gather((): &mut (), _: u32, _: u32, _: Self) {}
    #[inline]
    fn unit((): &(), _: u32) -> Self {
        Self
    }
}

/// Which write produced the unit; 0 is "never written" and reads as zeroes. Lets an oracle check
/// content at any size for 8 bytes a unit.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(pub u64);

impl Content for Stamp {}

impl Payload for Stamp {
    const KIND: u8 = 1;
    const STORED: bool = true;
    type WriteData = u64;
    type ReadData = Vec<Stamp>;
    #[inline]
    fn written(data: u64, _: u32) -> Self {
        Self(data)
    }
    #[inline]
    fn rest(data: u64, _: u32) -> u64 {
        data
    }
    #[inline]
    fn gather(data: &mut Vec<Self>, index: u32, count: u32, unit: Self) {
        data.resize(count as usize, Self::default());
        data[index as usize] = unit;
    }
    #[inline]
    fn unit(data: &Vec<Self>, index: u32) -> Self {
        data[index as usize]
    }
}

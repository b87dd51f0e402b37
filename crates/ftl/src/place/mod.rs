//! Placement: which stream, and so which open block, a unit is written to.
//!
//! A policy has streams of its own (the regions of [`dac`]); beside them stand those that are set
//! aside for data of a kind ([`Streams`]).

pub mod dac;
pub mod single;
mod streams;

pub use streams::Streams;

leyden_sim::policies! {
    /// Which data shares blocks.
    pub enum PlacementConfig {
        /// One stream: host writes and copies of garbage collection share blocks.
        Single(single::Single) = "single",
        /// Dynamic data clustering (Chiang, Lee, Chang 1999): regions from cold to hot; data moves
        /// one region up when the host overwrites it and one down when garbage collection copies it.
        Dac(dac::Dac) = "dac",
    }
}

impl Default for PlacementConfig {
    fn default() -> Self {
        Self::Single(single::Single {})
    }
}

/// A class of data that has open blocks of its own.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct StreamId(pub u8);

impl StreamId {
    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PlacementConfig {
    /// How many streams the policy uses: at least 1.
    pub fn streams(&self) -> u8 {
        match self {
            Self::Single(_) => 1,
            Self::Dac(dac) => dac.regions,
        }
    }

    /// The stream for a unit the host wrote, whose older version lies in stream `old`, if there is
    /// one. Called per unit, hence the enum and not a trait object.
    #[inline]
    pub fn for_host(&self, old: Option<StreamId>) -> StreamId {
        match self {
            Self::Single(_) => StreamId(0),
            Self::Dac(dac) => dac.for_host(old),
        }
    }

    /// The stream for a unit that garbage collection copies out of a block of stream `from`.
    #[inline]
    pub fn for_gc(&self, from: StreamId) -> StreamId {
        match self {
            Self::Single(_) => StreamId(0),
            Self::Dac(dac) => dac.for_gc(from),
        }
    }
}

//! A stamp for each sector.

use std::sync::Arc;

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

use super::compiled::compiled_here;
use crate::{Part, Payload};

/// Which write produced each sector of a unit, or what each sector of a write is stamped with; 0 is
/// zeroes. As large as a stamp and a tag while all sectors are of one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub enum SectorStamps {
    /// The same for all.
    Same(u64),
    /// One for each, not all the same.
    Each(Arc<[u64]>),
}

impl SectorStamps {
    /// The stamp of sector `at`.
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Self::Same(stamp) => *stamp,
            Self::Each(stamps) => stamps[at],
        }
    }

    /// `old`, but `new` in the sectors of `part`.
    fn replaced(old: &Self, part: Part, new: impl Fn(usize) -> u64) -> Self {
        let mut stamps: Vec<_> = (0..part.unit_sectors as usize).map(|at| old.get(at)).collect();
        for (at, from) in part.in_unit().zip(part.in_range()) {
            stamps[at] = new(from);
        }
        stamps.into()
    }
}

impl Default for SectorStamps {
    fn default() -> Self {
        Self::Same(0)
    }
}

impl From<u64> for SectorStamps {
    fn from(stamp: u64) -> Self {
        Self::Same(stamp)
    }
}

impl From<Vec<u64>> for SectorStamps {
    fn from(stamps: Vec<u64>) -> Self {
        let first = stamps.first().copied().unwrap_or(0);
        if stamps.iter().all(|&stamp| stamp == first) {
            Self::Same(first)
        } else {
            Self::Each(stamps.into())
        }
    }
}

/// As many stamps as it takes: one if all are the same.
impl From<SectorStamps> for Vec<u64> {
    fn from(stamps: SectorStamps) -> Self {
        match stamps {
            SectorStamps::Same(stamp) => vec![stamp],
            SectorStamps::Each(stamps) => stamps.to_vec(),
        }
    }
}

impl Content for SectorStamps {}

impl Payload for SectorStamps {
    const KIND: u8 = 2;
    const STORED: bool = true;
    /// One for each sector of the write.
    type WriteData = Self;
    /// One for each sector of the read.
    type ReadData = Vec<u64>;
    compiled_here!(SectorStamps);

    fn written(data: &Self, part: Part) -> Self {
        match data {
            Self::Same(stamp) => Self::Same(*stamp),
            Self::Each(stamps) => stamps[part.in_range()].to_vec().into(),
        }
    }

    fn merged(old: &Self, data: &Self, part: Part) -> Self {
        Self::replaced(old, part, |from| data.get(from))
    }

    fn zeroed(old: &Self, _: &Self, part: Part) -> Self {
        Self::replaced(old, part, |_| 0)
    }

    fn gather(data: &mut Vec<u64>, part: Part, unit: &Self) {
        data.resize(part.total as usize, 0);
        for (to, at) in part.in_range().zip(part.in_unit()) {
            data[to] = unit.get(at);
        }
    }

    fn unit(data: &Vec<u64>, part: Part) -> Self {
        data[part.in_range()].to_vec().into()
    }

    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, unit_sectors: u32) -> Self {
        let sectors = 0..unit_sectors as usize;
        let stamps: Vec<_> =
            units.flat_map(|unit| sectors.clone().map(|at| unit.get(at))).collect();
        stamps.into()
    }
}

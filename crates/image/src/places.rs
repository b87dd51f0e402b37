//! The device's stored value for each mapping unit of an image: the place of its bytes.

use std::sync::Arc;

use leyden_device::{Part, Payload};
use leyden_nand::Content;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where the sectors of a mapping unit lie in an image. A place is the number of a sector in the image's
/// content, counted from one; 0 are zeroes, which lie nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// One after the other from this place on, or, if that is 0, all zeroes.
    Run(u64),
    /// One for each sector.
    Each(Arc<[u64]>),
}

impl Places {
    /// Where sector `at` of the unit lies.
    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Self::Run(0) => 0,
            Self::Run(first) => first + at as u64,
            Self::Each(places) => places[at],
        }
    }

    /// Calls `each` with a place in every run of neighbours: enough to find the slots.
    pub(crate) fn each_place(&self, mut each: impl FnMut(u64)) {
        match self {
            Self::Run(0) => {}
            Self::Run(first) => each(*first),
            Self::Each(places) => places.iter().copied().filter(|&place| place > 0).for_each(each),
        }
    }

    fn replaced(old: &Self, part: Part, new: impl Fn(usize) -> u64) -> Self {
        let mut places: Vec<_> = (0..part.unit_sectors as usize).map(|at| old.get(at)).collect();
        for (at, from) in part.in_unit().zip(part.in_range()) {
            places[at] = new(from);
        }
        Self::of(&places)
    }

    fn of(places: &[u64]) -> Self {
        let first = places.first().copied().unwrap_or(0);
        let run = Self::Run(first);
        let is_run = places.iter().enumerate().all(|(at, &place)| place == run.get(at));
        if is_run { run } else { Self::Each(places.into()) }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::Run(0)
    }
}

/// A run is saved as its first place: a unit of one sector is one, too.
impl Serialize for Places {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Run(first) => to.collect_seq([first]),
            Self::Each(places) => to.collect_seq(places.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(PlacesVisitor)
    }
}

/// There is one for each unit of a drive, and nearly all are runs: these take no list on the way.
struct PlacesVisitor;

impl<'de> Visitor<'de> for PlacesVisitor {
    type Value = Places;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("places")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut places: A) -> Result<Places, A::Error> {
        let Some(first) = places.next_element()? else { return Ok(Places::default()) };
        let Some(second) = places.next_element()? else { return Ok(Places::Run(first)) };
        let mut all = vec![first, second];
        while let Some(place) = places.next_element()? {
            all.push(place);
        }
        Ok(Places::Each(all.into()))
    }
}

impl Content for Places {}

impl Payload for Places {
    const KIND: u8 = 3;
    const STORED: bool = true;
    /// One for each sector of the write; of zeroes none.
    type WriteData = Arc<[u64]>;
    /// One for each sector of the read.
    type ReadData = Vec<u64>;

    fn written(data: &Arc<[u64]>, part: Part) -> Self {
        Self::of(&data[part.in_range()])
    }

    fn merged(old: &Self, data: &Arc<[u64]>, part: Part) -> Self {
        Self::replaced(old, part, |from| data[from])
    }

    fn zeroed(old: &Self, _: &Arc<[u64]>, part: Part) -> Self {
        Self::replaced(old, part, |_| 0)
    }

    fn gather(data: &mut Vec<u64>, part: Part, unit: &Self) {
        data.resize(part.total as usize, 0);
        for (to, at) in part.in_range().zip(part.in_unit()) {
            data[to] = unit.get(at);
        }
    }

    fn unit(data: &Vec<u64>, part: Part) -> Self {
        Self::of(&data[part.in_range()])
    }

    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, unit_sectors: u32) -> Arc<[u64]> {
        units.flat_map(|unit| (0..unit_sectors as usize).map(|at| unit.get(at))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_device::Units;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a list of what each sector holds.
        #[test]
        fn writes_to_parts_of_a_unit_leave_the_rest(
            writes in prop::collection::vec((0_u64..24, 1_u64..24, 1_u64..900, any::<bool>()), 1..20),
        ) {
            let mut units = vec![Places::default(); 6];
            let mut twin = vec![0_u64; 48];
            for (lba, sectors, first, zeroes) in writes {
                let data: Arc<[u64]> = (first..first + sectors).collect();
                let range = Units::new(lba, sectors, 8);
                for index in 0..range.count() {
                    let (part, at) = (range.part(index), (range.first().0 + index) as usize);
                    units[at] = match zeroes {
                        true => Places::zeroed(&units[at], &data, part),
                        false if part.is_whole() => Places::written(&data, part),
                        false => Places::merged(&units[at], &data, part),
                    };
                }
                for at in 0..sectors {
                    twin[(lba + at) as usize] = if zeroes { 0 } else { first + at };
                }
                let range = Units::new(1, 46, 8);
                let mut read = Vec::new();
                for index in 0..range.count() {
                    Places::gather(&mut read, range.part(index), &units[index as usize]);
                }
                prop_assert_eq!(&read[..], &twin[1..47]);
                for unit in &units {
                    let saved = serde_json::to_vec(unit).unwrap();
                    prop_assert_eq!(&serde_json::from_slice::<Places>(&saved).unwrap(), unit);
                }
            }
        }
    }
}

//! Finds the buffered version of a logical page.
//!
//! Open addressing with linear probing and deletion by shifting back: no tombstones, so that a
//! buffer which has turned over a million times is as fast as a new one. Nothing iterates it.

use leyden_nand::Lpn;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// An empty place.
const EMPTY: (u32, u32) = (u32::MAX, u32::MAX);

/// From LPN to slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SlotIndex {
    /// `(lpn, slot)`; a power of two of places, at most half of them taken.
    places: Vec<(u32, u32)>,
    shift: u32,
}

impl SlotIndex {
    pub(crate) fn new(slots: u32) -> Self {
        let places = (slots as usize * 2).next_power_of_two().max(4);
        Self { places: vec![EMPTY; places], shift: 32 - places.trailing_zeros() }
    }

    #[inline]
    pub(crate) fn get(&self, lpn: Lpn) -> Option<SlotId> {
        let at = self.find(lpn);
        (self.places[at] != EMPTY).then(|| SlotId(self.places[at].1))
    }

    /// Points `lpn` to `slot`, whatever it pointed to.
    #[inline]
    pub(crate) fn set(&mut self, lpn: Lpn, slot: SlotId) {
        let at = self.find(lpn);
        self.places[at] = (lpn.0, slot.0);
    }

    /// Forgets `lpn`, which is there.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        let mut hole = self.find(lpn);
        assert!(self.places[hole] != EMPTY, "{lpn:?} is not in the index");
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.places[at] == EMPTY {
                break;
            }
            // An entry may move back into the hole unless its home lies after the hole.
            let home = self.home(Lpn(self.places[at].0));
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = EMPTY;
    }

    pub(crate) fn fits(&self, slots: u32) -> bool {
        self.places.len() == Self::new(slots).places.len()
    }

    /// Where `lpn` is, or the empty place where it would be.
    #[inline]
    fn find(&self, lpn: Lpn) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home(lpn);
        while self.places[at].0 != lpn.0 && self.places[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// Fibonacci hashing: neighbouring pages spread over the table.
    #[inline]
    fn home(&self, lpn: Lpn) -> usize {
        (lpn.0.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against the slow twin: an ordered map. LPNs that collide are likely.
        #[test]
        fn behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..40), 0..400)) {
            let mut index = SlotIndex::new(16);
            let mut twin = BTreeMap::new();
            for (i, (insert, lpn)) in steps.into_iter().enumerate() {
                let lpn = lpn * 0x1000;
                if insert && (twin.len() < 16 || twin.contains_key(&lpn)) {
                    index.set(Lpn(lpn), SlotId(i as u32));
                    twin.insert(lpn, i as u32);
                } else if twin.remove(&lpn).is_some() {
                    index.remove(Lpn(lpn));
                }
                for lpn in (0..40).map(|lpn| lpn * 0x1000) {
                    prop_assert_eq!(index.get(Lpn(lpn)), twin.get(&lpn).map(|&slot| SlotId(slot)));
                }
            }
        }
    }
}

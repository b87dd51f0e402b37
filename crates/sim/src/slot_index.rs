//! From the number of a page to the slot that holds it.
//!
//! Open addressing with linear probing and deletion by shifting back: no tombstones, so that a
//! buffer which has turned over a million times is as fast as a new one. Nothing iterates it.

use serde::{Deserialize, Serialize};

use crate::prefetch;

/// An empty place. The key alone tells.
const EMPTY: (u32, u32) = (u32::MAX, u32::MAX);

/// A map from numbers to slots, of a size fixed when it is made.
///
/// ```
/// use leyden_sim::SlotIndex;
/// let mut index = SlotIndex::new(10);
/// index.set(7_000_000, 3);
/// assert_eq!((index.get(7_000_000), index.get(8)), (Some(3), None));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlotIndex {
    /// `(key, slot)`; a power of two of places, at most half of them taken.
    places: Vec<(u32, u32)>,
    shift: u32,
}

impl SlotIndex {
    /// An empty map with room for `slots` keys. Keys and slots are less than `u32::MAX`.
    pub fn new(slots: u32) -> Self {
        Self::with_places(slots, 2)
    }

    /// The same with `per_slot` places (8 bytes each) for every slot, at least two: the more there are, the
    /// fewer keys share a home, and the fewer branches are mispredicted that look for the one wanted.
    pub fn with_places(slots: u32, per_slot: u32) -> Self {
        let places = (slots as usize * per_slot.max(2) as usize).next_power_of_two().max(4);
        Self { places: vec![EMPTY; places], shift: 32 - places.trailing_zeros() }
    }

    /// Brings near what will be asked of `key`.
    #[inline]
    pub fn expect(&self, key: u32) {
        prefetch(&self.places, self.home(key));
    }

    /// The slot of `key`.
    #[inline]
    pub fn get(&self, key: u32) -> Option<u32> {
        let (taken, slot) = self.places[self.find(key)];
        (taken == key).then_some(slot)
    }

    /// Points `key` to `slot`, whatever it pointed to.
    #[inline]
    pub fn set(&mut self, key: u32, slot: u32) {
        self.entry(key).set(slot);
    }

    /// The place of `key`, to look at it and then to change it without looking for it again.
    #[inline]
    pub fn entry(&mut self, key: u32) -> SlotEntry<'_> {
        let at = self.find(key);
        SlotEntry { key, place: &mut self.places[at] }
    }

    /// Forgets `key`.
    ///
    /// # Panics
    /// If it is not there.
    #[inline]
    pub fn remove(&mut self, key: u32) {
        let mut hole = self.find(key);
        assert!(self.places[hole] != EMPTY, "{key} is not in the index");
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place.0 == EMPTY.0 {
                break;
            }
            // An entry may move back into the hole unless its home lies after the hole.
            let home = self.home(place.0);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = place;
                hole = at;
            }
        }
        self.places[hole] = EMPTY;
    }

    /// True if this is of the size that [`SlotIndex::with_places`] makes.
    pub fn fits(&self, slots: u32, per_slot: u32) -> bool {
        self.places.len() == Self::with_places(slots, per_slot).places.len()
    }

    /// Where `key` is, or the empty place where it would be.
    #[inline]
    fn find(&self, key: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.home(key);
        loop {
            let taken = self.places[at].0;
            if taken == key || taken == EMPTY.0 {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Fibonacci hashing: neighbouring pages spread over the table.
    #[inline]
    fn home(&self, key: u32) -> usize {
        (key.wrapping_mul(0x9e37_79b9) >> self.shift) as usize
    }
}

/// The place of a key, taken or not.
#[derive(Debug)]
pub struct SlotEntry<'a> {
    key: u32,
    place: &'a mut (u32, u32),
}

impl SlotEntry<'_> {
    /// The slot of the key.
    #[inline]
    pub fn slot(&self) -> Option<u32> {
        (self.place.0 == self.key).then_some(self.place.1)
    }

    /// Points the key to `slot`, whatever it pointed to.
    #[inline]
    pub fn set(self, slot: u32) {
        *self.place = (self.key, slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against the slow twin: an ordered map. Keys that collide are likely.
        #[test]
        fn behaves_like_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..40), 0..400)) {
            let mut index = SlotIndex::new(16);
            let mut twin = BTreeMap::new();
            for (i, (insert, key)) in steps.into_iter().enumerate() {
                let key = key * 0x1000;
                if insert && (twin.len() < 16 || twin.contains_key(&key)) {
                    let entry = index.entry(key);
                    prop_assert_eq!(entry.slot(), twin.get(&key).copied());
                    entry.set(i as u32);
                    twin.insert(key, i as u32);
                } else if twin.remove(&key).is_some() {
                    index.remove(key);
                }
                for key in (0..40).map(|key| key * 0x1000) {
                    prop_assert_eq!(index.get(key), twin.get(&key).copied());
                }
            }
        }
    }
}

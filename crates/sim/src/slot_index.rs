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
        Self::of(Self::places_for(slots))
    }

    /// The same keys in `times` as many places (8 bytes each), a power of two: fewer keys share a home, and fewer
    /// branches are mispredicted that look for the one wanted.
    #[must_use]
    pub fn spread(&self, times: usize) -> Self {
        self.in_places(self.places.len() * times)
    }

    /// Undoes [`Self::spread`].
    #[must_use]
    pub fn packed(&self, times: usize) -> Self {
        self.in_places(self.places.len() / times)
    }

    fn places_for(slots: u32) -> usize {
        (slots as usize * 2).next_power_of_two().max(4)
    }

    fn of(places: usize) -> Self {
        Self { places: vec![EMPTY; places], shift: 32 - places.trailing_zeros() }
    }

    /// The same keys in so many places. Where they lie depends on the keys only, not on when each came.
    fn in_places(&self, places: usize) -> Self {
        let mut keys: Vec<_> = self.places.iter().filter(|place| place.0 != EMPTY.0).collect();
        if !places.is_power_of_two() || keys.len() >= places {
            return self.clone(); // a damaged one: it fits nowhere
        }
        keys.sort_unstable();
        let mut index = Self::of(places);
        for &(key, slot) in keys {
            index.set(key, slot);
        }
        index
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
    #[inline(always)]
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

    /// True if this is of the size that [`Self::new`] makes, spread so many `times`.
    pub fn fits(&self, slots: u32, times: usize) -> bool {
        self.places.len() == Self::places_for(slots) * times
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
        fn behaves_like_a_map(
            steps in proptest::collection::vec((any::<bool>(), 0_u32..40), 0..400),
            times in prop_oneof![Just(1_usize), Just(4)],
        ) {
            let mut index = SlotIndex::new(16).spread(times);
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
            let packed = index.packed(times);
            prop_assert!(packed.fits(16, 1) && packed.spread(4).fits(16, 4));
            for key in (0..40).map(|key| key * 0x1000) {
                prop_assert_eq!(packed.get(key), twin.get(&key).copied());
                prop_assert_eq!(packed.spread(4).get(key), twin.get(&key).copied());
            }
        }
    }
}

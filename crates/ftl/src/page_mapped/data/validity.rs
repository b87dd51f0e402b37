//! Which units are valid: one bit each, outside the flash.

use leyden_nand::{BlockId, Geometry, Ppa};
use leyden_sim::prefetch;
use serde::{Deserialize, Serialize};

/// A bit per physical unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Validity {
    #[serde(with = "leyden_sim::sparse")]
    words: Vec<u64>,
}

impl Validity {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { words: vec![0; geometry.units().div_ceil(64) as usize] }
    }

    #[inline]
    pub(crate) fn get(&self, unit: Ppa) -> bool {
        self.words[unit.index() / 64] >> (unit.0 % 64) & 1 != 0
    }

    /// Brings the bit near.
    #[inline]
    pub(crate) fn expect(&self, unit: Ppa) {
        prefetch(&self.words, unit.index() / 64);
    }

    /// Sets a bit that is clear.
    #[inline]
    pub(crate) fn set(&mut self, unit: Ppa) {
        debug_assert!(!self.get(unit), "{unit:?} is valid already");
        self.words[unit.index() / 64] |= 1 << (unit.0 % 64);
    }

    /// Clears a bit that is set.
    #[inline]
    pub(crate) fn clear(&mut self, unit: Ppa) {
        debug_assert!(self.get(unit), "{unit:?} is not valid");
        self.words[unit.index() / 64] &= !(1 << (unit.0 % 64));
    }

    /// The first valid unit at or after `first` and before `end`.
    #[inline]
    pub(crate) fn first_in(&self, first: Ppa, end: Ppa) -> Option<Ppa> {
        let mut at = first.0;
        while at < end.0 {
            let word = self.words[at as usize / 64] >> (at % 64);
            if word != 0 {
                at += word.trailing_zeros();
                return (at < end.0).then_some(Ppa(at));
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Calls `each` with the valid units among the `count` ones from `first` on.
    #[inline]
    pub(crate) fn each_in(&self, first: Ppa, count: u32, mut each: impl FnMut(Ppa)) {
        for (first, word) in self.words_in(first, count) {
            let mut left = word;
            while left != 0 {
                each(Ppa(first.0 + left.trailing_zeros()));
                left &= left - 1;
            }
        }
    }

    /// The valid units among the `count` ones from `first` on.
    #[inline]
    pub(crate) fn valid_in(&self, first: Ppa, count: u32) -> impl Iterator<Item = Ppa> + '_ {
        self.words_in(first, count).flat_map(|(first, word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(Ppa(first.0 + bit))
            })
        })
    }

    /// How many of the `count` units from `first` on are valid.
    #[inline]
    pub(crate) fn count_in(&self, first: Ppa, count: u32) -> u32 {
        self.words_in(first, count).map(|(_, word)| word.count_ones()).sum()
    }

    /// How many units of `block` are valid.
    pub(crate) fn count(&self, geometry: &Geometry, block: BlockId) -> u32 {
        self.count_in(geometry.first_unit_of_block(block), geometry.units_per_block())
    }

    /// The bits of the `count` units from `first` on, by the words they are in: the first unit of
    /// the word that is wanted, and the bits from it on.
    #[inline]
    fn words_in(&self, first: Ppa, count: u32) -> impl Iterator<Item = (Ppa, u64)> + '_ {
        let (mut at, end) = (first.0, first.0 + count);
        std::iter::from_fn(move || {
            let first = (at < end).then_some(at)?;
            let word = self.words[first as usize / 64] >> (first % 64);
            at = end.min((first / 64 + 1) * 64);
            Some((Ppa(first), word & (u64::MAX >> (64 - (at - first)))))
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        self.words.len() == geometry.units().div_ceil(64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: unit by unit.
        #[test]
        fn finds_what_is_valid(words in proptest::collection::vec(any::<u64>(), 4), first in 0_u32..256, count in 0_u32..256) {
            let validity = Validity { words };
            let (first, count) = (Ppa(first), count.min(256 - first));
            let twin: Vec<_> = (first.0..first.0 + count).map(Ppa).filter(|&unit| validity.get(unit)).collect();
            prop_assert_eq!(validity.count_in(first, count) as usize, twin.len());
            prop_assert_eq!(validity.first_in(first, Ppa(first.0 + count)), twin.first().copied());
            let mut each = Vec::new();
            validity.each_in(first, count, |unit| each.push(unit));
            prop_assert_eq!(&each, &twin);
            prop_assert_eq!(validity.valid_in(first, count).collect::<Vec<_>>(), twin);
        }
    }
}

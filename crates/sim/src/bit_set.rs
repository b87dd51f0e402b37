//! A set of small numbers: a bit each.

use serde::{Deserialize, Serialize};

/// A set of numbers below a bound that is fixed when it is made.
///
/// ```
/// use leyden_sim::BitSet;
/// let mut set = BitSet::new(100);
/// assert!(set.insert(70) && !set.insert(70));
/// assert!(set.contains(70) && !set.contains(71));
/// assert_eq!((set.next(0), set.next(71)), (Some(70), None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitSet {
    words: Vec<u64>,
}

#[inline]
const fn place(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

impl BitSet {
    /// An empty set of numbers below `bound`, rounded up to a multiple of 64. The memory is only touched as
    /// it is used.
    pub fn new(bound: u32) -> Self {
        Self { words: vec![0; (bound as usize).div_ceil(64)] }
    }

    /// True if it was made for no numbers at all.
    #[inline]
    pub const fn is_unused(&self) -> bool {
        self.words.is_empty()
    }

    /// True if it was made for numbers below `bound`.
    pub const fn fits(&self, bound: u32) -> bool {
        self.words.len() == (bound as usize).div_ceil(64)
    }

    /// The bound that it was made for, rounded up.
    pub const fn bound(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Bytes of memory.
    pub const fn memory_bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }

    /// True if `number` is in it.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words[word] & bit != 0
    }

    /// Puts `number` in. True if it was not.
    #[inline]
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        is_new
    }

    /// Takes `number` out. True if it was in.
    #[inline]
    pub fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        let was_in = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was_in
    }

    /// Puts `number` in or takes it out.
    #[inline]
    pub fn set(&mut self, number: u32, is_in: bool) {
        if is_in {
            self.insert(number);
        } else {
            self.remove(number);
        }
    }

    /// How many are in it.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The least number in it that is not below `from`.
    #[inline]
    pub fn next(&self, from: u32) -> Option<u32> {
        let first = from as usize / 64;
        let masked = self.words.get(first)? & (u64::MAX << (from % 64));
        if masked != 0 {
            return Some(first as u32 * 64 + masked.trailing_zeros());
        }
        let word = self.words.iter().skip(first + 1).position(|&word| word != 0)? + first + 1;
        Some(word as u32 * 64 + self.words[word].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against the slow twin: a set of numbers.
        #[test]
        fn behaves_like_a_set(
            steps in proptest::collection::vec((0_u32..200, any::<bool>()), 0..200), from in 0_u32..250,
        ) {
            let (mut set, mut twin) = (BitSet::new(200), BTreeSet::new());
            for (number, is_in) in steps {
                let changed = if is_in { set.insert(number) } else { set.remove(number) };
                prop_assert_eq!(changed, if is_in { twin.insert(number) } else { twin.remove(&number) });
                prop_assert_eq!(set.contains(number), is_in);
            }
            prop_assert_eq!(set.count(), twin.len() as u64);
            prop_assert_eq!(set.next(from), twin.range(from..).next().copied());
            set.set(17, true);
            set.set(18, false);
            prop_assert!(set.contains(17) && !set.contains(18));
        }
    }
}

//! A set of page numbers that finds the next one from anywhere.
//!
//! One bit for each page of the drive, and above that a bit for each word that is not zero, and so on up
//! to a single word: each change and each look takes a few words.

/// Numbers below a bound.
#[derive(Clone, Debug)]
pub(crate) struct PageSet {
    /// From the pages up; the last has one word.
    levels: Vec<Vec<u64>>,
}

impl PageSet {
    /// An empty set of numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut bits = bound;
        loop {
            let words = bits.div_ceil(64).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            bits = words;
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.levels[0][number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// The first number that is not less than `from`.
    #[inline]
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        for depth in 0..self.levels.len() {
            let word = self.levels[depth].get(at / 64).copied().unwrap_or(0);
            let rest = word >> (at % 64);
            if rest != 0 {
                at += rest.trailing_zeros() as usize;
                for level in self.levels[..depth].iter().rev() {
                    at = at * 64 + level[at].trailing_zeros() as usize;
                }
                return Some(at as u32);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// Forgets every number.
    pub(crate) fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_an_ordered_set(
            bound in prop_oneof![1_u32..70, 4_000_u32..4_200, Just(300_000)],
            steps in prop::collection::vec((any::<bool>(), any::<u32>()), 0..200),
        ) {
            let (mut set, mut twin) = (PageSet::new(bound as usize), BTreeSet::new());
            for (insert, number) in steps {
                // Low numbers collide often.
                let number = if number % 3 == 0 { number % bound } else { number % bound.min(90) };
                if insert {
                    set.insert(number);
                    twin.insert(number);
                } else {
                    set.remove(number);
                    twin.remove(&number);
                }
                for from in [0, number, number + 1, bound / 2, bound - 1, bound] {
                    prop_assert_eq!(set.next(from), twin.range(from..).next().copied());
                }
                prop_assert_eq!(set.contains(number), twin.contains(&number));
            }
            set.clear();
            prop_assert_eq!(set.next(0), None);
        }
    }
}

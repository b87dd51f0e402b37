//! Sets of page numbers: one that finds its neighbours from anywhere, and one of runs.
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

    /// The last number that is not more than `from`, which is below the bound.
    #[inline]
    pub(crate) fn previous(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        for depth in 0..self.levels.len() {
            let rest = self.levels[depth][at / 64] << (63 - at % 64);
            if rest != 0 {
                at -= rest.leading_zeros() as usize;
                for level in self.levels[..depth].iter().rev() {
                    at = at * 64 + 63 - level[at].leading_zeros() as usize;
                }
                return Some(at as u32);
            }
            at = (at / 64).checked_sub(1)?;
        }
        None
    }

    /// Forgets every number.
    pub(crate) fn clear(&mut self) {
        self.levels.iter_mut().for_each(|level| level.fill(0));
    }
}

/// Runs of numbers below a bound: which are in any of them.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    words: Vec<u64>,
}

impl Runs {
    /// No runs, of numbers below `bound`.
    pub(crate) fn new(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(64)] }
    }

    /// The words of `first..end` and their bits in it; none, or none of their bits, if it is empty or
    /// reversed.
    #[inline]
    fn parts(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
        let (from, to) = (first / 64, end.div_ceil(64));
        (from..to).map(move |word| {
            let low = if word == from { !0 << (first % 64) } else { !0 };
            let high = if word + 1 == to { !0 >> (to * 64 - end) } else { !0 };
            (word as usize, low & high)
        })
    }

    /// True if any of `first..end` is in.
    #[inline]
    pub(crate) fn any(&self, first: u64, end: u64) -> bool {
        Self::parts(first, end).any(|(word, bits)| self.words[word] & bits != 0)
    }

    /// All of `first..end` are in from now on.
    #[inline]
    pub(crate) fn fill(&mut self, first: u64, end: u64) {
        Self::parts(first, end).for_each(|(word, bits)| self.words[word] |= bits);
    }

    /// None of `first..end` is.
    #[inline]
    pub(crate) fn clear(&mut self, first: u64, end: u64) {
        Self::parts(first, end).for_each(|(word, bits)| self.words[word] &= !bits);
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
                for from in [0, number, number.saturating_sub(1), bound / 2, bound - 1] {
                    prop_assert_eq!(set.previous(from), twin.range(..=from).next_back().copied());
                }
                prop_assert_eq!(set.contains(number), twin.contains(&number));
            }
            set.clear();
            prop_assert_eq!(set.next(0), None);
        }

        #[test]
        fn runs_behave_like_flags(
            steps in prop::collection::vec((any::<bool>(), 0_u64..300, 0_u64..200), 0..60),
        ) {
            let (mut runs, mut twin) = (Runs::new(300), vec![false; 300]);
            for (fill, first, length) in steps {
                let end = (first + length).min(300);
                prop_assert_eq!(runs.any(first, end), twin[first as usize..end as usize].contains(&true));
                if fill { runs.fill(first, end) } else { runs.clear(first, end) }
                // What is reversed is nothing.
                runs.clear(end, first);
                runs.fill(end, first);
                twin[first as usize..end as usize].fill(fill);
                for at in 0..300 {
                    prop_assert_eq!(runs.any(at, at + 1), twin[at as usize]);
                }
            }
        }
    }
}

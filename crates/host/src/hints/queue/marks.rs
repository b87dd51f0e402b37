//! Which units wait, and with which of them a range begins.
//!
//! Both lie side by side, as one look mostly follows the other. There are no levels above the bits: a range is no longer
//! than a hint, so that what is looked for lies a few words away.

/// Two bits for each unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    words: Vec<Word>,
}

/// The bits of 64 units.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    waiting: u64,
    firsts: u64,
}

#[inline]
const fn place(unit: u64) -> (usize, u64) {
    ((unit / 64) as usize, 1 << (unit % 64))
}

impl Marks {
    /// No marks, on units below `bound`.
    pub(super) fn new(bound: u64) -> Self {
        Self { words: vec![Word::default(); bound.div_ceil(64) as usize] }
    }

    /// The words of `first..end` and its bits in each; none, or none of their bits, if it is empty or
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

    /// True if any of `first..end` waits.
    #[inline]
    pub(super) fn any(&self, first: u64, end: u64) -> bool {
        Self::parts(first, end).any(|(word, bits)| self.words[word].waiting & bits != 0)
    }

    /// All of `first..end` wait from now on.
    #[inline]
    pub(super) fn fill(&mut self, first: u64, end: u64) {
        Self::parts(first, end).for_each(|(word, bits)| self.words[word].waiting |= bits);
    }

    /// None of `first..end` does.
    #[inline]
    pub(super) fn clear(&mut self, first: u64, end: u64) {
        Self::parts(first, end).for_each(|(word, bits)| self.words[word].waiting &= !bits);
    }

    /// A range begins with `unit`.
    #[inline]
    pub(super) fn begin(&mut self, unit: u64) {
        let (word, bit) = place(unit);
        self.words[word].firsts |= bit;
    }

    /// None does any more.
    #[inline]
    pub(super) fn unbegin(&mut self, unit: u64) {
        let (word, bit) = place(unit);
        self.words[word].firsts &= !bit;
    }

    /// True if a range begins with `unit`.
    #[inline]
    pub(super) fn begins(&self, unit: u64) -> bool {
        let (word, bit) = place(unit);
        self.words[word].firsts & bit != 0
    }

    /// The last unit below `end` that a range begins with.
    #[inline]
    pub(super) fn last_first(&self, end: u64) -> Option<u64> {
        let last = end.checked_sub(1)?;
        let mut word = (last / 64) as usize;
        let mut firsts = self.words[word].firsts << (63 - last % 64) >> (63 - last % 64);
        while firsts == 0 {
            word = word.checked_sub(1)?;
            firsts = self.words[word].firsts;
        }
        Some(word as u64 * 64 + 63 - u64::from(firsts.leading_zeros()))
    }

    /// The first unit, from `at` on, that a range begins with.
    pub(super) fn next_first(&self, at: u64) -> Option<u64> {
        let first = (at / 64) as usize;
        let bits = |(word, of): (usize, &Word)| {
            let firsts =
                if word == first { of.firsts >> (at % 64) << (at % 64) } else { of.firsts };
            (firsts != 0).then(|| word as u64 * 64 + u64::from(firsts.trailing_zeros()))
        };
        self.words.iter().enumerate().skip(first).find_map(bits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    proptest! {
        #[test]
        fn waiting_units_are_as_flags_are(
            steps in prop::collection::vec((any::<bool>(), 0_u64..300, 0_u64..200), 0..60),
        ) {
            let (mut marks, mut twin) = (Marks::new(300), vec![false; 300]);
            for (fill, first, length) in steps {
                let end = (first + length).min(300);
                prop_assert_eq!(marks.any(first, end), twin[first as usize..end as usize].contains(&true));
                if fill { marks.fill(first, end) } else { marks.clear(first, end) }
                // A reversed range is empty.
                marks.clear(end, first);
                marks.fill(end, first);
                twin[first as usize..end as usize].fill(fill);
                for at in 0..300 {
                    prop_assert_eq!(marks.any(at, at + 1), twin[at as usize]);
                }
            }
        }

        #[test]
        fn beginnings_are_as_a_set_is(
            steps in prop::collection::vec((any::<bool>(), 0_u64..300), 0..80),
        ) {
            let (mut marks, mut twin) = (Marks::new(300), BTreeSet::new());
            marks.fill(0, 300); // has nothing to do with it
            for (begin, unit) in steps {
                if begin {
                    marks.begin(unit);
                    twin.insert(unit);
                } else {
                    marks.unbegin(unit);
                    twin.remove(&unit);
                }
                for at in [0, 63, 64, unit, unit + 1, 299, 300] {
                    prop_assert_eq!(marks.next_first(at), twin.range(at..).next().copied());
                    prop_assert_eq!(marks.last_first(at), twin.range(..at).next_back().copied());
                }
                prop_assert_eq!(marks.begins(unit), twin.contains(&unit));
            }
        }
    }
}

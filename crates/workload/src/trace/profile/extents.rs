//! Sets of 4 KiB units, kept as extents.
//!
//! **What lives here**: which units were touched, and when each was last written. **What doesn't**:
//! what is made of it.
//!
//! **Invariants**: extents don't overlap, and neighbours that can be one are.

use std::collections::BTreeMap;

use super::sample::Sample;

/// A set of units.
#[derive(Default)]
pub(in crate::trace) struct Cover {
    /// First unit to the first beyond.
    extents: BTreeMap<u64, u64>,
    units: u64,
}

impl Cover {
    /// How many units are in the set.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// How many extents are kept.
    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Leaves out what is not in `sample`.
    pub(super) fn thin(&mut self, sample: Sample) {
        let whole = std::mem::take(self);
        for (begin, end) in whole.extents {
            sample.parts(begin, end, |begin, end| self.add(begin, end));
        }
    }

    /// The extents: the first unit, and the first beyond; ascending.
    pub(in crate::trace) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.extents.iter().map(|(&begin, &end)| (begin, end))
    }

    /// Adds `begin..end`.
    pub(in crate::trace) fn add(&mut self, begin: u64, end: u64) {
        let (mut begin, mut end) = (begin, end);
        // Those that overlap or touch, from the right: each is swallowed.
        while let Some((&first, &beyond)) = self.extents.range(..=end).next_back() {
            if beyond < begin {
                break;
            }
            if first <= begin && beyond >= end {
                return;
            }
            self.extents.remove(&first);
            self.units -= beyond - first;
            (begin, end) = (begin.min(first), end.max(beyond));
        }
        self.extents.insert(begin, end);
        self.units += end - begin;
    }

    /// How many units of `begin..end` are in the set.
    pub(super) fn overlap(&self, begin: u64, end: u64) -> u64 {
        let touching = self.extents.range(..end).rev();
        let touching = touching.take_while(|&(_, &beyond)| beyond > begin);
        touching.map(|(&first, &beyond)| beyond.min(end) - first.max(begin)).sum()
    }

    /// Takes `begin..end` out, and returns how many of its units were in.
    pub(super) fn remove(&mut self, begin: u64, end: u64) -> u64 {
        let before = self.units;
        while let Some((&first, &beyond)) = self.extents.range(..end).next_back() {
            if beyond <= begin {
                break;
            }
            self.extents.remove(&first);
            self.units -= beyond.min(end) - first.max(begin);
            if end < beyond {
                self.extents.insert(end, beyond);
            }
            if first < begin {
                self.extents.insert(first, begin);
            }
        }
        before - self.units
    }
}

/// When each unit was last written, in units written before it.
///
/// An extent's units were written one after another: unit `begin + i` at `stamp + i`. A write of
/// `n` units at `stamp` is thus one extent, and the distance to what it overwrites is the same for
/// all units of an extent: `(stamp' + i) - (stamp + i)`, less the unit itself.
#[derive(Default)]
pub(super) struct Extents {
    extents: BTreeMap<u64, Extent>,
    units: u64,
}

#[derive(Clone, Copy)]
struct Extent {
    end: u64,
    stamp: u64,
}

impl Extents {
    /// How many units were ever written.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// How many extents are kept.
    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Leaves out what is not in `sample`.
    pub(super) fn thin(&mut self, sample: Sample) {
        let whole = std::mem::take(self);
        for (first, old) in whole.extents {
            sample.parts(first, old.end, |begin, end| {
                let stamp = old.stamp + (begin - first);
                self.extents.insert(begin, Extent { end, stamp });
                self.units += end - begin;
            });
        }
    }

    /// Those units, in extents: the first, and the first beyond.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.extents.iter().map(|(&begin, extent)| (begin, extent.end))
    }

    /// Writes `begin..end` when `stamp` units had been written before. Tells `overwritten` of units
    /// that were written before: the first, the first beyond, and how many other units were written
    /// in between.
    pub(super) fn write(
        &mut self,
        begin: u64,
        end: u64,
        stamp: u64,
        mut overwritten: impl FnMut(u64, u64, u64),
    ) {
        while let Some((&first, &old)) = self.extents.range(..end).next_back() {
            if old.end <= begin {
                break;
            }
            self.extents.remove(&first);
            let (from, to) = (first.max(begin), old.end.min(end));
            let then = old.stamp + (from - first);
            let now = stamp + (from - begin);
            overwritten(from, to, now - then - 1);
            self.units -= to - from;
            if to < old.end {
                let stamp = old.stamp + (to - first);
                self.extents.insert(to, Extent { end: old.end, stamp });
            }
            if first < from {
                let end = from;
                self.extents.insert(first, Extent { end, ..old });
            }
        }
        self.units += end - begin;
        let before = self.extents.range_mut(..begin).next_back();
        if let Some((&first, old)) = before
            && old.end == begin
            && old.stamp + (begin - first) == stamp
        {
            old.end = end;
            return;
        }
        self.extents.insert(begin, Extent { end, stamp });
    }
}

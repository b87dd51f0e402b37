//! Ranges that wait for their way to the drive, in order of arrival.
//!
//! A set of bits finds ranges by address, in as many steps as it has levels (four for 64 GiB), a list
//! through them keeps their order. Nothing is allocated once as many wait as ever will.
//!
//! **Invariants**
//! - No unit is in two ranges; each range fits into a hint.
//! - The list is in ascending order of `place`.
//! - There are never more ranges than the limit.

use std::num::NonZeroU8;

use leyden_device::Hint;
use leyden_sim::{SlotIndex, Time};

use crate::set::PageSet;

/// Ranges that the index has room for at first.
const FIRST_ROOM: u32 = 64;

/// No range.
const NONE: u32 = u32::MAX;

/// A first-come, first-served queue of disjoint ranges, in units of
/// [`HINT_UNIT_BYTES`](leyden_device::HINT_UNIT_BYTES).
#[derive(Debug)]
pub(super) struct RangeQueue {
    /// The first units of the ranges, and their slots; `None` before there was a range.
    firsts: Option<(PageSet, SlotIndex)>,
    /// Units that there are.
    bound: u64,
    len: usize,
    /// Ranges that the index has room for: mostly few wait, and a small index stays in the processor's
    /// cache.
    room: u32,
    slots: Vec<Range>,
    /// Slots that hold no range.
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    next_place: u64,
    limit: usize,
    /// Neighbours become one range.
    merging: bool,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    end: u64,
    /// In the order of arrival; parts of one range share theirs.
    place: u64,
    since: Time,
    older: u32,
    newer: u32,
}

/// What became of the units of a range that was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Units that waited already.
    pub(super) repeated_units: u64,
    /// Units of older ranges that had to go.
    pub(super) dropped_units: u64,
}

impl RangeQueue {
    /// At most `limit` ranges. If `merging`, neighbours that fit into one hint become one range, in
    /// the place of the older.
    pub(super) const fn new(limit: u32, merging: bool) -> Self {
        Self {
            firsts: None,
            bound: 0,
            len: 0,
            room: 0,
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            next_place: 0,
            limit: limit as usize,
            merging,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// How many ranges wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many units wait. Costs a pass over them.
    pub(super) fn units(&self) -> u64 {
        let mut at = self.oldest;
        let ranges = std::iter::from_fn(|| {
            let range = self.slots.get(at as usize)?;
            at = range.newer;
            Some(range.end - range.first)
        });
        ranges.sum()
    }

    /// Since when the oldest has waited.
    #[inline]
    pub(super) fn oldest_since(&self) -> Option<Time> {
        (!self.is_empty()).then(|| self.slots[self.oldest as usize].since)
    }

    /// Ranges will be of units below `bound`. It is the same every time.
    #[inline]
    pub(super) fn reserve(&mut self, bound: u64) {
        if self.firsts.is_none() {
            self.bound = bound;
            self.room = FIRST_ROOM;
            self.firsts = Some((PageSet::new(bound as usize), SlotIndex::new(FIRST_ROOM)));
        }
    }

    /// Adds the units of `hint` that do not wait yet.
    pub(super) fn add(&mut self, hint: Hint, since: Time) -> Added {
        let mut added = Added::default();
        let mut at = u64::from(hint.first_unit());
        let end = at + u64::from(hint.units());
        while at < end {
            // The first range that ends beyond `at`, if it begins before `end`.
            let next = self.next_touching(at, end);
            let (first, stop) = next.map_or((end, end), |range| (range.first, range.end.min(end)));
            if at < first {
                self.insert(at, first, since);
            }
            added.repeated_units += stop - first.max(at);
            at = stop;
        }
        added.dropped_units = self.drop_surplus();
        added
    }

    /// Takes the units from `first` up to, not including, `end` out; returns how many waited, and how
    /// many units of others had to go because a range fell into two.
    pub(super) fn withdraw(&mut self, first: u64, end: u64) -> (u64, u64) {
        let mut units = 0;
        while let Some(slot) = self.last_before(end, first) {
            let range = self.slots[slot as usize];
            units += range.end.min(end) - range.first.max(first);
            match (range.first < first, end < range.end) {
                (true, true) => {
                    self.slots[slot as usize].end = first;
                    self.split_off(slot, end, range.end);
                }
                (true, false) => self.slots[slot as usize].end = first,
                (false, true) => self.move_first(slot, end),
                (false, false) => self.remove(slot),
            }
        }
        (units, self.drop_surplus())
    }

    /// Takes the oldest range out.
    pub(super) fn pop(&mut self) -> Option<(Hint, Time)> {
        if self.is_empty() {
            return None;
        }
        let range = self.slots[self.oldest as usize];
        self.remove(self.oldest);
        let units = NonZeroU8::new((range.end - range.first) as u8)?;
        Some((Hint::new(range.first as u32, units), range.since))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.limit as u32, self.merging);
    }

    /// Drops the oldest ranges while there are too many; returns their units.
    fn drop_surplus(&mut self) -> u64 {
        let mut units = 0;
        while self.len() > self.limit {
            let range = self.slots[self.oldest as usize];
            units += range.end - range.first;
            self.remove(self.oldest);
        }
        units
    }

    /// The last range that begins before `end`, if it ends after `at`.
    #[inline]
    fn last_before(&self, end: u64, at: u64) -> Option<u32> {
        let (firsts, index) = self.firsts.as_ref()?;
        let first = firsts.previous(end.min(self.bound).checked_sub(1)? as u32)?;
        // Mostly it is too far away to look at.
        if u64::from(first) + u64::from(Hint::MOST_UNITS) <= at {
            return None;
        }
        index.get(first).filter(|&slot| self.slots[slot as usize].end > at)
    }

    /// The first range that has units in `at..end`.
    #[inline]
    fn next_touching(&self, at: u64, end: u64) -> Option<Range> {
        // Mostly there is none, and one look says so.
        let last = self.slots[self.last_before(end, at)? as usize];
        if last.first <= at {
            return Some(last);
        }
        let before = self.last_before(at + 1, at);
        before.or_else(|| self.beginning_from(at)).map(|slot| self.slots[slot as usize])
    }

    /// The first range that begins at `at` or later.
    fn beginning_from(&self, at: u64) -> Option<u32> {
        let (firsts, index) = self.firsts.as_ref()?;
        index.get(firsts.next(at as u32)?)
    }

    /// Adds a range that touches no other.
    fn insert(&mut self, first: u64, end: u64, since: Time) {
        const MOST: u64 = Hint::MOST_UNITS as u64;
        let (left, right) = if self.merging { self.neighbours(first, end) } else { (NONE, NONE) };
        if left != NONE && end - self.slots[left as usize].first <= MOST {
            self.slots[left as usize].end = end;
            if right != NONE {
                self.join(left, right, MOST);
            }
        } else if right != NONE && self.slots[right as usize].end - first <= MOST {
            self.move_first(right, first);
        } else {
            let place = self.next_place;
            self.next_place += 1;
            let older = self.newest;
            self.link(Range { first, end, place, since, older, newer: NONE });
        }
    }

    /// The ranges that end at `first` and begin at `end`.
    #[inline]
    fn neighbours(&self, first: u64, end: u64) -> (u32, u32) {
        let before = first.checked_sub(1);
        let left = before.and_then(|before| self.last_before(first, before));
        let right = self.beginning_at(end);
        (left.unwrap_or(NONE), right.unwrap_or(NONE))
    }

    /// The range that begins at `at`.
    #[inline]
    fn beginning_at(&self, at: u64) -> Option<u32> {
        let (firsts, index) = self.firsts.as_ref().filter(|_| at < self.bound)?;
        firsts.contains(at as u32).then(|| index.get(at as u32))?
    }

    /// Makes one range of two neighbours, in the place of the older, if it is not too long.
    fn join(&mut self, left: u32, right: u32, most: u64) {
        let (a, b) = (self.slots[left as usize], self.slots[right as usize]);
        if b.end - a.first > most {
            return;
        }
        if a.place <= b.place {
            self.remove(right);
            self.slots[left as usize].end = b.end;
        } else {
            self.remove(left);
            self.move_first(right, a.first);
        }
    }

    /// The rest of a range that fell into two, right after the other part.
    fn split_off(&mut self, slot: u32, first: u64, end: u64) {
        let Range { place, since, newer, .. } = self.slots[slot as usize];
        self.link(Range { first, end, place, since, older: slot, newer });
    }

    /// The range begins elsewhere.
    fn move_first(&mut self, slot: u32, first: u64) {
        let before = std::mem::replace(&mut self.slots[slot as usize].first, first);
        if let Some((firsts, index)) = &mut self.firsts {
            firsts.remove(before as u32);
            index.remove(before as u32);
            firsts.insert(first as u32);
            index.set(first as u32, slot);
        }
    }

    fn link(&mut self, range: Range) {
        if self.len == self.room as usize {
            self.grow();
        }
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = range;
            slot
        } else {
            self.slots.push(range);
            self.slots.len() as u32 - 1
        };
        if let Some((firsts, index)) = &mut self.firsts {
            firsts.insert(range.first as u32);
            index.set(range.first as u32, slot);
        }
        self.len += 1;
        *self.newer_of(range.older) = slot;
        *self.older_of(range.newer) = slot;
    }

    /// Makes room for twice as many ranges.
    #[cold]
    fn grow(&mut self) {
        self.room *= 2;
        let mut grown = SlotIndex::new(self.room);
        let mut at = self.oldest;
        while let Some(range) = self.slots.get(at as usize) {
            grown.set(range.first as u32, at);
            at = range.newer;
        }
        if let Some((_, index)) = &mut self.firsts {
            *index = grown;
        }
    }

    fn remove(&mut self, slot: u32) {
        let Range { first, older, newer, .. } = self.slots[slot as usize];
        *self.newer_of(older) = newer;
        *self.older_of(newer) = older;
        if let Some((firsts, index)) = &mut self.firsts {
            firsts.remove(first as u32);
            index.remove(first as u32);
        }
        self.len -= 1;
        self.free.push(slot);
    }

    /// What says which range comes after `slot`; after [`NONE`], the oldest.
    fn newer_of(&mut self, slot: u32) -> &mut u32 {
        match self.slots.get_mut(slot as usize) {
            Some(range) => &mut range.newer,
            None => &mut self.oldest,
        }
    }

    /// What says which range comes before `slot`; before [`NONE`], the newest.
    fn older_of(&mut self, slot: u32) -> &mut u32 {
        match self.slots.get_mut(slot as usize) {
            Some(range) => &mut range.older,
            None => &mut self.newest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Units of the drive.
    const BOUND: u32 = 3_000;

    /// The slow twin: a list in order of arrival, searched from the front.
    struct Twin {
        ranges: Vec<(u64, u64, u64, Time)>, // first, end, place, since
        next_place: u64,
        limit: usize,
        merging: bool,
    }

    impl Twin {
        fn holds(&self, unit: u64) -> bool {
            self.ranges.iter().any(|&(first, end, ..)| (first..end).contains(&unit))
        }

        fn drop_surplus(&mut self) -> u64 {
            let surplus = self.ranges.len().saturating_sub(self.limit);
            self.ranges.drain(..surplus).map(|(first, end, ..)| end - first).sum()
        }

        fn add(&mut self, hint: Hint, since: Time) -> Added {
            let first = u64::from(hint.first_unit());
            let units: Vec<u64> = (first..first + u64::from(hint.units())).collect();
            let new: Vec<u64> = units.iter().copied().filter(|&unit| !self.holds(unit)).collect();
            let repeated_units = (units.len() - new.len()) as u64;
            for run in new.chunk_by(|a, b| a + 1 == *b) {
                self.insert(run[0], run[run.len() - 1] + 1, since);
            }
            Added { repeated_units, dropped_units: self.drop_surplus() }
        }

        fn insert(&mut self, mut first: u64, mut end: u64, mut since: Time) {
            let mut place = self.next_place;
            let left = self.ranges.iter().position(|range| range.1 == first);
            if let Some(at) = left.filter(|&at| self.merging && end - self.ranges[at].0 <= 255) {
                (first, _, place, since) = self.ranges.remove(at);
            }
            let right = self.ranges.iter().position(|range| range.0 == end);
            if let Some(at) = right.filter(|&at| self.merging && self.ranges[at].1 - first <= 255) {
                let range = self.ranges.remove(at);
                end = range.1;
                if range.2 < place {
                    (place, since) = (range.2, range.3);
                }
            }
            self.next_place += u64::from(place == self.next_place);
            let at = self.ranges.partition_point(|range| (range.2, range.0) < (place, first));
            self.ranges.insert(at, (first, end, place, since));
        }

        fn withdraw(&mut self, first: u64, end: u64) -> (u64, u64) {
            let waited = (first..end).filter(|&unit| self.holds(unit)).count() as u64;
            let cut = |&(a, b, place, since): &(u64, u64, u64, Time)| {
                [(a, b.min(first), place, since), (a.max(end), b, place, since)]
            };
            self.ranges =
                self.ranges.iter().flat_map(cut).filter(|range| range.0 < range.1).collect();
            (waited, self.drop_surplus())
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(u32, u8),
        Withdraw(u64, u64),
        Pop,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Short ranges that touch often; long ones that do not fit together; the end of the scale.
        let place = prop_oneof![4 => 0_u32..60, 1 => 0_u32..2_000, 1 => BOUND - 31..BOUND];
        let length = prop_oneof![4 => 1_u8..6, 1 => 1_u8..=255];
        let fit = |first: u32, units: u8| (BOUND - 1 - first).min(u32::from(units) - 1) as u8 + 1;
        let add = (place.clone(), length).prop_map(move |(at, n)| Step::Add(at, fit(at, n)));
        let withdraw =
            (place, 1_u64..40).prop_map(|(at, n)| Step::Withdraw(at.into(), u64::from(at) + n));
        let step = prop_oneof![4 => add, 3 => withdraw, 1 => Just(Step::Pop)];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn behaves_like_a_list(steps in steps(), limit in prop_oneof![1_u32..20, Just(200)], merging: bool) {
            let mut queue = RangeQueue::new(limit, merging);
            queue.reserve(BOUND.into());
            let mut twin = Twin { ranges: Vec::new(), next_place: 0, limit: limit as usize, merging };
            for (i, step) in steps.into_iter().enumerate() {
                let since = Time::from_ns(i as u64);
                match step {
                    Step::Add(first, units) => {
                        let hint = Hint::new(first, NonZeroU8::new(units).unwrap());
                        prop_assert_eq!(queue.add(hint, since), twin.add(hint, since));
                    }
                    Step::Withdraw(first, end) => {
                        prop_assert_eq!(queue.withdraw(first, end), twin.withdraw(first, end));
                    }
                    Step::Pop => {
                        let range = (!twin.ranges.is_empty()).then(|| twin.ranges.remove(0));
                        let range = range.map(|(first, end, _, since)| (first, end - first, since));
                        let popped = queue.pop().map(|(hint, since)| {
                            (u64::from(hint.first_unit()), u64::from(hint.units()), since)
                        });
                        prop_assert_eq!(popped, range);
                    }
                }
                prop_assert_eq!(queue.len(), twin.ranges.len());
                prop_assert_eq!(queue.oldest_since(), twin.ranges.first().map(|range| range.3));
                let units = twin.ranges.iter().map(|range| range.1 - range.0).sum::<u64>();
                prop_assert_eq!(queue.units(), units);
            }
        }
    }

    #[test]
    fn many_ranges_are_found_again() {
        let mut queue = RangeQueue::new(1_000, true);
        queue.reserve(3_000);
        for first in 0..1_000 {
            queue.add(Hint::new(first * 3, NonZeroU8::MIN), Time::ZERO);
        }
        assert_eq!((queue.len(), queue.units()), (1_000, 1_000));
        assert_eq!(queue.withdraw(0, 2_000), (667, 0));
        assert_eq!(queue.withdraw(2_001, 2_002), (1, 0));
        assert_eq!(queue.pop().map(|(hint, _)| hint.first_unit()), Some(2_004));
    }

    #[test]
    fn neighbours_merge_until_a_hint_is_full() {
        let mut queue = RangeQueue::new(10, true);
        queue.reserve(1_000);
        let hint = |first, units| Hint::new(first, NonZeroU8::new(units).unwrap());
        for first in (0..400).step_by(4) {
            queue.add(hint(first, 4), Time::ZERO);
        }
        let sent: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(hint, _)| hint).collect();
        assert_eq!(sent, [hint(0, 252), hint(252, 148)]);
    }
}

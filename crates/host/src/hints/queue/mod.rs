//! Ranges that wait for their way to the drive, in order of arrival.
//!
//! Bits find ranges by address ([`Marks`]), a list through them keeps their order. Nothing is allocated once as many
//! wait as ever will.
//!
//! **Invariants**
//! - No unit is in two ranges; no range is longer than its [`Shape`] says, so that each fits into a hint.
//! - The list is in ascending order of `place`.
//! - There are never more ranges than the limit.
//! - `marks` has the units of the ranges and their first ones, and no others.

mod marks;
#[cfg(test)]
mod tests;

use std::num::NonZeroU8;

use leyden_device::Hint;
use leyden_sim::{SlotIndex, Time};

use marks::Marks;

/// Ranges that the index has room for at first.
const FIRST_ROOM: u32 = 64;

/// No range.
const NONE: u32 = u32::MAX;

/// A first-come, first-served queue of disjoint ranges, in units of
/// [`HINT_UNIT_BYTES`](leyden_device::HINT_UNIT_BYTES).
#[derive(Debug)]
pub(super) struct RangeQueue {
    /// The slots of ranges, by their first units; `None` before there was a range.
    index: Option<SlotIndex>,
    /// The units of all ranges: mostly none of those that are asked for waits, and this says so first.
    marks: Marks,
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
    shape: Shape,
}

/// How long ranges get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Neighbours become one range, in the place of the older, while it is no longer than a range may be.
    pub(super) merging: bool,
    /// The most units of a range: what one hint names.
    pub(super) most_units: u32,
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

/// Counts the fates of the units of a range that was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Added {
    /// Units that waited already.
    pub(super) repeated_units: u64,
    /// Units of older ranges that had to go.
    pub(super) dropped_units: u64,
}

impl RangeQueue {
    /// At most `limit` ranges.
    pub(super) fn new(limit: u32, shape: Shape) -> Self {
        assert!(
            (1..=Hint::MOST_UNITS).contains(&shape.most_units),
            "a range is not a hint: {shape:?}"
        );
        Self {
            index: None,
            marks: Marks::default(),
            bound: 0,
            len: 0,
            room: 0,
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            next_place: 0,
            limit: limit as usize,
            shape,
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
        if self.index.is_none() {
            self.bound = bound;
            self.marks = Marks::new(bound);
            self.room = FIRST_ROOM;
            self.index = Some(SlotIndex::new(FIRST_ROOM));
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
                    self.move_end(slot, first);
                    self.split_off(slot, end, range.end);
                }
                (true, false) => self.move_end(slot, first),
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
        *self = Self::new(self.limit as u32, self.shape);
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
        let end = end.min(self.bound);
        if !self.marks.any(at, end) {
            return None;
        }
        self.slot_of(self.marks.last_first(end)?)
    }

    /// The slot of the range that begins with `first`.
    #[inline]
    fn slot_of(&self, first: u64) -> Option<u32> {
        self.index.as_ref()?.get(first as u32)
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
        let slot = before.or_else(|| self.slot_of(self.marks.next_first(at)?));
        slot.map(|slot| self.slots[slot as usize])
    }

    /// Adds units that touch no range: in as many ranges as it takes, the last of them the short one.
    fn insert(&mut self, first: u64, end: u64, since: Time) {
        let most = u64::from(self.shape.most_units);
        let mut at = first;
        while end - at > most {
            self.insert_range(at, at + most, since);
            at += most;
        }
        self.insert_range(at, end, since);
    }

    /// Adds a range that touches no other, and is not too long.
    fn insert_range(&mut self, first: u64, end: u64, since: Time) {
        let most = u64::from(self.shape.most_units);
        let (left, right) =
            if self.shape.merging { self.neighbours(first, end) } else { (NONE, NONE) };
        if left != NONE && end - self.slots[left as usize].first <= most {
            self.move_end(left, end);
            if right != NONE {
                self.join(left, right, most);
            }
        } else if right != NONE && self.slots[right as usize].end - first <= most {
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
        if at < self.bound && self.marks.begins(at) { self.slot_of(at) } else { None }
    }

    /// Makes one range of two neighbours, in the place of the older, if it is not too long.
    fn join(&mut self, left: u32, right: u32, most: u64) {
        let (a, b) = (self.slots[left as usize], self.slots[right as usize]);
        if b.end - a.first > most {
            return;
        }
        if a.place <= b.place {
            self.remove(right);
            self.move_end(left, b.end);
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
        // One of these is a reversed run: nothing.
        self.marks.fill(first, before);
        self.marks.clear(before, first);
        self.marks.unbegin(before);
        self.marks.begin(first);
        if let Some(index) = &mut self.index {
            index.remove(before as u32);
            index.set(first as u32, slot);
        }
    }

    /// The range ends elsewhere.
    fn move_end(&mut self, slot: u32, end: u64) {
        let before = std::mem::replace(&mut self.slots[slot as usize].end, end);
        // As above.
        self.marks.fill(before, end);
        self.marks.clear(end, before);
    }

    fn link(&mut self, range: Range) {
        self.marks.fill(range.first, range.end);
        self.marks.begin(range.first);
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
        if let Some(index) = &mut self.index {
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
        self.index = Some(grown);
    }

    fn remove(&mut self, slot: u32) {
        let Range { first, end, older, newer, .. } = self.slots[slot as usize];
        self.marks.clear(first, end);
        self.marks.unbegin(first);
        *self.newer_of(older) = newer;
        *self.older_of(newer) = older;
        if let Some(index) = &mut self.index {
            index.remove(first as u32);
        }
        self.len -= 1;
        self.free.push(slot);
    }

    /// The field that names the range after `slot`; after [`NONE`], the oldest.
    fn newer_of(&mut self, slot: u32) -> &mut u32 {
        match self.slots.get_mut(slot as usize) {
            Some(range) => &mut range.newer,
            None => &mut self.oldest,
        }
    }

    /// The field that names the range before `slot`; before [`NONE`], the newest.
    fn older_of(&mut self, slot: u32) -> &mut u32 {
        match self.slots.get_mut(slot as usize) {
            Some(range) => &mut range.older,
            None => &mut self.newest,
        }
    }
}

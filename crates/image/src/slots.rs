//! Which of an image's bytes are in use: a slot for each mapping unit that a write touches.
//!
//! Slots have no reference counts. When they run out, the drive lists the slots it still uses; all others
//! are free. All of it depends on the drive's state alone, so that a log that is run
//! again hands out the same slots.

use leyden_sim::BitSet;

/// New slots that are handed out, beyond half as many as are in use, before the drive is asked again.
const SPARE: u32 = 4_096;

/// The slots of an image.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    unit_sectors: u64,
    /// Free ones, the lowest last.
    free: Vec<u32>,
    /// The first one that was never handed out.
    next: u32,
    /// As far as `next` may go.
    bound: u32,
    /// The checksum of the bytes in each slot below `next`.
    checksums: Vec<u32>,
    /// Of each slot below `next`, whether it was written since its room was last given back.
    is_written: Vec<bool>,
}

impl Slots {
    /// With these checksums, so many slots have been handed out; they are in use until it is known
    /// better.
    pub(crate) fn new(unit_sectors: u64, checksums: Vec<u32>) -> Self {
        let next = checksums.len() as u32;
        let is_written = vec![false; checksums.len()];
        Self { unit_sectors, free: Vec::new(), next, bound: next, checksums, is_written }
    }

    /// True if there are fewer than `count` to hand out: the drive must be asked ([`Slots::keep`]).
    pub(crate) fn is_short_of(&self, count: u32) -> bool {
        (self.free.len() as u64) + u64::from(self.bound - self.next) < u64::from(count)
    }

    /// Everything but `used` is free, and `count` more can be handed out.
    pub(crate) fn keep(&mut self, used: &BitSet, count: u32) {
        self.free = (0..self.next).rev().filter(|&slot| !used.contains(slot)).collect();
        let in_use = self.next - self.free.len() as u32;
        self.bound = self.next.max(in_use.saturating_add(in_use / 2).saturating_add(SPARE));
        if self.is_short_of(count) {
            self.bound = self.bound.saturating_add(count);
        }
    }

    /// The slots that will be handed out next, in order.
    pub(crate) fn next_ones(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().rev().copied().chain(self.next..)
    }

    /// Hands out a slot for bytes of this checksum.
    pub(crate) fn take(&mut self, checksum: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            assert!(self.next < self.bound, "asked for more slots than were made ready");
            self.next += 1;
            self.checksums.push(0);
            self.is_written.push(false);
            self.next - 1
        });
        self.checksums[slot as usize] = checksum;
        self.is_written[slot as usize] = true;
        slot
    }

    /// Slots that were ever handed out.
    pub(crate) const fn count(&self) -> u32 {
        self.next
    }

    /// Slots that are handed out.
    pub(crate) fn in_use(&self) -> u32 {
        self.next - self.free.len() as u32
    }

    pub(crate) fn checksums(&self) -> &[u32] {
        &self.checksums
    }

    /// The checksum of the bytes in `slot`; `None` if it was never handed out.
    pub(crate) fn checksum(&self, slot: u32) -> Option<u32> {
        self.checksums.get(slot as usize).copied()
    }

    /// Free slots whose bytes still take up room, as ranges; they are taken to be given back.
    pub(crate) fn take_dead(&mut self) -> Vec<std::ops::Range<u32>> {
        let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
        for &slot in self.free.iter().rev() {
            if !std::mem::take(&mut self.is_written[slot as usize]) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == slot => last.end += 1,
                _ => ranges.push(slot..slot + 1),
            }
        }
        ranges
    }

    /// The place of sector `at` of `slot`.
    pub(crate) const fn place(&self, slot: u32, at: u64) -> u64 {
        slot as u64 * self.unit_sectors + at + 1
    }

    /// The slot that a place lies in, and which of its sectors it is.
    pub(crate) const fn slot_of(&self, place: u64) -> (u32, u64) {
        let sector = place - 1;
        ((sector / self.unit_sectors) as u32, sector % self.unit_sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Nothing in use is handed out, what was freed is used again, and room is given back of what was written and is free.
        #[test]
        fn slots_in_use_are_not_handed_out(steps in prop::collection::vec((1_u32..40, any::<u64>()), 1..60)) {
            let mut slots = Slots::new(8, Vec::new());
            let mut used: BTreeSet<u32> = BTreeSet::new();
            let mut written: BTreeSet<u32> = BTreeSet::new();
            for (count, drop) in steps {
                if slots.is_short_of(count) || drop % 4 == 0 {
                    let mut set = BitSet::new(slots.count());
                    for &slot in &used {
                        set.insert(slot);
                    }
                    slots.keep(&set, count);
                    if drop % 2 == 0 {
                        let dead: Vec<u32> = written.difference(&used).copied().collect();
                        prop_assert_eq!(slots.take_dead().into_iter().flatten().collect::<Vec<_>>(), dead);
                        written.retain(|slot| used.contains(slot));
                    }
                }
                for _ in 0..count {
                    let slot = slots.take(7);
                    prop_assert!(used.insert(slot));
                    written.insert(slot);
                }
                used.retain(|slot| drop >> (slot % 64) & 1 == 0);
            }
            prop_assert!(slots.count() < 2_500 + SPARE);
            prop_assert_eq!(slots.is_written.len(), slots.count() as usize);
        }
    }
}

//! `harvest`: all buffered writes of one mapping page, then all of the next; what was overwritten stays.
//!
//! Beyond the papers. Hexa's authors found reordering to cost garbage collection when most of the
//! table is protected, and left a remedy open (section V). Two things cost Hexa there: writes whose
//! mapping page is dirty leave as soon as they come, a few at a time, and writes whose page is not may
//! wait for ever, so that the buffer is smaller than it seems. `harvest` does neither:
//!
//! - Next is the mapping page of the write that has waited longest, and **all** of its writes that are
//!   buffered then. They change one mapping page, so n writes cost one page written back at most,
//!   whatever else is dirty; and nothing waits for longer than the buffer takes to turn over.
//! - A page of the table is a range of addresses. A buffer that is large beside the table holds a good
//!   part of each range; it goes to a few blocks as one, and is overwritten by the next harvest of
//!   that range as one. That is why garbage collection gains, even with the whole table protected.
//! - Data that the host has overwritten twice while it waited is likely to be overwritten again. Its
//!   turn passes it over: it counts as having just come (as in the clock algorithm). This makes up for
//!   writes that leave early because an older one of their page takes them along. Once is not enough:
//!   of uniform writes a large buffer sees many twice, and keeping those back only scatters a harvest.
//!
//! The schedule need not know which mapping pages are dirty nor how many may be. O(log n) per write.
//! `docs/schedules.md` has the measurements.

use leyden_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::heap::IndexedHeap;
use super::lists::PageLists;
use crate::SlotId;

/// How often data must be overwritten while it waits to be passed over.
const OVERWRITES: u8 = 2;

/// One mapping page after the other, by its oldest write; data overwritten meanwhile stays for a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Harvest {}

/// Writes by mapping page, and the harvest under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HarvestQueue {
    lists: PageLists,
    /// The mapping pages with waiting slots, by the oldest of them.
    by_age: IndexedHeap<u64>,
    /// How often the data of each slot was overwritten since it came, up to [`OVERWRITES`].
    overwritten: Vec<u8>,
    /// The logical page of each slot.
    lpns: Vec<Lpn>,
    /// The mapping page whose writes are taken, ...
    map_page: u32,
    /// ... as far as they arrived before this.
    until: u64,
}

impl HarvestQueue {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            lists: PageLists::new(shape),
            by_age: IndexedHeap::new(shape.mapping_pages),
            overwritten: vec![0; shape.slots as usize],
            lpns: vec![Lpn(0); shape.slots as usize],
            map_page: 0,
            until: 0,
        }
    }

    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        self.overwritten[slot.index()] = 0;
        self.lpns[slot.index()] = lpn;
        let map_page = self.lists.push(slot, lpn);
        self.sort_in(map_page);
    }

    pub(super) fn overwritten(&mut self, slot: SlotId) {
        let count = &mut self.overwritten[slot.index()];
        *count = (*count + 1).min(OVERWRITES);
    }

    /// Takes a slot out, whether it is written now or not at all.
    pub(super) fn remove(&mut self, slot: SlotId) {
        let map_page = self.lists.remove(slot);
        self.sort_in(map_page);
    }

    pub(super) fn pop(&mut self) -> Option<SlotId> {
        loop {
            let slot = self.next()?;
            self.remove(slot);
            if self.overwritten[slot.index()] < OVERWRITES {
                return Some(slot);
            }
            self.push(slot, self.lpns[slot.index()]);
        }
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.lists.fits(shape)
            && self.by_age.fits(shape.mapping_pages)
            && self.overwritten.len() == shape.slots as usize
            && self.lpns.len() == shape.slots as usize
            && self.map_page < shape.mapping_pages.max(1)
    }

    /// The next slot of the harvest, or of the next one.
    fn next(&mut self) -> Option<SlotId> {
        if self.lists.waiting(self.map_page) > 0 {
            let oldest = self.lists.oldest(self.map_page);
            if self.lists.arrival(oldest) < self.until {
                return Some(oldest);
            }
        }
        self.map_page = self.by_age.first()?;
        self.until = self.lists.arrivals();
        Some(self.lists.oldest(self.map_page))
    }

    /// Puts a mapping page where it belongs.
    fn sort_in(&mut self, map_page: u32) {
        if self.lists.waiting(map_page) == 0 {
            self.by_age.remove(map_page);
        } else {
            self.by_age.set(map_page, self.lists.arrival(self.lists.oldest(map_page)));
        }
    }
}

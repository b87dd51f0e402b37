//! Buffered writes by mapping page, in the order of what they cost the mapping table: what `hexa`
//! and `dawid` share.
//!
//! The cost of a write is by how much it adds to the dirty pages of the mapping table (Hexa, section
//! III): nothing if its mapping page is dirty, or about to be because a write of it is on its way to
//! flash; else one page, shared by all the buffered writes of that page.
//!
//! **What lives here**: the slots of each mapping page in order of arrival, which pages cost
//! nothing, and the heap of the others. **What doesn't**: which of the pages that cost nothing comes
//! first ([`ZeroCost`], each policy's own), and batches (`hexa`).
//!
//! **Invariants**
//! - A mapping page with waiting slots is in the zero-cost set or in the heap; one without is in
//!   neither.
//! - The key in the heap is that of the page as it is now.

use std::cmp::Reverse;

use leyden_nand::Lpn;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::heap::IndexedHeap;
use crate::SlotId;

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

/// A slot in the list of its mapping page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    previous: u32,
    next: u32,
    map_page: u32,
    /// When it became dirty, counted in slots that did.
    arrival: u64,
}

/// A page of the mapping table.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct MapPage {
    /// Its waiting slots: the oldest, the newest, and how many.
    first: u32,
    last: u32,
    waiting: u32,
    /// Slots taken and not settled: it is about to be dirty.
    taken: u32,
    dirty: bool,
}

/// The mapping pages with waiting slots whose writes cost nothing.
pub(super) trait ZeroCost {
    /// Puts `page` in, or takes note that its oldest slot has changed to that of `oldest`.
    fn set(&mut self, page: u32, oldest: u64);
    /// Takes `page` out, if it is in.
    fn remove(&mut self, page: u32);
    /// The page to write of next.
    fn first(&self) -> Option<u32>;
    /// True if this is a set of a table of `pages`.
    fn fits(&self, pages: u32) -> bool;
}

/// The waiting slots of every mapping page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ByMapPage<Z> {
    slots: Vec<Waiting>,
    pages: Vec<MapPage>,
    zero_cost: Z,
    /// The other pages: most waiting slots first, then by the oldest of them.
    costly: IndexedHeap<(Reverse<u32>, u64)>,
    arrivals: u64,
    entries_per_map_page: u32,
}

impl<Z: ZeroCost> ByMapPage<Z> {
    pub(super) fn new(shape: &Shape, zero_cost: Z) -> Self {
        let slot = Waiting { previous: NONE, next: NONE, map_page: 0, arrival: 0 };
        let page = MapPage { first: NONE, last: NONE, waiting: 0, taken: 0, dirty: false };
        Self {
            slots: vec![slot; shape.slots as usize],
            pages: vec![page; shape.mapping_pages as usize],
            zero_cost,
            costly: IndexedHeap::new(shape.mapping_pages),
            arrivals: 0,
            entries_per_map_page: shape.entries_per_mapping_page,
        }
    }

    /// Adds a slot that has become dirty.
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        let map_page = lpn.0 / self.entries_per_map_page;
        let page = &mut self.pages[map_page as usize];
        self.slots[slot.index()] =
            Waiting { previous: page.last, next: NONE, map_page, arrival: self.arrivals };
        self.arrivals += 1;
        if page.last == NONE {
            page.first = slot.0;
        } else {
            self.slots[page.last as usize].next = slot.0;
        }
        page.last = slot.0;
        page.waiting += 1;
        self.sort_in(map_page);
    }

    /// Takes out a waiting slot that will not be written.
    pub(super) fn remove(&mut self, slot: SlotId) {
        self.unlink(slot);
        self.sort_in(self.slots[slot.index()].map_page);
    }

    /// Takes out a waiting slot that is written now: its mapping page is about to be dirty.
    pub(super) fn take(&mut self, slot: SlotId) {
        self.unlink(slot);
        let map_page = self.slots[slot.index()].map_page;
        self.pages[map_page as usize].taken += 1;
        self.sort_in(map_page);
    }

    /// Takes the oldest slot of the mapping page that costs least.
    pub(super) fn take_cheapest(&mut self) -> Option<SlotId> {
        let map_page = self.zero_cost.first().or_else(|| self.costly.first())?;
        let slot = SlotId(self.pages[map_page as usize].first);
        self.take(slot);
        Some(slot)
    }

    /// A slot that was taken is free, or not to be written after all.
    pub(super) fn settled(&mut self, lpn: Lpn) {
        let map_page = lpn.0 / self.entries_per_map_page;
        let page = &mut self.pages[map_page as usize];
        page.taken -= 1;
        if page.taken == 0 && !page.dirty {
            self.sort_in(map_page);
        }
    }

    /// A mapping page has become dirty, or clean.
    pub(super) fn note(&mut self, map_page: u32, dirty: bool) {
        let page = &mut self.pages[map_page as usize];
        if std::mem::replace(&mut page.dirty, dirty) != dirty && page.taken == 0 {
            self.sort_in(map_page);
        }
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.slots.len() == shape.slots as usize
            && self.pages.len() == shape.mapping_pages as usize
            && self.entries_per_map_page == shape.entries_per_mapping_page
            && self.costly.fits(shape.mapping_pages)
            && self.zero_cost.fits(shape.mapping_pages)
    }

    /// Puts a mapping page where it belongs.
    fn sort_in(&mut self, map_page: u32) {
        let page = &self.pages[map_page as usize];
        if page.waiting == 0 {
            self.zero_cost.remove(map_page);
            self.costly.remove(map_page);
            return;
        }
        let oldest = self.slots[page.first as usize].arrival;
        if page.dirty || page.taken > 0 {
            self.costly.remove(map_page);
            self.zero_cost.set(map_page, oldest);
        } else {
            self.zero_cost.remove(map_page);
            self.costly.set(map_page, (Reverse(page.waiting), oldest));
        }
    }

    /// Takes a slot out of the list of its mapping page.
    fn unlink(&mut self, slot: SlotId) {
        let Waiting { previous, next, map_page, .. } = self.slots[slot.index()];
        let page = &mut self.pages[map_page as usize];
        if previous == NONE {
            page.first = next;
        } else {
            self.slots[previous as usize].next = next;
        }
        if next == NONE {
            page.last = previous;
        } else {
            self.slots[next as usize].previous = previous;
        }
        page.waiting -= 1;
    }
}

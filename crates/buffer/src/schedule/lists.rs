//! The waiting slots of each mapping page, in order of arrival.
//!
//! **What lives here**: the lists, and what a page costs now. **What doesn't**: an order among pages;
//! [`super::by_map_page`] and [`super::harvest`] each have their own, and sort a page in anew whenever
//! something here says that it has changed.

use leyden_nand::Lpn;
use serde::{Deserialize, Serialize};

use super::Shape;
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

/// The waiting slots of every mapping page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PageLists {
    slots: Vec<Waiting>,
    pages: Vec<MapPage>,
    arrivals: u64,
    entries_per_map_page: u32,
}

impl PageLists {
    pub(super) fn new(shape: &Shape) -> Self {
        let slot = Waiting { previous: NONE, next: NONE, map_page: 0, arrival: 0 };
        let page = MapPage { first: NONE, last: NONE, waiting: 0, taken: 0, dirty: false };
        Self {
            slots: vec![slot; shape.slots as usize],
            pages: vec![page; shape.mapping_pages as usize],
            arrivals: 0,
            entries_per_map_page: shape.entries_per_mapping_page,
        }
    }

    /// Adds a slot that has become dirty. Returns its mapping page.
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) -> u32 {
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
        map_page
    }

    /// Takes out a waiting slot that will not be written. Returns its mapping page.
    pub(super) fn remove(&mut self, slot: SlotId) -> u32 {
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
        map_page
    }

    /// Takes out a waiting slot that is written now. Returns its mapping page, which is about to be
    /// dirty.
    pub(super) fn take(&mut self, slot: SlotId) -> u32 {
        let map_page = self.remove(slot);
        self.pages[map_page as usize].taken += 1;
        map_page
    }

    /// A slot that was taken is free, or not to be written after all. Returns its mapping page if that
    /// costs something from now on.
    pub(super) fn settled(&mut self, lpn: Lpn) -> Option<u32> {
        let map_page = lpn.0 / self.entries_per_map_page;
        let page = &mut self.pages[map_page as usize];
        page.taken -= 1;
        (page.taken == 0 && !page.dirty).then_some(map_page)
    }

    /// A mapping page has become dirty, or clean. True if that changes what it costs.
    pub(super) fn note(&mut self, map_page: u32, dirty: bool) -> bool {
        let page = &mut self.pages[map_page as usize];
        std::mem::replace(&mut page.dirty, dirty) != dirty && page.taken == 0
    }

    /// Waiting slots of a mapping page.
    pub(super) fn waiting(&self, map_page: u32) -> u32 {
        self.pages[map_page as usize].waiting
    }

    /// True if writes of a mapping page cost nothing: it is dirty, or about to be.
    pub(super) fn is_free(&self, map_page: u32) -> bool {
        let page = &self.pages[map_page as usize];
        page.dirty || page.taken > 0
    }

    /// The oldest waiting slot of a mapping page that has some.
    pub(super) fn oldest(&self, map_page: u32) -> SlotId {
        SlotId(self.pages[map_page as usize].first)
    }

    /// When a waiting slot became dirty, counted in slots that did.
    pub(super) fn arrival(&self, slot: SlotId) -> u64 {
        self.slots[slot.index()].arrival
    }

    /// The mapping page of a waiting slot.
    pub(super) fn page_of(&self, slot: SlotId) -> u32 {
        self.slots[slot.index()].map_page
    }

    /// Counts something else as an arrival, and returns its number.
    pub(super) const fn arrive(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals - 1
    }

    /// Arrivals so far: slots that have become dirty, as a rule.
    pub(super) const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.slots.len() == shape.slots as usize
            && self.pages.len() == shape.mapping_pages as usize
            && self.entries_per_map_page == shape.entries_per_mapping_page
    }
}

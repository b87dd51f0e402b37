//! The waiting slots of each mapping page, in order of arrival.
//!
//! **What lives here**: the lists, and what a page costs now. **What doesn't**: an order among pages;
//! [`super::by_map_page`] and [`super::harvest`] each have their own, and re-sort a page whenever
//! something here says that it has changed.

use leyden_nand::Lpn;
use leyden_sim::{Links, List};
use serde::{Deserialize, Serialize};

use super::Shape;
use crate::SlotId;

/// A slot in the list of its mapping page.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    map_page: u32,
    /// When it became dirty, counted in slots that did.
    arrival: u64,
}

/// A page of the mapping table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct MapPage {
    /// Its waiting slots, oldest first, and how many.
    list: List,
    waiting: u32,
    /// Slots taken and not settled: it is about to be dirty.
    taken: u32,
    dirty: bool,
}

/// The waiting slots of every mapping page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PageLists {
    links: Links,
    slots: Vec<Waiting>,
    pages: Vec<MapPage>,
    arrivals: u64,
    entries_per_map_page: u32,
}

impl PageLists {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            links: Links::new(shape.slots),
            slots: vec![Waiting { map_page: 0, arrival: 0 }; shape.slots as usize],
            // Pages that are as good as dirty from the start never become clean: no call says that
            // they do.
            pages: vec![
                MapPage { dirty: shape.is_table_protected, ..MapPage::default() };
                shape.mapping_pages as usize
            ],
            arrivals: 0,
            entries_per_map_page: shape.entries_per_mapping_page,
        }
    }

    /// Adds a slot that has become dirty. Returns its mapping page.
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) -> u32 {
        let map_page = lpn.0 / self.entries_per_map_page;
        let page = &mut self.pages[map_page as usize];
        self.links.push_back(&mut page.list, slot.0);
        page.waiting += 1;
        self.slots[slot.index()] = Waiting { map_page, arrival: self.arrivals };
        self.arrivals += 1;
        map_page
    }

    /// Takes out a waiting slot that will not be written. Returns its mapping page.
    pub(super) fn remove(&mut self, slot: SlotId) -> u32 {
        let Waiting { map_page, .. } = self.slots[slot.index()];
        let page = &mut self.pages[map_page as usize];
        self.links.remove(&mut page.list, slot.0);
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

    /// The oldest waiting slot of a mapping page; any slot if it has none.
    pub(super) fn oldest(&self, map_page: u32) -> SlotId {
        SlotId(self.pages[map_page as usize].list.first().unwrap_or(0))
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
            && self.links.len() == shape.slots
            && self.pages.len() == shape.mapping_pages as usize
            && self.entries_per_map_page == shape.entries_per_mapping_page
    }
}

//! Buffered writes by mapping page, in the order of what they cost the mapping table: what `hexa`
//! and `dawid` share.
//!
//! The cost of a write is by how much it adds to the dirty pages of the mapping table (Hexa, section
//! III): nothing if its mapping page is dirty, or about to be because a write of it is on its way to
//! flash; else one page, shared by all the buffered writes of that page.
//!
//! **What lives here**: which pages cost nothing, and the heap of the others. **What doesn't**: the
//! slots of each page ([`PageLists`]), which of the pages that cost nothing comes first
//! ([`ZeroCost`], each policy's own), and batches (`hexa`).
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
use super::lists::PageLists;
use crate::SlotId;

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

/// The waiting slots of every mapping page, and the mapping pages by what they cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ByMapPage<Z> {
    lists: PageLists,
    zero_cost: Z,
    /// The other pages: most waiting slots first, then by the oldest of them.
    costly: IndexedHeap<(Reverse<u32>, u64)>,
}

impl<Z: ZeroCost> ByMapPage<Z> {
    pub(super) fn new(shape: &Shape, zero_cost: Z) -> Self {
        let costly = IndexedHeap::new(shape.mapping_pages);
        Self { lists: PageLists::new(shape), zero_cost, costly }
    }

    /// Adds a slot that has become dirty.
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        let map_page = self.lists.push(slot, lpn);
        self.sort_in(map_page);
    }

    /// Takes out a waiting slot that will not be written.
    pub(super) fn remove(&mut self, slot: SlotId) {
        let map_page = self.lists.remove(slot);
        self.sort_in(map_page);
    }

    /// Takes out a waiting slot that is written now: its mapping page is about to be dirty.
    pub(super) fn take(&mut self, slot: SlotId) {
        let map_page = self.lists.take(slot);
        self.sort_in(map_page);
    }

    /// Takes the oldest slot of the mapping page that costs least.
    pub(super) fn take_cheapest(&mut self) -> Option<SlotId> {
        let map_page = self.zero_cost.first().or_else(|| self.costly.first())?;
        let slot = self.lists.oldest(map_page);
        self.take(slot);
        Some(slot)
    }

    /// A slot that was taken is free, or not to be written after all.
    pub(super) fn settled(&mut self, lpn: Lpn) {
        if let Some(map_page) = self.lists.settled(lpn) {
            self.sort_in(map_page);
        }
    }

    /// A mapping page has become dirty, or clean.
    pub(super) fn note(&mut self, map_page: u32, dirty: bool) {
        if self.lists.note(map_page, dirty) {
            self.sort_in(map_page);
        }
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.lists.fits(shape)
            && self.costly.fits(shape.mapping_pages)
            && self.zero_cost.fits(shape.mapping_pages)
    }

    /// Puts a mapping page where it belongs.
    fn sort_in(&mut self, map_page: u32) {
        let waiting = self.lists.waiting(map_page);
        if waiting == 0 {
            self.zero_cost.remove(map_page);
            self.costly.remove(map_page);
            return;
        }
        let oldest = self.lists.arrival(self.lists.oldest(map_page));
        if self.lists.is_free(map_page) {
            self.costly.remove(map_page);
            self.zero_cost.set(map_page, oldest);
        } else {
            self.zero_cost.remove(map_page);
            self.costly.set(map_page, (Reverse(waiting), oldest));
        }
    }
}

//! `dawid`: of all buffered writes, the one that costs the mapping table least.
//!
//! Dawid processes "outstanding requests in the order that least increases the number of dirty pages
//! in the mapping table" (section 1; the cost is defined in Hexa, section III): the cost of a write
//! is 0 if its mapping page is dirty or about to be, else 1 / (buffered writes of that page). Next is
//! the write of the least cost; of equal ones, the one that arrived first. Costs are those of the
//! moment: there are no batches.

use leyden_nand::Lpn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::by_map_page::{ByMapPage, ZeroCost};
use super::heap::IndexedHeap;
use crate::SlotId;

/// The write that costs the mapping table least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dawid {}

/// Mapping pages by their oldest slot: writes that cost nothing leave in order of arrival.
impl ZeroCost for IndexedHeap<u64> {
    fn set(&mut self, page: u32, oldest: u64) {
        self.set(page, oldest);
    }

    fn remove(&mut self, page: u32) {
        self.remove(page);
    }

    fn first(&self) -> Option<u32> {
        self.first()
    }

    fn fits(&self, pages: u32) -> bool {
        self.fits(pages)
    }
}

/// Writes by cost, O(log n) per change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DawidQueue {
    waiting: ByMapPage<IndexedHeap<u64>>,
}

impl DawidQueue {
    pub(super) fn new(shape: &Shape) -> Self {
        Self { waiting: ByMapPage::new(shape, IndexedHeap::new(shape.mapping_pages)) }
    }

    #[inline(never)]
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        self.waiting.push(slot, lpn);
    }

    #[inline(never)]
    pub(super) fn remove(&mut self, slot: SlotId) {
        self.waiting.remove(slot);
    }

    pub(super) fn take(&mut self, slot: SlotId) {
        self.waiting.take(slot);
    }

    #[inline(never)]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        self.waiting.take_cheapest()
    }

    #[inline(never)]
    pub(super) fn settled(&mut self, lpn: Lpn) {
        self.waiting.settled(lpn);
    }

    pub(super) fn note(&mut self, map_page: u32, dirty: bool) {
        self.waiting.note(map_page, dirty);
    }

    pub(super) fn fits(&self, shape: &Shape) -> bool {
        self.waiting.fits(shape)
    }
}

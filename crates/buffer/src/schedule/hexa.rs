//! `hexa`: writes of mapping pages that are dirty already, then of those with most buffered writes.
//!
//! Hexa (section IV) keeps a zero-cost list of the mapping pages that are dirty and have buffered
//! writes, and a max-heap of the others by number of buffered writes. It writes out in batches, as
//! much as the flash chips can be programmed with at once: the writes of a batch are chosen
//! together, and what arrives meanwhile waits for the next.
//!
//! The paper leaves open which of two pages with as many writes comes first. Here it is the one
//! whose oldest buffered write came first. The zero-cost list is in the order in which pages came to
//! cost nothing.

use leyden_nand::Lpn;
use leyden_sim::{Links, List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::by_map_page::{ByMapPage, ZeroCost};
use super::fifo::FifoQueue;
use crate::SlotId;

/// Batches of writes: of dirty mapping pages first, then of those with most buffered writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hexa {}

/// Mapping pages in the order in which they came to cost nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ZeroCostList {
    links: Links,
    list: List,
}

impl ZeroCost for ZeroCostList {
    fn set(&mut self, page: u32, _oldest: u64) {
        if !self.links.contains(page) {
            self.links.push_back(&mut self.list, page);
        }
    }

    fn remove(&mut self, page: u32) {
        if self.links.contains(page) {
            self.links.remove(&mut self.list, page);
        }
    }

    fn first(&self) -> Option<u32> {
        self.list.first()
    }

    fn fits(&self, pages: u32) -> bool {
        self.links.len() == pages
    }
}

/// Writes by mapping page, and the batch that is being written out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HexaQueue {
    waiting: ByMapPage<ZeroCostList>,
    /// The rest of the batch; for the mapping table these slots are taken.
    batch: FifoQueue,
    /// The logical page of each slot, and whether it is in the batch.
    slots: Vec<(Lpn, bool)>,
    batch_units: u32,
}

impl HexaQueue {
    pub(super) fn new(shape: &Shape) -> Self {
        let list = ZeroCostList { links: Links::new(shape.mapping_pages), list: List::default() };
        Self {
            waiting: ByMapPage::new(shape, list),
            batch: FifoQueue::new(shape.slots),
            slots: vec![(Lpn(0), false); shape.slots as usize],
            batch_units: shape.batch_units,
        }
    }

    #[inline(never)]
    pub(super) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        self.slots[slot.index()] = (lpn, false);
        self.waiting.push(slot, lpn);
    }

    #[inline(never)]
    pub(super) fn remove(&mut self, slot: SlotId) {
        let (lpn, batched) = self.slots[slot.index()];
        if batched {
            self.leave_batch(slot);
            self.waiting.settled(lpn);
        } else {
            self.waiting.remove(slot);
        }
    }

    pub(super) fn take(&mut self, slot: SlotId) {
        if self.slots[slot.index()].1 {
            self.leave_batch(slot);
        } else {
            self.waiting.take(slot);
        }
    }

    #[inline(never)]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        if let Some(slot) = self.batch.pop() {
            self.slots[slot.index()].1 = false;
            return Some(slot);
        }
        let first = self.waiting.take_cheapest()?;
        for _ in 1..self.batch_units {
            let Some(slot) = self.waiting.take_cheapest() else { break };
            self.slots[slot.index()].1 = true;
            self.batch.push(slot);
        }
        Some(first)
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
            && self.batch.fits(shape.slots)
            && self.slots.len() == shape.slots as usize
            && self.batch_units == shape.batch_units
    }

    fn leave_batch(&mut self, slot: SlotId) {
        self.batch.remove(slot);
        self.slots[slot.index()].1 = false;
    }
}

//! Which buffered data goes to flash next.
//!
//! A schedule orders the dirty slots. It knows the logical page of each, which pages of the mapping
//! table are dirty, and which slots are on their way; it sees no time, no die and no data.

mod by_map_page;
pub mod dawid;
pub mod fifo;
pub mod harvest;
mod heap;
pub mod hexa;
mod lists;
#[cfg(test)]
mod twin;

use leyden_nand::Lpn;
use serde::{Deserialize, Serialize};

use crate::SlotId;
#[cfg(test)]
pub(crate) use twin::SlowSchedule;

leyden_sim::policies! {
    /// Which buffered data goes to flash next.
    pub enum ScheduleConfig {
        /// In order of arrival; an overwrite of buffered data keeps the place of the first.
        Fifo(fifo::Fifo) = "fifo",
        /// Writes whose mapping page is dirty already, then those of the page with most; in batches.
        /// Hexa: a zero-cost list, then a max-heap by buffered writes per mapping page, decided for
        /// one page per die at a time.
        Hexa(hexa::Hexa) = "hexa",
        /// Always the write that adds least to the dirty pages of the mapping table.
        /// Dawid: the cost of a write is 0 if its mapping page is dirty, else 1 / (buffered writes of
        /// that page), computed for every write.
        Dawid(dawid::Dawid) = "dawid",
        /// All buffered writes of one mapping page, then all of the next; overwritten pages stay. Beyond the
        /// papers: the page of the oldest write first, but sequential data (a log) before all unless it
        /// returns while it is buffered, and pages of which more is overwritten than of others a turn later.
        /// Writes mapping
        /// pages as seldom as `hexa`, without its cost in garbage collection, and keeps hot data
        /// buffered for longer.
        Harvest(harvest::Harvest) = "harvest",
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Fifo {})
    }
}

/// The sizes that a schedule must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Slots of the buffer.
    pub slots: u32,
    /// Pages of the mapping table.
    pub mapping_pages: u32,
    /// Logical pages that a mapping page holds the entries of.
    pub entries_per_mapping_page: u32,
    /// Slots that the dies can be programmed with at once: one page on each.
    pub batch_units: u32,
    /// No mapping page is ever written back for the host's writes: all of them cost nothing (Hexa, section III).
    pub is_table_protected: bool,
}

/// The dirty slots in the order of a policy. An enum and not a trait object: called per unit. With a tag of its own: one
/// hidden in a field's unused values takes longer to read.
#[repr(u8)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Schedule {
    Fifo(fifo::FifoQueue),
    Hexa(hexa::HexaQueue),
    Dawid(dawid::DawidQueue),
    Harvest(harvest::HarvestQueue),
}

impl Schedule {
    pub(crate) fn new(config: &ScheduleConfig, shape: &Shape) -> Self {
        match config {
            ScheduleConfig::Fifo(_) => Self::Fifo(fifo::FifoQueue::new(shape.slots)),
            ScheduleConfig::Hexa(_) => Self::Hexa(hexa::HexaQueue::new(shape)),
            ScheduleConfig::Dawid(_) => Self::Dawid(dawid::DawidQueue::new(shape)),
            ScheduleConfig::Harvest(_) => Self::Harvest(harvest::HarvestQueue::new(shape)),
        }
    }

    /// Adds a slot that has become dirty.
    #[inline(always)]
    pub(crate) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        match self {
            Self::Fifo(queue) => queue.push(slot),
            Self::Hexa(queue) => queue.push(slot, lpn),
            Self::Dawid(queue) => queue.push(slot, lpn),
            Self::Harvest(queue) => queue.push(slot, lpn),
        }
    }

    /// The data of a slot that has not been popped or taken was replaced by newer data.
    #[inline]
    pub(crate) fn overwritten(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(_) | Self::Hexa(_) | Self::Dawid(_) => {}
            Self::Harvest(queue) => queue.overwritten(slot),
        }
    }

    /// Takes out a slot that need not be written any more.
    #[inline]
    pub(crate) fn remove(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(queue) => queue.remove(slot),
            Self::Hexa(queue) => queue.remove(slot),
            Self::Dawid(queue) => queue.remove(slot),
            Self::Harvest(queue) => queue.remove(slot),
        }
    }

    /// Takes up to `count` slots to write next. [`Schedule::settled`] follows for each.
    #[inline(always)]
    pub(crate) fn pop(&mut self, count: usize, to: &mut Vec<SlotId>) {
        match self {
            Self::Fifo(queue) => take(count, to, || queue.pop()),
            Self::Hexa(queue) => take(count, to, || queue.pop()),
            Self::Dawid(queue) => take(count, to, || queue.pop()),
            Self::Harvest(queue) => take(count, to, || queue.pop()),
        }
    }

    /// Calls `each` with the slots that will be popped next, about `count` of them, if the schedule knows any.
    #[inline]
    pub(crate) fn each_ahead(&self, count: u32, each: impl FnMut(SlotId)) {
        match self {
            Self::Fifo(queue) => queue.ahead(count).for_each(each),
            Self::Hexa(_) | Self::Dawid(_) | Self::Harvest(_) => {}
        }
    }

    /// Takes a slot that is written before its turn. [`Schedule::settled`] follows.
    pub(crate) fn take(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(queue) => queue.remove(slot),
            Self::Hexa(queue) => queue.take(slot),
            Self::Dawid(queue) => queue.take(slot),
            Self::Harvest(queue) => queue.remove(slot),
        }
    }

    /// A slot that was popped or taken, of `lpn`, is free again: on flash, or dropped.
    #[inline(always)]
    pub(crate) fn settled(&mut self, lpn: Lpn) {
        match self {
            Self::Fifo(_) | Self::Harvest(_) => {}
            Self::Hexa(queue) => queue.settled(lpn),
            Self::Dawid(queue) => queue.settled(lpn),
        }
    }

    /// A page of the mapping table has become dirty.
    #[inline]
    pub(crate) fn map_page_dirty(&mut self, page: u32) {
        match self {
            Self::Fifo(_) | Self::Harvest(_) => {}
            Self::Hexa(queue) => queue.note(page, true),
            Self::Dawid(queue) => queue.note(page, true),
        }
    }

    /// A page of the mapping table has become clean.
    #[inline]
    pub(crate) fn map_page_clean(&mut self, page: u32) {
        match self {
            Self::Fifo(_) | Self::Harvest(_) => {}
            Self::Hexa(queue) => queue.note(page, false),
            Self::Dawid(queue) => queue.note(page, false),
        }
    }

    /// True if its arrays have the sizes in `shape`.
    pub(crate) fn fits(&self, shape: &Shape) -> bool {
        match self {
            Self::Fifo(queue) => queue.fits(shape.slots),
            Self::Hexa(queue) => queue.fits(shape),
            Self::Dawid(queue) => queue.fits(shape),
            Self::Harvest(queue) => queue.fits(shape),
        }
    }
}

/// Adds up to `count` of what `next` yields to `to`.
// A loop: an iterator's adapters cost the simulator more.
#[inline(always)]
fn take(count: usize, to: &mut Vec<SlotId>, mut next: impl FnMut() -> Option<SlotId>) {
    let end = to.len() + count;
    while to.len() < end
        && let Some(slot) = next()
    {
        to.push(slot);
    }
}

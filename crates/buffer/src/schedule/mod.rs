//! Which buffered data goes to flash next.

pub mod fifo;

use serde::{Deserialize, Serialize};

use crate::SlotId;

leyden_sim::policies! {
    /// Which buffered data goes to flash next.
    pub enum ScheduleConfig {
        /// In order of arrival; an overwrite of buffered data keeps the place of the first.
        Fifo(fifo::Fifo) = "fifo",
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Fifo {})
    }
}

/// The dirty slots in the order of a policy. An enum and not a trait object: called per unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Schedule {
    Fifo(fifo::FifoQueue),
}

impl Schedule {
    pub(crate) fn new(config: &ScheduleConfig, slots: u32) -> Self {
        match config {
            ScheduleConfig::Fifo(_) => Self::Fifo(fifo::FifoQueue::new(slots)),
        }
    }

    /// Adds a slot that has become dirty.
    #[inline]
    pub(crate) fn push(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(queue) => queue.push(slot),
        }
    }

    /// Takes out a slot that is dirty no more.
    #[inline]
    pub(crate) fn remove(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(queue) => queue.remove(slot),
        }
    }

    /// Takes the slot to write next.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<SlotId> {
        match self {
            Self::Fifo(queue) => queue.pop(),
        }
    }

    pub(crate) fn fits(&self, slots: u32) -> bool {
        match self {
            Self::Fifo(queue) => queue.fits(slots),
        }
    }
}

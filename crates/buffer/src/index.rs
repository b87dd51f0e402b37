//! Finds the buffered version of a logical page.

use leyden_nand::Lpn;
use leyden_sim::SlotEntry;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// From LPN to slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SlotIndex(leyden_sim::SlotIndex);

impl SlotIndex {
    pub(crate) fn new(slots: u32) -> Self {
        Self(leyden_sim::SlotIndex::new(slots))
    }

    #[inline]
    pub(crate) fn get(&self, lpn: Lpn) -> Option<SlotId> {
        self.0.get(lpn.0).map(SlotId)
    }

    #[inline]
    pub(crate) fn expect(&self, lpn: Lpn) {
        self.0.expect(lpn.0);
    }

    /// The place of `lpn`, to look at it and then to change it.
    #[inline]
    pub(crate) fn entry(&mut self, lpn: Lpn) -> SlotEntry<'_> {
        self.0.entry(lpn.0)
    }

    /// Forgets `lpn`, which is there.
    #[inline]
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        self.0.remove(lpn.0);
    }

    pub(crate) fn fits(&self, slots: u32) -> bool {
        self.0.fits(slots)
    }
}

//! Finds the buffered version of a logical page.

use leyden_nand::Lpn;
use leyden_sim::SlotEntry;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// Places for each slot. A buffer is full most of the time, and its index is asked thrice for each unit written:
/// with two places a write cost 9 % more processor time (`bench/limits/compare`).
const PLACES_PER_SLOT: u32 = 8;

/// From LPN to slot.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SlotIndex(leyden_sim::SlotIndex);

impl SlotIndex {
    pub(crate) fn new(slots: u32) -> Self {
        Self(leyden_sim::SlotIndex::with_places(slots, PLACES_PER_SLOT))
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
        self.0.fits(slots, PLACES_PER_SLOT)
    }
}

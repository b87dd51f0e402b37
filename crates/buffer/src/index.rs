//! Finds the buffered version of a logical page.

use leyden_nand::Lpn;
use leyden_sim::SlotEntry;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// Places, as a multiple of a plain index's. A buffer is full most of the time, and its index is asked thrice for each unit
/// written: plain, a write cost 9 % more processor time (`bench/limits/compare`).
const TIMES: usize = 4;

/// From LPN to slot. Saved as a plain index, as the first images have it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "leyden_sim::SlotIndex", into = "leyden_sim::SlotIndex")]
pub(crate) struct SlotIndex(leyden_sim::SlotIndex);

impl From<leyden_sim::SlotIndex> for SlotIndex {
    fn from(plain: leyden_sim::SlotIndex) -> Self {
        Self(plain.spread(TIMES))
    }
}

impl From<SlotIndex> for leyden_sim::SlotIndex {
    fn from(index: SlotIndex) -> Self {
        index.0.packed(TIMES)
    }
}

impl SlotIndex {
    pub(crate) fn new(slots: u32) -> Self {
        leyden_sim::SlotIndex::new(slots).into()
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
    #[inline(always)]
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        self.0.remove(lpn.0);
    }

    pub(crate) fn fits(&self, slots: u32) -> bool {
        self.0.fits(slots, TIMES)
    }
}

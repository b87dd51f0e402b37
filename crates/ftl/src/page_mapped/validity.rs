//! Which units are valid: one bit each, outside the flash.

use leyden_nand::{BlockId, Geometry, Ppa};
use serde::{Deserialize, Serialize};

/// A bit per physical unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Validity {
    words: Vec<u64>,
}

impl Validity {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { words: vec![0; geometry.units().div_ceil(64) as usize] }
    }

    #[inline]
    pub(crate) fn get(&self, unit: Ppa) -> bool {
        self.words[unit.index() / 64] >> (unit.0 % 64) & 1 != 0
    }

    /// Sets a bit that is clear.
    #[inline]
    pub(crate) fn set(&mut self, unit: Ppa) {
        debug_assert!(!self.get(unit), "{unit:?} is valid already");
        self.words[unit.index() / 64] |= 1 << (unit.0 % 64);
    }

    /// Clears every bit.
    pub(crate) fn clear_all(&mut self) {
        self.words.fill(0);
    }

    /// Clears a bit that is set.
    #[inline]
    pub(crate) fn clear(&mut self, unit: Ppa) {
        debug_assert!(self.get(unit), "{unit:?} is not valid");
        self.words[unit.index() / 64] &= !(1 << (unit.0 % 64));
    }

    /// The valid units among the `count` ones from `first` on.
    #[inline]
    pub(crate) fn valid_in(&self, first: Ppa, count: u32) -> impl Iterator<Item = Ppa> + '_ {
        (first.0..first.0 + count).map(Ppa).filter(|&unit| self.get(unit))
    }

    /// How many units of `block` are valid.
    pub(crate) fn count(&self, geometry: &Geometry, block: BlockId) -> u32 {
        self.valid_in(geometry.first_unit_of_block(block), geometry.units_per_block()).count()
            as u32
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        self.words.len() == geometry.units().div_ceil(64) as usize
    }
}

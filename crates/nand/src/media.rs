//! What is stored: the out-of-band area and the content of every mapping unit.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{BlockId, Geometry, Lpn, Ppa};

/// What a mapping unit stores besides its OOB entry.
pub trait Content:
    Copy + Default + Debug + PartialEq + Serialize + DeserializeOwned + 'static
{
}

/// The cells. `C` is what a unit stores; a zero-sized type costs nothing.
///
/// The OOB entry of a unit is 4 bytes on flash and here: the LPN of the data plus one, or 0 where
/// nothing was written (a padded or erased unit).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct Media<C> {
    oob: Vec<u32>,
    content: Vec<C>,
}

impl<C: Content> Media<C> {
    /// Erased cells. The memory is only touched as it is written.
    pub fn new(geometry: &Geometry) -> Self {
        let units = geometry.units() as usize;
        Self { oob: vec![0; units], content: vec![C::default(); units] }
    }

    /// Which logical page the unit's data belongs to; `None` if the unit is erased or padding.
    #[inline]
    pub fn lpn(&self, unit: Ppa) -> Option<Lpn> {
        self.oob[unit.index()].checked_sub(1).map(Lpn)
    }

    /// The unit's data.
    #[inline]
    pub fn content(&self, unit: Ppa) -> C {
        self.content[unit.index()]
    }

    /// Stores a unit.
    #[inline]
    pub fn write(&mut self, unit: Ppa, lpn: Lpn, content: C) {
        self.oob[unit.index()] = lpn.0 + 1;
        if size_of::<C>() > 0 {
            self.content[unit.index()] = content;
        }
    }

    /// Stores nothing: padding.
    #[inline]
    pub fn pad(&mut self, unit: Ppa) {
        self.oob[unit.index()] = 0;
    }

    /// Forgets a block's data.
    pub fn erase(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.first_unit_of_block(block).index();
        self.oob[first..][..geometry.units_per_block() as usize].fill(0);
    }

    /// Bytes of memory for these cells.
    pub fn memory_bytes(&self) -> u64 {
        (self.oob.len() * 4 + size_of_val(self.content.as_slice())) as u64
    }

    /// True if this was made for `geometry`.
    pub fn fits(&self, geometry: &Geometry) -> bool {
        self.oob.len() == geometry.units() as usize && self.content.len() == self.oob.len()
    }
}

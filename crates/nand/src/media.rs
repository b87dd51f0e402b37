//! What is stored: the out-of-band area and the content of every mapping unit.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{BlockId, Geometry, Lpn, Ppa};

/// What a mapping unit stores besides its OOB entry. Garbage collection clones it.
pub trait Content:
    Clone + Default + Debug + PartialEq + Serialize + DeserializeOwned + 'static
{
}

/// The cells. `C` is what a unit stores; a zero-sized type costs nothing.
///
/// The OOB entry of a unit names its owner: the LPN of the data plus one, or [`MAP_PAGE`] and the
/// number of a mapping page, or 0 where nothing can be read (an erased, padded or torn unit). On a
/// drive whose recovery may have to find data by it, an entry also holds the data's *version*: the
/// order in which the host's writes were programmed, which a copy keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct Media<C> {
    oob: Vec<u32>,
    /// Empty unless recovery may need them.
    versions: Vec<u64>,
    content: Vec<C>,
}

/// Marks the OOB entry of a mapping page: LPNs have 31 bits.
const MAP_PAGE: u32 = 1 << 31;

impl<C: Content> Media<C> {
    /// Erased cells. The memory is only touched as it is written.
    pub fn new(geometry: &Geometry, with_versions: bool) -> Self {
        let units = geometry.units() as usize;
        Self {
            oob: vec![0; units],
            versions: vec![0; if with_versions { units } else { 0 }],
            content: vec![C::default(); units],
        }
    }

    /// Which logical page the unit's data belongs to; `None` if it holds no data of the host's.
    #[inline]
    pub fn lpn(&self, unit: Ppa) -> Option<Lpn> {
        let owner = self.oob[unit.index()];
        if owner & MAP_PAGE != 0 {
            return None;
        }
        owner.checked_sub(1).map(Lpn)
    }

    /// The number of the mapping page that the unit is part of, if it is.
    #[inline]
    pub fn map_page(&self, unit: Ppa) -> Option<u32> {
        let owner = self.oob[unit.index()];
        (owner & MAP_PAGE != 0).then_some(owner & !MAP_PAGE)
    }

    /// True if versions are kept.
    pub fn has_versions(&self) -> bool {
        !self.versions.is_empty()
    }

    /// The version of the unit's data; 0 if versions are not kept.
    #[inline]
    pub fn version(&self, unit: Ppa) -> u64 {
        self.versions.get(unit.index()).copied().unwrap_or(0)
    }

    /// The unit's data.
    #[inline]
    pub fn content(&self, unit: Ppa) -> C {
        self.content[unit.index()].clone()
    }

    /// Stores a unit.
    #[inline]
    pub fn write(&mut self, unit: Ppa, lpn: Lpn, version: u64, content: C) {
        self.oob[unit.index()] = lpn.0 + 1;
        if let Some(slot) = self.versions.get_mut(unit.index()) {
            *slot = version;
        }
        if size_of::<C>() > 0 {
            self.content[unit.index()] = content;
        }
    }

    /// Stores part of mapping page `page`.
    #[inline]
    pub fn write_map_page(&mut self, unit: Ppa, page: u32) {
        self.oob[unit.index()] = page | MAP_PAGE;
    }

    /// Stores nothing that can be read: padding, or what a failed program left.
    #[inline]
    pub fn pad(&mut self, unit: Ppa) {
        self.oob[unit.index()] = 0;
        self.spoil(unit);
    }

    /// Makes the unit's data unreadable; its out-of-band area stays.
    #[inline]
    pub fn spoil(&mut self, unit: Ppa) {
        if size_of::<C>() > 0 {
            self.content[unit.index()] = C::default();
        }
    }

    /// Forgets a block's data.
    pub fn erase(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.first_unit_of_block(block).index();
        let units = geometry.units_per_block() as usize;
        self.oob[first..][..units].fill(0);
        if size_of::<C>() > 0 {
            self.content[first..][..units].fill(C::default());
        }
    }

    /// Bytes of memory for these cells.
    pub fn memory_bytes(&self) -> u64 {
        (self.oob.len() * 4 + self.versions.len() * 8 + size_of_val(self.content.as_slice())) as u64
    }

    /// True if this was made for `geometry`.
    pub fn fits(&self, geometry: &Geometry, with_versions: bool) -> bool {
        self.oob.len() == geometry.units() as usize
            && self.content.len() == self.oob.len()
            && self.versions.len() == if with_versions { self.oob.len() } else { 0 }
    }
}

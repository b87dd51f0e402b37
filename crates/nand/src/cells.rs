//! What mapping units store: the out-of-band area and the content of each.

use std::fmt::Debug;

use leyden_sim::prefetch;
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
/// The OOB entry of a unit names its owner: the LPN of the data plus one, or 0 where no data of the
/// host's can be read (an erased, padded or torn unit, or a page of the drive's own). On a drive whose
/// recovery may have to find data by it, an entry also holds the data's *version*: the order in which
/// the host's writes were programmed, which a copy keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub(crate) struct Cells<C> {
    owners: Vec<u32>,
    /// Empty unless recovery may need them.
    versions: Vec<u64>,
    content: Vec<C>,
}

impl<C: Content> Cells<C> {
    /// Erased cells. The memory is only touched as it is written.
    pub(crate) fn new(geometry: &Geometry, with_versions: bool) -> Self {
        let units = geometry.units() as usize;
        Self {
            owners: vec![0; units],
            versions: vec![0; if with_versions { units } else { 0 }],
            content: vec![C::default(); units],
        }
    }

    #[inline]
    pub(crate) fn lpn(&self, unit: Ppa) -> Option<Lpn> {
        self.owners[unit.index()].checked_sub(1).map(Lpn)
    }

    /// Brings the owner of `unit` near.
    #[inline]
    pub(crate) fn expect_lpn(&self, unit: Ppa) {
        prefetch(&self.owners, unit.index());
    }

    pub(crate) fn has_versions(&self) -> bool {
        !self.versions.is_empty()
    }

    /// 0 if versions are not kept.
    #[inline]
    pub(crate) fn version(&self, unit: Ppa) -> u64 {
        self.versions.get(unit.index()).copied().unwrap_or(0)
    }

    /// What `count` units from `first` on hold, those that cannot be read any more included.
    pub(crate) fn contents(&self, first: Ppa, count: u32) -> impl Iterator<Item = &C> {
        self.content[first.index()..first.index() + count as usize].iter()
    }

    #[inline]
    pub(crate) fn content(&self, unit: Ppa) -> C {
        self.content[unit.index()].clone()
    }

    #[inline]
    pub(crate) fn write(&mut self, unit: Ppa, lpn: Lpn, version: u64, content: C) {
        self.owners[unit.index()] = lpn.0 + 1;
        if let Some(slot) = self.versions.get_mut(unit.index()) {
            *slot = version;
        }
        if size_of::<C>() > 0 {
            self.content[unit.index()] = content;
        }
    }

    /// Stores nothing that can be read: padding, or what a failed program left.
    #[inline]
    pub(crate) fn pad(&mut self, unit: Ppa) {
        self.owners[unit.index()] = 0;
        self.spoil(unit);
    }

    /// Makes the unit's data unreadable; its out-of-band area stays.
    #[inline]
    pub(crate) fn spoil(&mut self, unit: Ppa) {
        if size_of::<C>() > 0 {
            self.content[unit.index()] = C::default();
        }
    }

    pub(crate) fn erase(&mut self, geometry: &Geometry, block: BlockId) {
        let first = geometry.first_unit_of_block(block).index();
        let units = geometry.units_per_block() as usize;
        self.owners[first..][..units].fill(0);
        if size_of::<C>() > 0 {
            self.content[first..][..units].fill(C::default());
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let content = size_of_val(self.content.as_slice());
        (self.owners.len() * 4 + self.versions.len() * 8 + content) as u64
    }

    pub(crate) fn fits(&self, other: &Self) -> bool {
        self.owners.len() == other.owners.len()
            && self.content.len() == other.content.len()
            && self.versions.len() == other.versions.len()
    }
}

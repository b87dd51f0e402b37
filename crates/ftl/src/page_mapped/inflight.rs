//! Programs on their way: what each page will hold, until its program ends.

use crate::map::SavedPage;

use super::ProgramCause;

/// Where the units of each page in flight come from. Fixed-size entries in one flat array: no
/// allocation per program once as many are in flight as ever will be.
#[derive(Clone, Debug)]
pub(crate) struct Inflight {
    units_per_page: usize,
    /// `units_per_page` words per entry; [`NOTHING`] for padding. A mapping page's number comes first.
    sources: Vec<u32>,
    causes: Vec<ProgramCause>,
    /// The version of the data; [`NO_VERSION`] for what has none, and for entries not in use.
    versions: Vec<u64>,
    /// What a mapping page will hold.
    saved: Vec<Option<SavedPage>>,
    free: Vec<u32>,
}

/// The source of a padded unit.
pub(crate) const NOTHING: u32 = u32::MAX;
/// The version of what is not data that the host has just written.
pub(crate) const NO_VERSION: u64 = u64::MAX;

impl Inflight {
    pub(crate) fn new(units_per_page: u32) -> Self {
        Self {
            units_per_page: units_per_page as usize,
            sources: Vec::new(),
            causes: Vec::new(),
            versions: Vec::new(),
            saved: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A new entry, all padding.
    #[inline]
    pub(crate) fn insert(&mut self, cause: ProgramCause, version: u64) -> u32 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.causes.push(cause);
            self.versions.push(version);
            self.saved.push(None);
            self.sources.extend(std::iter::repeat_n(NOTHING, self.units_per_page));
            self.causes.len() as u32 - 1
        });
        self.causes[tag as usize] = cause;
        self.versions[tag as usize] = version;
        self.sources_mut(tag).fill(NOTHING);
        tag
    }

    #[inline]
    pub(crate) fn cause(&self, tag: u32) -> ProgramCause {
        self.causes[tag as usize]
    }

    #[inline]
    pub(crate) fn source(&self, tag: u32, unit: u32) -> u32 {
        self.sources[tag as usize * self.units_per_page + unit as usize]
    }

    #[inline]
    pub(crate) fn sources_mut(&mut self, tag: u32) -> &mut [u32] {
        &mut self.sources[tag as usize * self.units_per_page..][..self.units_per_page]
    }

    pub(crate) fn set_saved(&mut self, tag: u32, saved: SavedPage) {
        self.saved[tag as usize] = Some(saved);
    }

    pub(crate) fn take_saved(&mut self, tag: u32) -> Option<SavedPage> {
        self.saved[tag as usize].take()
    }

    /// The oldest version on its way, if any.
    pub(crate) fn oldest_version(&self) -> Option<u64> {
        self.versions.iter().copied().filter(|&version| version != NO_VERSION).min()
    }

    #[inline]
    pub(crate) fn remove(&mut self, tag: u32) {
        self.versions[tag as usize] = NO_VERSION;
        self.free.push(tag);
    }

    /// Forgets everything: the power is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.units_per_page as u32);
    }

    /// True if nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.causes.len()
    }
}

//! Programs on their way: what each page will hold, until its program ends.

/// Why a page is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramCause {
    /// Data the host wrote.
    User,
    /// Data that garbage collection copies.
    Gc,
    /// A mapping page that is written back.
    Map,
    /// A mapping page that garbage collection moves.
    GcMap,
    /// A page of the mapping table's journal.
    Journal,
}

/// Where the units of each page in flight come from. Fixed-size entries in one flat array: no
/// allocation per program once as many are in flight as ever will be.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    units_per_page: usize,
    /// `units_per_page` words per entry, as many of them in use as the entry has sources.
    sources: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
}

/// A program on its way, or an entry not in use.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The version of the data: [`NO_VERSION`] for what has none, and for entries not in use.
    version: u64,
    /// How many units have a source: the first ones. A page of the drive's own has its number first.
    units: u32,
    cause: ProgramCause,
}

/// The version of pages that hold no new data of the host's.
pub(super) const NO_VERSION: u64 = u64::MAX;

impl Programs {
    pub(super) fn new(units_per_page: u32) -> Self {
        Self {
            units_per_page: units_per_page as usize,
            sources: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A new entry of `units` units, no more than a page has, and the places of their sources, which the caller fills in; the
    /// rest is padding.
    #[inline]
    pub(super) fn insert(
        &mut self,
        cause: ProgramCause,
        version: u64,
        units: usize,
    ) -> (u32, &mut [u32]) {
        let tag = self.free.pop().unwrap_or_else(|| self.grow());
        self.entries[tag as usize] = Entry { version, units: units as u32, cause };
        (tag, &mut self.sources[tag as usize * self.units_per_page..][..units])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        let unused = Entry { version: NO_VERSION, units: 0, cause: ProgramCause::User };
        self.entries.push(unused);
        self.sources.resize(self.entries.len() * self.units_per_page, 0);
        self.entries.len() as u32 - 1
    }

    #[inline]
    pub(super) fn cause(&self, tag: u32) -> ProgramCause {
        self.entries[tag as usize].cause
    }

    /// Where unit `unit` comes from, one of those that are not padding.
    #[inline]
    pub(super) fn source(&self, tag: u32, unit: u32) -> u32 {
        debug_assert!(unit < self.units(tag), "padding comes from nowhere");
        self.sources[tag as usize * self.units_per_page + unit as usize]
    }

    /// Where its units come from, but for padding.
    #[inline]
    pub(super) fn sources(&self, tag: u32) -> &[u32] {
        &self.sources[tag as usize * self.units_per_page..][..self.units(tag) as usize]
    }

    /// How many units of the page are not padding.
    #[inline]
    pub(super) fn units(&self, tag: u32) -> u32 {
        self.entries[tag as usize].units
    }

    /// The oldest version on its way, if any.
    pub(super) fn oldest_version(&self) -> Option<u64> {
        let versions = self.entries.iter().map(|entry| entry.version);
        versions.filter(|&version| version != NO_VERSION).min()
    }

    /// Lets go of an entry.
    #[inline]
    pub(super) fn remove(&mut self, tag: u32) {
        self.entries[tag as usize].version = NO_VERSION;
        self.free.push(tag);
    }

    /// True if nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}

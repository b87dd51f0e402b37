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
    /// `units_per_page` words per entry; [`NOTHING`] for padding. A page of the drive's own has its number
    /// first.
    sources: Vec<u32>,
    /// Why, and the version of the data: [`NO_VERSION`] for what has none, and for entries not in use.
    entries: Vec<(ProgramCause, u64)>,
    free: Vec<u32>,
}

/// The source of a padded unit.
const NOTHING: u32 = u32::MAX;
/// The version of what is not data that the host has just written.
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

    /// A new entry, all padding.
    #[inline]
    pub(super) fn insert(&mut self, cause: ProgramCause, version: u64) -> u32 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.entries.push((cause, version));
            self.sources.extend(std::iter::repeat_n(NOTHING, self.units_per_page));
            self.entries.len() as u32 - 1
        });
        self.entries[tag as usize] = (cause, version);
        tag
    }

    #[inline]
    pub(super) fn cause(&self, tag: u32) -> ProgramCause {
        self.entries[tag as usize].0
    }

    /// Where unit `unit` comes from; `None` for padding.
    #[inline]
    pub(super) fn source(&self, tag: u32, unit: u32) -> Option<u32> {
        let source = self.sources[tag as usize * self.units_per_page + unit as usize];
        (source != NOTHING).then_some(source)
    }

    #[inline]
    pub(super) fn set_source(&mut self, tag: u32, unit: u32, source: u32) {
        self.sources[tag as usize * self.units_per_page + unit as usize] = source;
    }

    /// How many units of the page are not padding.
    pub(super) fn units(&self, tag: u32) -> u32 {
        (0..self.units_per_page as u32).filter(|&unit| self.source(tag, unit).is_some()).count()
            as u32
    }

    /// The oldest version on its way, if any.
    pub(super) fn oldest_version(&self) -> Option<u64> {
        self.entries
            .iter()
            .map(|&(_, version)| version)
            .filter(|&version| version != NO_VERSION)
            .min()
    }

    /// Lets go of an entry.
    #[inline]
    pub(super) fn remove(&mut self, tag: u32) {
        self.entries[tag as usize].1 = NO_VERSION;
        self.sources[tag as usize * self.units_per_page..][..self.units_per_page].fill(NOTHING);
        self.free.push(tag);
    }

    /// True if nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }
}

//! Programs on their way: what each page will hold, until its program ends.

/// Where the units of each page in flight come from. Fixed-size entries in one flat array: no
/// allocation per program once as many are in flight as ever will be.
#[derive(Clone, Debug)]
pub(crate) struct Inflight {
    units_per_page: usize,
    /// `units_per_page` words per entry; [`NOTHING`] for padding.
    sources: Vec<u32>,
    causes: Vec<super::ProgramCause>,
    free: Vec<u32>,
}

/// The source of a padded unit.
pub(crate) const NOTHING: u32 = u32::MAX;

impl Inflight {
    pub(crate) fn new(units_per_page: u32) -> Self {
        Self {
            units_per_page: units_per_page as usize,
            sources: Vec::new(),
            causes: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A new entry, all padding.
    #[inline]
    pub(crate) fn insert(&mut self, cause: super::ProgramCause) -> u32 {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.causes.push(cause);
            self.sources.extend(std::iter::repeat_n(NOTHING, self.units_per_page));
            self.causes.len() as u32 - 1
        });
        self.causes[tag as usize] = cause;
        self.sources_mut(tag).fill(NOTHING);
        tag
    }

    #[inline]
    pub(crate) fn cause(&self, tag: u32) -> super::ProgramCause {
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

    #[inline]
    pub(crate) fn remove(&mut self, tag: u32) {
        self.free.push(tag);
    }

    /// True if nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.causes.len()
    }
}

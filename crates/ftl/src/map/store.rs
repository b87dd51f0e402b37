//! Which mapping pages must go to flash, and where they lie there.

use leyden_nand::{Geometry, Lpn, Ppa, Ppn};
use serde::{Deserialize, Serialize};

use super::dirty::DirtySet;
use super::{MapLog, MapPage, ProtectionConfig, Record};
use crate::{Copies, MapConfig};
use leyden_sim::{Level, Ratio, counters};

counters! {
    /// Counters of the store.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct MapStats {
        /// Changes of an entry.
        pub updates: u64,
        /// Of those, to a page that was dirty already.
        pub hits: u64,
        /// The most pages dirty at once.
        pub dirty_peak: Level,
        /// Mapping pages written because of the limit.
        pub writebacks: u64,
        /// Mapping pages moved by garbage collection.
        pub copies: u64,
        /// Pages of the journal written.
        pub journal_pages: u64,
    }
}

/// The changes that make a mapping page dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Nothing: no page is written while the power is on.
    Off,
    /// Every change of an entry.
    Changes,
    /// Every change of an entry, and the journal has them all: there is no limit.
    Logged,
    /// Trims only: recovery finds everything else in the out-of-band areas.
    Trims,
}

/// The mapping pages of a table: which are dirty, which wait to be written, where they lie.
///
/// "Dirty" means that flash does not hold the newest entries, and no program of them is in flight.
/// A page handed to a die counts no more; there is at most one on each die.
#[derive(Clone, Debug)]
pub struct MapStore {
    mode: Mode,
    copies: Copies,
    limit: u32,
    dirty: DirtySet,
    /// Pages asked to be written back, of those that are dirty.
    wanted: Vec<bool>,
    wanted_count: u32,
    /// Pages handed to a die.
    handed: Vec<bool>,
    /// Of those, the ones that were clean: they are only moved, and flash holds them meanwhile.
    moving: Vec<bool>,
    /// Where each lies, plus one; 0 if it was never written.
    places: Vec<u32>,
    /// Pages that have become dirty or clean, for schedules that follow them.
    changes: Vec<(MapPage, bool)>,
    watched: bool,
    /// A recovery has left more pages dirty than may be, and they are not written back yet.
    overfull: bool,
    log: Option<Box<MapLog>>,
    stats: MapStats,
}

/// The store's state at rest, to save and load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapStoreState {
    dirty: DirtySet,
    wanted: Vec<bool>,
    places: Vec<u32>,
    log: Option<Box<MapLog>>,
}

impl MapStore {
    /// The store of a table of `pages` mapping pages on flash of this shape. With `keep`, the records of
    /// a journal are kept, not just counted.
    pub fn new(config: &MapConfig, pages: u32, geometry: &Geometry, keep: bool) -> Self {
        let protection = &config.protection;
        let page_units = geometry.units_per_page(); // as many entries may change at once
        let log = match protection {
            ProtectionConfig::Journal(journal) => {
                Some(Box::new(MapLog::new(journal.shape(geometry, pages), pages, keep)))
            }
            _ => None,
        };
        let (mode, limit) = match protection {
            ProtectionConfig::Journal(_) => (Mode::Logged, pages),
            ProtectionConfig::Full(_) => (Mode::Off, pages),
            ProtectionConfig::Partial(partial) => {
                (Mode::Changes, Self::limit_of(partial.protected, pages, page_units))
            }
            ProtectionConfig::None(_) => (Mode::Trims, page_units.min(pages)),
        };
        let tracked = if mode == Mode::Off { 0 } else { pages as usize };
        Self {
            mode,
            copies: config.copies,
            limit,
            dirty: DirtySet::new(tracked as u32),
            wanted: vec![false; tracked],
            wanted_count: 0,
            handed: vec![false; tracked],
            moving: vec![false; tracked],
            places: vec![0; tracked],
            changes: Vec::new(),
            watched: false,
            overfull: false,
            log,
            stats: MapStats::default(),
        }
    }

    /// How many pages may be dirty if `protected` of `pages` are protected.
    pub fn limit_of(protected: Ratio, pages: u32, page_units: u32) -> u32 {
        (protected.of(u64::from(pages)) as u32).clamp(page_units.min(pages), pages)
    }

    /// How many pages may be dirty at once.
    pub const fn limit(&self) -> u32 {
        self.limit
    }
    /// How many pages capacitors protect: those that may be dirty at once; or, if the table's changes are
    /// logged, the pages of the journal that DRAM holds.
    pub fn protected(&self) -> u32 {
        self.log.as_ref().map_or(self.limit, |log| log.shape().dram_pages)
    }
    /// Pages dirty now.
    pub const fn dirty(&self) -> u32 {
        self.dirty.len()
    }
    /// True if pages are written while the power is on.
    pub const fn writes_back(&self) -> bool {
        !matches!(self.mode, Mode::Off)
    }
    /// True if only trims make pages dirty.
    pub const fn trims_only(&self) -> bool {
        matches!(self.mode, Mode::Trims)
    }
    /// The log of changes, if they are logged.
    pub fn log(&self) -> Option<&MapLog> {
        self.log.as_deref()
    }
    pub(crate) fn log_mut(&mut self) -> Option<&mut MapLog> {
        self.log.as_deref_mut()
    }
    /// True if recovery may look for data of `page` by a scan: what a trim has dropped must not be found
    /// then.
    pub fn may_be_scanned(&self, page: MapPage) -> bool {
        self.trims_only() || self.log().is_some_and(|log| log.is_scanned(page))
    }
    /// True if recovery would look for some pages' data by a scan, and take others' from the journal.
    pub fn is_searched(&self) -> bool {
        self.log().is_some_and(|log| log.scanned_pages().next().is_some())
    }
    /// The counters.
    pub const fn stats(&self) -> &MapStats {
        &self.stats
    }
    /// Goes on from the counters of the store before a power cut.
    pub(crate) fn count_on(&mut self, counted: MapStats) {
        self.stats = counted;
    }
    /// Starts to note which pages become dirty or clean.
    pub fn watch(&mut self) {
        self.watched = true;
    }
    /// Takes the notes, in order.
    pub fn take_changes(&mut self) -> impl Iterator<Item = (MapPage, bool)> + '_ {
        self.changes.drain(..)
    }
    /// True if there are notes to take.
    #[inline]
    pub const fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }
    /// True if `page` is dirty.
    #[inline]
    pub fn is_dirty(&self, page: MapPage) -> bool {
        self.mode != Mode::Off && self.dirty.contains(page)
    }
    /// The dirty pages, least recently used first.
    pub fn dirty_pages(&self) -> impl Iterator<Item = MapPage> + '_ {
        self.dirty.iter()
    }
    /// Where `page` lies on flash.
    #[inline]
    pub fn place(&self, page: MapPage) -> Option<Ppn> {
        self.places.get(page.index())?.checked_sub(1).map(Ppn)
    }
    /// True if `more` further pages may become dirty because entries change; or, if changes are logged,
    /// if the log has room for `more` of them.
    #[inline]
    pub fn has_room(&self, more: u32) -> bool {
        match self.mode {
            Mode::Changes => self.dirty.len() + more <= self.limit,
            Mode::Logged => self.log().is_none_or(|log| log.has_room(more)),
            Mode::Off | Mode::Trims => true,
        }
    }

    /// True if a trim may change `page`.
    pub fn may_trim(&self, page: MapPage) -> bool {
        match self.log() {
            // Pages found by a scan are on their way to flash already.
            Some(log) => log.has_room(1) && !log.is_scanned(page),
            None => {
                self.mode == Mode::Off || self.dirty.contains(page) || self.dirty.len() < self.limit
            }
        }
    }

    /// How many entries a trim may change at once, if it may.
    pub fn trim_room(&self) -> u32 {
        self.log().map_or(u32::MAX, MapLog::room)
    }

    /// Logs that an entry of `page` has changed. Returns the number of the journal's page that is full
    /// with that, if one is.
    #[inline]
    pub fn record(&mut self, page: MapPage, lpn: Lpn, unit: Option<Ppa>) -> Option<u64> {
        self.log.as_mut()?.append(page, Record { lpn, unit })
    }

    /// Asks for pages to be written back until the log is no longer than it should be; with `all`, until
    /// it is empty. Returns those that were not asked for before.
    pub fn make_log_shorter(&mut self, all: bool) -> Vec<MapPage> {
        let mut pages = self.log.as_mut().map_or_else(Vec::new, |log| log.due(all));
        pages.retain(|&page| self.want(page));
        pages
    }

    /// True if copies of garbage collection need not make pages dirty.
    pub const fn leaves_copies(&self) -> bool {
        matches!((self.mode, self.copies), (Mode::Changes, Copies::Deferred))
    }

    /// True if it matters to this store that a unit was mapped.
    #[inline]
    pub const fn follows_changes(&self) -> bool {
        matches!(self.mode, Mode::Changes | Mode::Logged)
    }

    /// An entry of `page` has changed: a unit of its range was mapped. True if the page has become
    /// dirty with that.
    #[inline]
    pub fn changed(&mut self, page: MapPage) -> bool {
        self.follows_changes() && self.touch(page)
    }

    /// Has `page`, which is not dirty, written back at once. There must be room for it.
    pub fn force(&mut self, page: MapPage) {
        self.dirty.use_page(page);
        self.note(page, true);
        self.want(page);
    }

    /// An entry of `page` was unmapped by a trim. True if that must be written back at once, and was
    /// not asked for before.
    pub fn trimmed(&mut self, page: MapPage) -> bool {
        if self.mode == Mode::Off {
            return false;
        }
        self.touch(page);
        self.mode == Mode::Trims && self.want(page)
    }

    /// The peak counts from here on.
    pub fn forget_peak(&mut self) {
        self.stats.dirty_peak = Level::new(self.dirty.len().into());
    }

    /// True if `page` has become dirty.
    fn touch(&mut self, page: MapPage) -> bool {
        self.stats.updates += 1;
        if self.dirty.use_page(page) {
            self.stats.hits += 1;
            return false;
        }
        self.stats.dirty_peak.raise_to(self.dirty.len());
        self.note(page, true);
        true
    }

    fn note(&mut self, page: MapPage, dirty: bool) {
        if self.watched {
            self.changes.push((page, dirty));
        }
    }

    /// Asks for pages to be written back until `more` further ones would have room, the least recently
    /// used first. Returns those that were not asked for before.
    pub fn make_room(&mut self, more: u32) -> Vec<MapPage> {
        let needed = (self.dirty.len() + more).saturating_sub(self.limit).min(self.dirty.len());
        let mut pages = Vec::new();
        if self.wanted_count >= needed {
            return pages;
        }
        let missing = (needed - self.wanted_count) as usize;
        pages.extend(self.dirty.iter().filter(|page| !self.wanted[page.index()]).take(missing));
        for &page in &pages {
            self.want(page);
        }
        pages
    }

    /// Asks for `page` to be written back. True if it was not asked for before.
    fn want(&mut self, page: MapPage) -> bool {
        let new = !std::mem::replace(&mut self.wanted[page.index()], true);
        self.wanted_count += u32::from(new);
        new
    }

    /// True if `page` is asked to be written back.
    pub fn is_wanted(&self, page: MapPage) -> bool {
        self.wanted[page.index()]
    }

    /// True if a die is writing `page`.
    pub fn is_handed(&self, page: MapPage) -> bool {
        self.handed[page.index()]
    }

    /// `page` as it is now is handed to a die: it is clean.
    pub fn hand_over(&mut self, page: MapPage, is_copy: bool) {
        if is_copy {
            self.stats.copies += 1;
        } else {
            self.stats.writebacks += 1;
        }
        self.handed[page.index()] = true;
        self.moving[page.index()] = self.log.is_none() && !self.dirty.contains(page);
        self.clean(page);
        if let Some(log) = &mut self.log {
            log.map_page_handed(page);
        }
    }

    fn clean(&mut self, page: MapPage) {
        if std::mem::take(&mut self.wanted[page.index()]) {
            self.wanted_count -= 1;
        }
        if self.dirty.remove(page) {
            self.note(page, false);
        }
        self.overfull &= self.dirty.len() > self.limit;
    }

    /// A page of the journal is handed to a die.
    pub(crate) fn count_journal_page(&mut self) {
        self.stats.journal_pages += 1;
    }

    /// `page` lies at `place` now. Returns where it lay before.
    pub fn written(&mut self, page: MapPage, place: Ppn) -> Option<Ppn> {
        self.handed[page.index()] = false;
        self.moving[page.index()] = false;
        if let Some(log) = &mut self.log {
            log.map_page_written(page);
        }
        std::mem::replace(&mut self.places[page.index()], place.0 + 1).checked_sub(1).map(Ppn)
    }

    /// True if a die is writing `page`, which flash holds elsewhere as it was then.
    pub fn is_moving(&self, page: MapPage) -> bool {
        self.moving[page.index()]
    }

    /// The program of `page` failed: it is dirty again, and to be written at once, unless it was only
    /// moved. True if it was.
    pub fn failed(&mut self, page: MapPage) -> bool {
        self.handed[page.index()] = false;
        if std::mem::take(&mut self.moving[page.index()]) {
            return true;
        }
        self.touch(page);
        self.want(page);
        if let Some(log) = &mut self.log {
            log.map_page_failed(page);
        }
        false
    }

    /// After a power cut: flash does not hold `page` as it is now. True if it must be written back at
    /// once.
    pub fn recovered(&mut self, page: MapPage) -> bool {
        if !self.dirty.use_page(page) {
            self.note(page, true);
        }
        self.overfull |= self.dirty.len() > self.limit;
        self.mode == Mode::Trims && self.want(page)
    }

    /// After a power cut: marks dirty the pages whose records flash does not hold otherwise.
    pub(crate) fn recovered_log(&mut self) {
        for page in self.log().map_or_else(Vec::new, MapLog::dirty_pages) {
            self.recovered(page);
        }
    }

    /// After a power cut that has lost part of the log: the entries of `page` were found by a scan. True
    /// if it must be written back at once, and was not asked for before.
    pub(crate) fn scanned(&mut self, page: MapPage) -> bool {
        if let Some(log) = &mut self.log {
            log.scanned(page);
        }
        self.recovered(page);
        self.want(page)
    }

    /// True if no more pages are dirty than may be, but for `slack`. After a recovery that had to scan
    /// there may be more.
    pub const fn is_within_limit(&self, slack: u32) -> bool {
        self.overfull || self.dirty.len() <= self.limit + slack
    }

    /// After a power cut: the newest copy of `page` lies at `place`.
    pub(crate) fn found(&mut self, page: MapPage, place: Ppn) {
        self.places[page.index()] = place.0 + 1;
    }

    /// The state at rest: nothing is handed to a die.
    pub fn state(&self) -> MapStoreState {
        MapStoreState {
            dirty: self.dirty.clone(),
            wanted: self.wanted.clone(),
            places: self.places.clone(),
            log: self.log.clone(),
        }
    }

    /// True if `state` is of a store of this shape.
    pub fn fits(&self, state: &MapStoreState) -> bool {
        state.dirty.capacity() == self.dirty.capacity()
            && state.wanted.len() == self.wanted.len()
            && state.places.len() == self.places.len()
            && match (&state.log, &self.log) {
                (Some(state), Some(log)) => log.fits(state),
                (state, log) => state.is_none() && log.is_none(),
            }
    }

    /// Takes over a state that fits.
    pub fn restore(&mut self, state: MapStoreState) {
        self.wanted_count = state.wanted.iter().filter(|&&wanted| wanted).count() as u32;
        (self.dirty, self.wanted) = (state.dirty, state.wanted);
        self.places = state.places;
        self.log = state.log;
    }

    /// Bytes of memory that grow with the table.
    pub fn memory_bytes(&self) -> u64 {
        self.places.len() as u64 * (4 + 3 + 8) + self.log().map_or(0, MapLog::memory_bytes)
    }
}

//! The log of changes to the table: its part in DRAM, its part on flash, and the range that recovery needs.
//!
//! Records are numbered from 0; page `n` of the journal holds the records from `n x records_per_page` on,
//! and goes to die `n` modulo the dies. Only full pages are programmed. A record is needed as long as
//! flash does not hold its mapping page as it was at or after the record: the *tail* is the oldest first
//! record of any mapping page that is dirty or on its way. Pages before the tail's are garbage.
//!
//! An entry's last record at or after the tail says what the entry is; if it has none, its mapping page on
//! flash does. So replaying from the tail, or from anywhere before it without a gap, is exact.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use leyden_nand::{DieId, Lpn, Ppa, Ppn};
use serde::{Deserialize, Serialize};

use super::MapPage;
use super::journal::JournalShape;

/// No record.
const NONE: u64 = u64::MAX;

/// A change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Whose entry.
    pub lpn: Lpn,
    /// Where it lies now; `None` if it was trimmed.
    pub unit: Option<Ppa>,
}

/// Where a full page of the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageState {
    /// In DRAM; its die has not been handed it.
    Waiting,
    /// In DRAM; its die programs it.
    Handed,
    /// In DRAM; its die was handed it, and the program did not get to its end. It still counts as one
    /// that a die has: a die is handed no other meanwhile.
    Returned,
    /// On flash.
    OnFlash(Ppn),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LogPage {
    state: PageState,
    /// Empty if power cuts are not simulated.
    records: Box<[Record]>,
}

/// The journal's part of a dump's root page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRoot {
    /// The first record that is needed.
    pub tail: u64,
    /// One past the last.
    pub next: u64,
}

/// The log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MapLog {
    shape: JournalShape,
    /// Records are kept, not just counted.
    keep: bool,
    /// The number of the next record.
    next: u64,
    /// Records of the page that is being filled.
    open: Vec<Record>,
    /// Full pages that may still be needed, by number.
    pages: BTreeMap<u64, LogPage>,
    /// Those that wait to be handed to their die, in order.
    waiting: VecDeque<u64>,
    /// How many of these are [`PageState::Returned`].
    returned: u32,
    /// The first records of mapping pages that are dirty, or (`true`) on their way.
    firsts: BTreeSet<(u64, MapPage, bool)>,
    /// By mapping page: its first record since it was last handed to a die.
    dirty_first: Vec<u64>,
    /// By mapping page on its way to flash: its first record before that.
    handed_first: Vec<u64>,
    /// Mapping pages with a first record before this one are asked to be written back.
    wanted_below: u64,
    /// Mapping pages whose entries were found by a scan, and are not on flash yet: neither what flash
    /// holds of them nor the log tells what they are.
    scanned: BTreeSet<MapPage>,
}

impl MapLog {
    /// An empty log for a table of `map_pages` mapping pages. With `keep`, it can be replayed.
    pub fn new(shape: JournalShape, map_pages: u32, keep: bool) -> Self {
        Self {
            shape,
            keep,
            next: 0,
            open: Vec::new(),
            pages: BTreeMap::new(),
            waiting: VecDeque::new(),
            returned: 0,
            firsts: BTreeSet::new(),
            dirty_first: vec![NONE; map_pages as usize],
            handed_first: vec![NONE; map_pages as usize],
            wanted_below: 0,
            scanned: BTreeSet::new(),
        }
    }

    /// The journal's sizes.
    pub const fn shape(&self) -> &JournalShape {
        &self.shape
    }
    /// The number of the next record: how many there have been.
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// The number of the page that is being filled.
    pub const fn head_page(&self) -> u64 {
        self.next / self.per_page()
    }
    /// The oldest page that may still be needed.
    pub fn first_page(&self) -> u64 {
        self.pages.first_key_value().map_or(self.head_page(), |(&number, _)| number)
    }
    /// The first record that is needed.
    pub fn tail(&self) -> u64 {
        self.firsts.first().map_or(self.next, |&(first, ..)| first)
    }
    /// The journal's part of a dump's root page.
    pub fn root(&self) -> LogRoot {
        LogRoot { tail: self.tail(), next: self.next }
    }
    const fn per_page(&self) -> u64 {
        self.shape.records_per_page as u64
    }

    /// Records in DRAM that no die was handed: what [`JournalShape::dram_pages`] limits.
    pub fn unhanded_records(&self) -> u64 {
        let full = self.waiting.len() as u64 - u64::from(self.returned);
        self.next % self.per_page() + full * self.per_page()
    }
    /// True if `more` records have room in DRAM.
    #[inline]
    pub fn has_room(&self, more: u32) -> bool {
        self.room() >= more
    }
    /// How many records have room in DRAM.
    pub fn room(&self) -> u32 {
        let size = u64::from(self.shape.dram_pages) * self.per_page();
        u32::try_from(size.saturating_sub(self.unhanded_records())).unwrap_or(u32::MAX)
    }

    /// Logs a change of an entry of `page`. Returns the number of the journal's page that is full with
    /// that, if one is.
    #[inline]
    pub fn append(&mut self, page: MapPage, record: Record) -> Option<u64> {
        self.mark_dirty(page, self.next);
        if self.keep {
            self.open.push(record);
        }
        let number = self.head_page();
        self.next += 1;
        if !self.next.is_multiple_of(self.per_page()) {
            return None;
        }
        let records = std::mem::take(&mut self.open).into_boxed_slice();
        self.pages.insert(number, LogPage { state: PageState::Waiting, records });
        self.waiting.push_back(number);
        Some(number)
    }

    /// `page` is dirty since record `first`, if it was not before.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, page: MapPage, first: u64) {
        if self.dirty_first[page.index()] == NONE {
            self.dirty_first[page.index()] = first;
            self.firsts.insert((first, page, false));
        }
    }

    /// `page` as it is now is handed to a die.
    pub(super) fn map_page_handed(&mut self, page: MapPage) {
        let first = std::mem::replace(&mut self.dirty_first[page.index()], NONE);
        if self.firsts.remove(&(first, page, false)) {
            self.firsts.insert((first, page, true));
        }
        self.handed_first[page.index()] = first;
    }

    /// Flash holds `page` as it was when it was handed to a die.
    pub(super) fn map_page_written(&mut self, page: MapPage) {
        let first = std::mem::replace(&mut self.handed_first[page.index()], NONE);
        self.firsts.remove(&(first, page, true));
        self.scanned.remove(&page);
        self.advance();
    }

    /// `page` has not reached flash: it is dirty since its oldest record again.
    pub(super) fn map_page_failed(&mut self, page: MapPage) {
        let handed = std::mem::replace(&mut self.handed_first[page.index()], NONE);
        let dirty = self.dirty_first[page.index()];
        if handed == NONE {
            self.mark_dirty(page, self.next); // no record is missing: it was only being moved
        } else {
            self.firsts.remove(&(dirty, page, false));
            self.firsts.remove(&(handed, page, true));
            self.firsts.insert((handed, page, false));
            self.dirty_first[page.index()] = handed;
        }
    }

    /// Drops pages that are not needed any more. A page that is on its way is dropped when it has ended.
    fn advance(&mut self) {
        let tail_page = self.tail() / self.per_page();
        while let Some(entry) = self.pages.first_entry() {
            let state = entry.get().state;
            if *entry.key() >= tail_page || state == PageState::Handed {
                break;
            }
            let (number, _) = entry.remove_entry();
            if matches!(state, PageState::Waiting | PageState::Returned) {
                self.waiting.retain(|&other| other != number);
                self.returned -= u32::from(state == PageState::Returned);
            }
        }
    }

    /// The next page that `die` may program.
    pub fn next_waiting(&self, die: DieId) -> Option<u64> {
        let of_die = |&&number: &&u64| self.die_of(number) == die;
        let number = *self.waiting.iter().find(of_die)?;
        (number - self.first_page() < u64::from(self.shape.most_pages)).then_some(number)
    }
    /// The die that page `number` lies on.
    pub fn die_of(&self, number: u64) -> DieId {
        DieId((number % u64::from(self.shape.dies)) as u32)
    }

    /// A die is handed page `number`.
    pub fn hand_over(&mut self, number: u64) {
        self.waiting.retain(|&other| other != number);
        let state = self.set_state(number, PageState::Handed);
        self.returned -= u32::from(state == PageState::Returned);
    }
    /// Page `number` lies at `place`.
    pub fn programmed(&mut self, number: u64, place: Ppn) {
        self.set_state(number, PageState::OnFlash(place));
        self.advance();
    }
    /// The program of page `number` failed, or a power cut has torn it.
    pub fn program_failed(&mut self, number: u64) {
        self.set_state(number, PageState::Returned);
        self.returned += 1;
        let at = self.waiting.partition_point(|&other| other < number);
        self.waiting.insert(at, number);
        self.advance();
    }
    fn set_state(&mut self, number: u64, state: PageState) -> PageState {
        let page = self.pages.get_mut(&number).expect("a page that is on its way is kept");
        std::mem::replace(&mut page.state, state)
    }

    /// The dirty mapping pages that must be written back for the journal to be no longer than it should,
    /// oldest first record first; each is returned once. With `all`, for it to be empty.
    pub(super) fn due(&mut self, all: bool) -> Vec<MapPage> {
        let too_old = self.head_page().saturating_sub(u64::from(self.shape.flash_pages));
        let target = if all { self.next } else { too_old * self.per_page() };
        if target <= self.wanted_below {
            return Vec::new();
        }
        let start = |first| (first, MapPage(0), false);
        let range = start(self.wanted_below)..start(target);
        self.wanted_below = target;
        let dirty = self.firsts.range(range).filter(|&&(_, _, handed)| !handed);
        dirty.map(|&(_, page, _)| page).collect()
    }

    /// True if the entries of `page` were found by a scan and are not on flash yet.
    pub fn is_scanned(&self, page: MapPage) -> bool {
        self.scanned.contains(&page)
    }
    /// The mapping pages whose entries would have to be found by a scan again.
    pub fn scanned_pages(&self) -> impl Iterator<Item = MapPage> + '_ {
        self.scanned.iter().copied()
    }
    pub(super) fn scanned(&mut self, page: MapPage) {
        self.scanned.insert(page);
        self.mark_dirty(page, self.tail());
    }

    /// The pages that a dump must save: those not on flash, but for the ones whose programs are `ended`
    /// in time.
    pub fn pages_to_dump(&self, ended: impl Fn(u64) -> bool) -> Vec<u64> {
        let tail_page = self.tail() / self.per_page();
        let full = self.pages.range(tail_page..).filter(|&(&number, page)| match page.state {
            PageState::Waiting | PageState::Returned => true,
            PageState::Handed => !ended(number),
            PageState::OnFlash(_) => false,
        });
        let open =
            Some(self.head_page()).filter(|_| self.tail() < self.next && !self.open.is_empty());
        full.map(|(&number, _)| number).chain(open).collect()
    }
    /// The records of page `number`, which may be the one being filled.
    pub fn records_of(&self, number: u64) -> Box<[Record]> {
        self.pages
            .get(&number)
            .map_or_else(|| self.open.as_slice().into(), |page| page.records.clone())
    }

    /// After a power cut: page `number` lies at `place`, and holds `records`.
    pub(crate) fn found(&mut self, number: u64, place: Ppn, records: Box<[Record]>) {
        self.pages.insert(number, LogPage { state: PageState::OnFlash(place), records });
    }

    /// After a power cut: true if flash and the pages `dumped` hold all that is needed.
    pub fn is_whole(&self, root: LogRoot, dumped: &[(u64, Box<[Record]>)]) -> bool {
        let pages = root.tail / self.per_page()..root.next.div_ceil(self.per_page());
        let holds = |number| {
            self.pages.contains_key(&number) || dumped.iter().any(|&(other, _)| other == number)
        };
        root.tail == root.next || pages.clone().all(holds)
    }

    /// After a power cut: goes on from what flash and the pages `dumped` hold. Returns the records that
    /// are needed, with their numbers.
    pub(crate) fn recover(
        &mut self,
        root: LogRoot,
        dumped: &[(u64, Box<[Record]>)],
    ) -> Vec<(u64, Record)> {
        self.next = root.next;
        let tail_page = root.tail / self.per_page();
        self.pages = self.pages.split_off(&tail_page);
        for (number, records) in dumped {
            if *number == self.head_page() {
                self.open = records.to_vec();
            } else if *number >= tail_page && !self.pages.contains_key(number) {
                let page = LogPage { state: PageState::Waiting, records: records.clone() };
                self.pages.insert(*number, page);
                self.waiting.push_back(*number);
            }
        }
        self.waiting.make_contiguous().sort_unstable();
        if self.open.is_empty() && !self.next.is_multiple_of(self.per_page()) {
            // Nothing of the page being filled was needed, and so it was not dumped: a new one.
            self.next = self.next.next_multiple_of(self.per_page());
            self.pages.clear();
        }
        // Records that a die was programming at the cut do not count as waiting; now as little as
        // then.
        for die in (0..self.shape.dies).map(DieId) {
            let first = self.waiting.iter().copied().find(|&number| self.die_of(number) == die);
            if let Some(first) = first {
                self.set_state(first, PageState::Returned);
                self.returned += 1;
            }
        }
        let pages = self.pages.iter().map(|(&number, page)| (number, &*page.records));
        let open = (self.head_page(), self.open.as_slice());
        let numbered = pages.chain([open]).flat_map(|(number, records)| {
            let first = number * self.per_page();
            records.iter().enumerate().map(move |(i, &record)| (first + i as u64, record))
        });
        numbered.filter(|&(number, _)| number >= root.tail).collect()
    }

    /// After a power cut that has lost part of the log: starts over at page `head`.
    pub(crate) fn begin_anew(&mut self, head: u64) {
        self.pages.clear();
        self.next = head * self.per_page();
    }

    /// The mapping pages that are dirty, or on their way.
    pub(super) fn dirty_pages(&self) -> Vec<MapPage> {
        self.firsts.iter().map(|&(_, page, _)| page).collect()
    }
    /// The places of pages on flash, by number.
    pub fn places(&self) -> impl Iterator<Item = (u64, Ppn)> + '_ {
        self.pages.iter().filter_map(|(&number, page)| match page.state {
            PageState::OnFlash(place) => Some((number, place)),
            _ => None,
        })
    }

    /// Bytes of memory that grow with the table.
    pub fn memory_bytes(&self) -> u64 {
        let pages = if self.keep { self.pages.len() as u64 * self.per_page() * 8 } else { 0 };
        self.dirty_first.len() as u64 * 16 + pages
    }

    /// True if `other` is of a table and a journal of this shape.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.keep == other.keep
            && self.dirty_first.len() == other.dirty_first.len()
            && self.handed_first.len() == other.handed_first.len()
    }

    /// Asks the log whether it still believes itself. `is_dirty` says which mapping pages are.
    pub fn check(&self, is_dirty: impl Fn(MapPage) -> bool) -> Result<(), String> {
        let size = u64::from(self.shape.dram_pages) * self.per_page();
        if self.unhanded_records() > size {
            return Err(format!(
                "{} records in DRAM, of {size} protected",
                self.unhanded_records()
            ));
        }
        let mut handed = vec![0; self.shape.dies as usize];
        let mut waiting = Vec::new();
        let mut returned = 0;
        for (expected, (&number, page)) in (self.first_page()..).zip(&self.pages) {
            let records = if self.keep { self.per_page() as usize } else { 0 };
            if number != expected || number >= self.head_page() || page.records.len() != records {
                return Err(format!("page {number} of the journal where {expected} should be"));
            }
            let is_waiting = matches!(page.state, PageState::Waiting | PageState::Returned);
            waiting.extend(is_waiting.then_some(number));
            returned += u32::from(page.state == PageState::Returned);
            let has_die = matches!(page.state, PageState::Handed | PageState::Returned);
            handed[self.die_of(number).index()] += u32::from(has_die);
        }
        let ends = self.first_page() + self.pages.len() as u64 == self.head_page();
        if !ends || !waiting.iter().eq(&self.waiting) || returned != self.returned {
            return Err(format!("{waiting:?} wait of the journal, {:?} noted", self.waiting));
        }
        if handed.iter().any(|&pages| pages > 1) {
            return Err(format!("dies have {handed:?} pages of the journal each"));
        }
        let pages = || (0..self.dirty_first.len() as u32).map(MapPage);
        let firsts = pages().flat_map(|page| {
            let firsts = [(&self.dirty_first, false), (&self.handed_first, true)];
            let of_page =
                move |(firsts, handed): (&Vec<u64>, bool)| (firsts[page.index()], page, handed);
            firsts.map(of_page).into_iter().filter(|&(first, ..)| first != NONE)
        });
        if firsts.collect::<BTreeSet<_>>() != self.firsts || self.tail() > self.next {
            return Err("the first records of mapping pages are not those noted".to_owned());
        }
        match pages().find(|&page| (self.dirty_first[page.index()] != NONE) != is_dirty(page)) {
            Some(page) => {
                Err(format!("the journal and the table disagree whether {page:?} is dirty"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

//! Writes the mapping table to flash while the power is on, and holds back programs until it may change.
//!
//! **What lives here**: which mapping pages are dirty and where they lie ([`MapStore`]), the blocks of
//! mapping pages and of the journal, the [`gate`] that programs wait at, and which blocks copies must not
//! leave yet ([`moves`]). **What doesn't**: the table itself ([`super::data`]).
//!
//! **Invariants**: with a limit, no more mapping pages are dirty than it says, but for those handed to a
//! die (one each). A block is erased only when no mapping page that flash might have to do with after a
//! power cut points into it.

mod after_cut;
mod gate;
mod journal;
mod laid;
mod map_blocks;
mod moves;
mod write;

use leyden_nand::{BlockId, Content, DieId, Lpn, Medium, Outcome, PageKind, Ppa};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use super::data::Data;
use super::programs::Programs;
use crate::map::{MapPage, MapStore, MapStoreState};
use gate::{Gate, is_copy};
use journal::JournalBlocks;
use map_blocks::MapBlocks;

use moves::Moves;
pub(super) use write::Step;

/// The part of the mapping table that goes to flash. See the module's invariants.
#[derive(Clone, Debug)]
pub(super) struct TableWriter {
    store: MapStore,
    blocks: MapBlocks,
    journal: JournalBlocks,
    gate: Gate,
    moves: Moves,
    /// By mapping page: what a trim of it stands against. Only where trims are written at once.
    trim_versions: Vec<u64>,
    /// Mapping pages that dies are programming.
    in_flight: u32,
    /// The sequence of the next mapping page that is written: of two copies on flash the later is newer.
    next_sequence: u64,
    /// Dies that have something of the table to write.
    woken: Vec<DieId>,
}

/// Its state at rest, to save and load.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TableState {
    store: MapStoreState,
    blocks: MapBlocks,
    journal: JournalBlocks,
    moves: Moves,
    trim_versions: Vec<u64>,
    next_sequence: u64,
}

impl TableWriter {
    /// The writer of a table of `pages` mapping pages; `medium` may hold some of them already.
    pub(super) fn new<C: Content>(store: MapStore, medium: &Medium<C>, data: &Data) -> Self {
        let geometry = medium.geometry();
        let pages = data.map().pages();
        let moves = if store.leaves_copies() {
            Moves::new(pages, geometry.blocks())
        } else {
            Moves::default()
        };
        let trims = if store.trims_only() { pages as usize } else { 0 };
        Self {
            blocks: MapBlocks::new(medium, data.blocks(), store.writes_back()),
            journal: JournalBlocks::new(medium, data.blocks(), store.log().is_some()),
            gate: Gate::new(geometry.dies()),
            moves,
            trim_versions: vec![0; trims],
            in_flight: 0,
            next_sequence: 1,
            woken: Vec::new(),
            store,
        }
    }

    /// Which mapping pages are dirty, and where they lie on flash.
    #[inline]
    pub(super) const fn store(&self) -> &MapStore {
        &self.store
    }
    /// For those that watch which mapping pages become dirty or clean.
    #[inline]
    pub(super) fn store_mut(&mut self) -> &mut MapStore {
        &mut self.store
    }
    /// True if nothing of the table is ever written.
    #[inline]
    pub(super) fn is_never_written(&self) -> bool {
        self.blocks.are_unused()
    }
    /// True if the gate should be checked.
    #[inline]
    pub(super) const fn has_event(&self) -> bool {
        self.gate.is_due()
    }
    /// When the gate should be checked; [`Time::MAX`] if it should not, or only at the end of time.
    #[inline]
    pub(super) const fn next_time(&self) -> Time {
        self.gate.open_at()
    }
    /// How many programs that have ended wait at the gate.
    pub(super) fn waiting_at_gate(&self) -> u64 {
        self.gate.len()
    }
    /// True if copies of `die` wait at the gate.
    #[inline]
    pub(super) fn has_copies_waiting(&self, die: DieId) -> bool {
        self.gate.has_copies(die)
    }
    /// True if copies are left to become known.
    #[inline]
    pub(super) fn keeps_copies(&self) -> bool {
        self.moves.are_kept()
    }
    /// True if no mapping page keeps `block` from being erased.
    pub(super) fn is_covered(&mut self, block: BlockId) -> bool {
        self.moves.keeps(block).is_none()
    }
    /// A die that has something of the table to write, once.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<DieId> {
        self.woken.pop()
    }
    /// True if a FLUSH must wait: a trim is not on flash yet, and nothing else protects it.
    #[inline]
    pub(super) fn has_unsaved_trims(&self) -> bool {
        self.store.trims_only() && (self.store.dirty() > 0 || self.in_flight > 0)
    }
    /// True if programs of data concern the table.
    #[inline]
    pub(super) fn follows_changes(&self) -> bool {
        self.store.follows_changes()
    }
    /// True if what is written of a trim may wait for programs of data.
    #[inline]
    pub(super) const fn waits_for_programs(&self) -> bool {
        self.store.trims_only()
    }

    /// Lets the ended program in `outcome` pass, or makes it wait. True if it may change the map now.
    #[inline]
    pub(super) fn pass_gate<C: Content>(
        &mut self,
        outcome: Outcome,
        programs: &Programs,
        medium: &Medium<C>,
        data: &Data,
    ) -> bool {
        // An outcome that would wait for trims only passes: mapping pages are dirty for nothing else.
        !self.store.follows_changes() || self.pass_closed_gate(outcome, programs, medium, data)
    }

    #[inline(never)]
    fn pass_closed_gate<C: Content>(
        &mut self,
        outcome: Outcome,
        programs: &Programs,
        medium: &Medium<C>,
        data: &Data,
    ) -> bool {
        let is_copy = is_copy(programs.cause(outcome.operation.tag));
        if self.moves.are_kept() && is_copy {
            return true; // copies make no page dirty
        }
        let need = self.gate.new_dirty_pages(&outcome, &self.store, programs, medium, data);
        if self.gate.is_empty() && self.store.has_room(need) {
            return true;
        }
        self.gate.wait(outcome, need, is_copy);
        self.make_room(self.gate.need());
        false
    }

    /// The first program that waited and may pass now.
    pub(super) fn next_through_gate<C: Content>(
        &mut self,
        now: Time,
        programs: &Programs,
        medium: &Medium<C>,
        data: &Data,
    ) -> Option<Outcome> {
        let outcome = self.gate.next(now, &self.store, programs, medium, data);
        if outcome.is_none() && !self.gate.is_empty() {
            self.make_room(self.gate.need());
        }
        outcome
    }

    /// The entry of `lpn` has changed, and what flash holds of it has not.
    #[inline]
    pub(super) fn note_change(&mut self, lpn: Lpn, unit: Option<Ppa>, data: &Data) {
        if self.store.follows_changes() {
            self.note_followed_change(lpn, unit, data);
        }
    }

    #[inline(never)]
    fn note_followed_change(&mut self, lpn: Lpn, unit: Option<Ppa>, data: &Data) {
        let page = data.map().page_of(lpn);
        if self.store.changed(page) {
            self.moves.dirtied(page);
        }
        self.log_change(page, lpn, unit);
    }

    /// The same for a copy of `lpn` out of `from`: its mapping page need not become dirty for that.
    #[inline(never)]
    pub(super) fn note_copy(&mut self, lpn: Lpn, unit: Ppa, from: BlockId, data: &Data) {
        if !self.moves.are_kept() {
            self.note_change(lpn, Some(unit), data);
            return;
        }
        let page = data.map().page_of(lpn);
        if !self.store.is_dirty(page) {
            self.moves.moved(from, page);
        }
    }

    /// True if a copy may be undone; if not, room is made for what its entry changes.
    pub(super) fn may_take_back(&mut self) -> bool {
        let has_room = || self.gate.is_empty() && self.store.has_room(1);
        if !self.store.follows_changes() || self.moves.are_kept() || has_room() {
            return true;
        }
        self.make_room(self.gate.need() + 1);
        false
    }

    /// True if the table has something to write that makes room, or is writing it.
    pub(super) const fn is_making_room(&self) -> bool {
        self.in_flight > 0 || !self.woken.is_empty()
    }

    /// An entry of `page` that was trimmed must stay unmapped, whatever flash holds of it.
    pub(super) fn note_trim(&mut self, page: MapPage, next_version: u64) {
        if self.store.trims_only() {
            self.trim_versions[page.index()] = next_version;
        }
        let was_dirty = self.store.is_dirty(page);
        if self.store.trimmed(page) {
            self.queue_writeback(page);
        }
        if !was_dirty {
            self.moves.dirtied(page);
        }
    }

    /// Logs that the entry of `lpn` has changed, if changes are logged.
    #[inline]
    pub(super) fn log_change(&mut self, page: MapPage, lpn: Lpn, unit: Option<Ppa>) {
        if !self.journal.are_unused()
            && let Some(number) = self.store.record(page, lpn, unit)
        {
            let log = self.store.log().expect("it has a page");
            self.woken.push(log.die_of(number));
            self.shorten_journal(false);
        }
    }

    /// Writes back what keeps the journal too long, or, with `all`, what keeps any of it.
    fn shorten_journal(&mut self, all: bool) {
        for page in self.store.make_log_shorter(all) {
            self.queue_writeback(page);
        }
    }

    /// True if a trim may change the entries of `page`; if not, room is made for it.
    pub(super) fn may_trim(&mut self, page: MapPage) -> bool {
        if self.store.may_trim(page) && self.gate.is_empty() {
            return true;
        }
        self.make_room(self.gate.need() + 1);
        false
    }

    /// Has the mapping pages written back that keep `block` from being erased: its die needs it.
    /// True if it is covered already; else its die is asked again when some have been written.
    pub(super) fn cover(&mut self, die: DieId, block: BlockId) -> bool {
        while let Some(page) = self.moves.keeps(block) {
            if !self.store.has_room(1) {
                self.make_room(self.gate.need() + 1);
                self.moves.wait(die);
                return false;
            }
            self.store.force(page);
            self.moves.dirtied(page);
            self.queue_writeback(page);
        }
        true
    }

    /// Has mapping pages written back until `more` further ones may be dirty.
    fn make_room(&mut self, more: u32) {
        for page in self.store.make_room(more) {
            self.queue_writeback(page);
        }
    }

    /// Has `page` written back by its die.
    fn queue_writeback(&mut self, page: MapPage) {
        let die = self.blocks.queue(page);
        self.woken.push(die);
    }

    /// Wakes every die that has mapping pages to write.
    pub(super) fn wake_writers(&mut self) {
        self.woken.extend(self.blocks.busy_dies());
    }

    /// The journal may have become shorter, or a page of it has reached flash: lets the dies look that
    /// may have waited for that, and the programs at the gate.
    fn look_at_journal(&mut self, now: Time) {
        if let Some(log) = self.store.log() {
            self.woken.extend(self.journal.busy_dies(log));
            self.gate.check_at(now);
        }
    }
}

/// Checked, saved and loaded.
impl TableWriter {
    /// Every mapping page on flash lies in a block for such, and the medium says which it is.
    pub(super) fn check<C: Content>(&self, medium: &Medium<C>, data: &Data) -> Result<(), String> {
        let geometry = medium.geometry();
        for page in (0..data.map().pages()).map(MapPage) {
            let Some(place) = self.store.place(page) else { continue };
            let state = data.blocks().state(geometry.block_of_page(place));
            let owner = medium.meta_page(place).map(|meta| (meta.kind, meta.number));
            if state != super::BlockState::Map
                || owner != Some((PageKind::Mapping, u64::from(page.0)))
            {
                return Err(format!(
                    "{page:?} lies in {place:?} of {owner:?}, in a block that is {state:?}"
                ));
            }
        }
        if !self.store.is_within_limit(geometry.dies()) {
            let (dirty, limit) = (self.store.dirty(), self.store.limit());
            return Err(format!("{dirty} mapping pages are dirty, of {limit} allowed"));
        }
        let Some(log) = self.store.log() else { return Ok(()) };
        log.check(|page| self.store.is_dirty(page))?;
        self.journal.check(log, geometry, data.blocks())
    }

    pub(super) fn state(&self) -> TableState {
        TableState {
            store: self.store.state(),
            blocks: self.blocks.clone(),
            journal: self.journal.clone(),
            moves: self.moves.clone(),
            trim_versions: self.trim_versions.clone(),
            next_sequence: self.next_sequence,
        }
    }

    /// True if `state` is of this shape.
    pub(super) fn fits(&self, state: &TableState) -> bool {
        self.store.fits(&state.store)
            && self.blocks.fits(&state.blocks)
            && self.journal.fits(&state.journal)
            && state.moves.fits(&self.moves)
            && state.trim_versions.len() == self.trim_versions.len()
    }

    /// Takes over a state that fits.
    pub(super) fn restore(&mut self, state: TableState) {
        self.store.restore(state.store);
        self.blocks = state.blocks;
        self.journal = state.journal;
        self.moves = state.moves;
        self.trim_versions = state.trim_versions;
        self.next_sequence = state.next_sequence;
    }
}

//! Where programs that have ended wait until their mapping pages may be dirty.
//!
//! A program that has ended changes the map only when the mapping pages it touches may be dirty. Until
//! then its data stays in the write buffer, or in the block it is copied from.

use std::collections::VecDeque;

use leyden_nand::{Content, DieId, Kind, Medium, Outcome};
use leyden_sim::Time;

use crate::map::{MapPage, MapStore};
use crate::page_mapped::data::{Data, unit_of};
use crate::page_mapped::programs::{ProgramCause, Programs};

/// A program that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    outcome: Outcome,
    /// The pages it would make dirty.
    need: u32,
    is_copy: bool,
}

/// Programs that wait, in the order they ended.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    waiting: VecDeque<Waiting>,
    /// The sum of what they need.
    need: u32,
    /// Pages of copies that wait, by die: what they were copied from must not be written again before.
    copies: Vec<u32>,
    /// The gate should be checked again.
    is_due: bool,
    /// The earliest time at which it should; [`Time::MAX`] if it should not.
    open_at: Time,
    /// Used to count pages; kept to save an allocation.
    scratch: Vec<MapPage>,
}

impl Gate {
    pub(super) fn new(dies: u32) -> Self {
        Self {
            waiting: VecDeque::new(),
            need: 0,
            copies: vec![0; dies as usize],
            is_due: false,
            open_at: Time::MAX,
            scratch: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if the gate should be checked again.
    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// The earliest time at which it should; [`Time::MAX`] if it should not, or only at the end of time.
    #[inline]
    pub(super) const fn open_at(&self) -> Time {
        self.open_at
    }

    /// The pages that all who wait would make dirty.
    pub(super) const fn need(&self) -> u32 {
        self.need
    }

    /// Lets the gate be checked at `now`, if anything waits.
    #[inline]
    pub(super) fn check_at(&mut self, now: Time) {
        if !self.is_empty() {
            (self.is_due, self.open_at) = (true, now);
        }
    }

    /// True if copies of `die` wait.
    #[inline]
    pub(super) fn has_copies(&self, die: DieId) -> bool {
        self.copies[die.index()] > 0
    }

    /// Lets an ended program wait that needs so many pages.
    pub(super) fn wait(&mut self, outcome: Outcome, need: u32, is_copy: bool) {
        self.copies[outcome.die.index()] += u32::from(is_copy);
        self.waiting.push_back(Waiting { outcome, need, is_copy });
        self.need += need;
    }

    /// The first program that waited, if the pages that it needs now have room. If they have not, the
    /// need is noted, and [`Gate::need`] tells how much room to make.
    pub(super) fn next<C: Content>(
        &mut self,
        now: Time,
        store: &MapStore,
        programs: &Programs,
        medium: &Medium<C>,
        data: &Data,
    ) -> Option<Outcome> {
        (self.is_due, self.open_at) = (false, Time::MAX);
        let Waiting { outcome, need, is_copy } = *self.waiting.front()?;
        let needs_now = self.new_dirty_pages(&outcome, store, programs, medium, data);
        if !store.has_room(needs_now) {
            self.need += needs_now - need.min(needs_now);
            self.waiting[0].need = need.max(needs_now);
            return None;
        }
        self.waiting.pop_front();
        self.need -= need;
        self.copies[outcome.die.index()] -= u32::from(is_copy);
        self.check_at(now);
        Some(Outcome { time: now, ..outcome })
    }

    /// How many mapping pages the units of an ended program would newly make dirty; or, if changes are
    /// logged, how many records it would add.
    pub(super) fn new_dirty_pages<C: Content>(
        &mut self,
        outcome: &Outcome,
        store: &MapStore,
        programs: &Programs,
        medium: &Medium<C>,
        data: &Data,
    ) -> u32 {
        let Kind::Program(page) = outcome.operation.kind else { return 0 };
        if outcome.failed {
            return 0; // it still waits its turn: blocks are closed in the order of their programs
        }
        let tag = outcome.operation.tag;
        if store.log().is_some() {
            return programs.units(tag);
        }
        self.scratch.clear();
        for unit in 0..programs.units(tag) {
            let unit = unit_of(medium.geometry(), page, unit);
            let lpn = medium.lpn(unit).expect("a unit with a source was written");
            let map_page = data.map().page_of(lpn);
            if !store.is_dirty(map_page) && !self.scratch.contains(&map_page) {
                self.scratch.push(map_page);
            }
        }
        self.scratch.len() as u32
    }
}

/// True if `cause` is that of a copy of data.
pub(super) fn is_copy(cause: ProgramCause) -> bool {
    cause == ProgramCause::Gc
}

//! Mapping pages on flash: who waits for one to be written, the blocks that hold them, and the
//! collection of those blocks.
//!
//! Each die has a few blocks for the mapping pages whose number is its own modulo the dies; data never
//! lies there. A mapping page is written from DRAM, so collecting one of these blocks reads nothing:
//! what is still current in it is written again, as it is now, and is clean with that.
//!
//! A program that has ended changes the map only when the mapping pages it touches may be dirty. Until
//! then it waits at the [`Gate`]: its data stays in the write buffer, or in the block it is copied from.

use std::collections::VecDeque;

use leyden_nand::{BlockId, Content, DieId, Geometry, Kind, Operation, Outcome, Ppa, Ppn};
use leyden_sim::Time;
use leyden_sim::canary::{Canary, is_planted};
use serde::{Deserialize, Serialize};

use super::ftl::{Ftl, ProgramCause};
use super::inflight::{NO_VERSION, NOTHING};
use crate::map::{MapPage, SavedPage};

/// Programs that have ended and wait for their mapping pages to be allowed to be dirty.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// In the order they ended, each with the pages it would make dirty.
    waiting: VecDeque<(Outcome, u32)>,
    /// The sum of those.
    need: u32,
    /// When there may be room: somebody should look.
    pub(crate) open_at: Option<Time>,
    /// Used to count pages; kept to save an allocation.
    scratch: Vec<MapPage>,
}

impl Gate {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// One die's blocks for mapping pages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MapDie {
    open: Option<BlockId>,
    full: Vec<BlockId>,
    /// Being emptied: to be erased, or retired if a program in it failed.
    victims: Vec<(BlockId, bool)>,
    /// Pages to move out of them.
    copies: VecDeque<MapPage>,
    /// Pages to write back.
    queue: VecDeque<MapPage>,
}

impl MapDie {
    fn has_work(&self) -> bool {
        !(self.queue.is_empty() && self.copies.is_empty() && self.victims.is_empty())
    }
    /// Forgets what DRAM held. The bad block table knows which blocks are to be retired.
    pub(crate) fn lose_power(&mut self) {
        self.queue.clear();
        self.copies.clear();
        let victims = std::mem::take(&mut self.victims);
        let (failed, whole): (Vec<_>, Vec<_>) =
            victims.into_iter().partition(|&(_, failed)| failed);
        self.full.extend(whole.into_iter().map(|(block, _)| block));
        self.victims = failed;
    }
    /// Has `block` erased, which holds nothing.
    pub(crate) fn erase_again(&mut self, block: BlockId) {
        self.full.retain(|&other| other != block);
        self.victims.push((block, false));
    }
}

/// The blocks that a die keeps back for its share of `pages` mapping pages: a quarter more than they
/// fill, one to move pages to, one more in case a power cut leaves that in tatters, and one to fill
/// meanwhile.
pub(crate) fn map_blocks_per_die(geometry: &Geometry, pages: u32) -> u32 {
    let share = pages.div_ceil(geometry.dies());
    (share + share / 4).div_ceil(geometry.pages_per_block()) + 3
}

impl<C: Content> Ftl<C> {
    /// The die whose blocks hold `page`.
    pub fn die_of_map_page(&self, page: MapPage) -> DieId {
        DieId(page.0 % self.geometry.dies())
    }

    /// Lets the ended program in `outcome` pass, or makes it wait. True if it may change the map now.
    #[inline]
    pub(crate) fn pass_gate(&mut self, outcome: &Outcome) -> bool {
        if !self.store.writes_back() || self.store.trims_only() {
            return true;
        }
        if self.moves.are_kept() && self.inflight.cause(outcome.operation.tag) == ProgramCause::Gc {
            return true; // copies make no page dirty
        }
        let need = self.new_dirty_pages(outcome);
        if self.gate.is_empty() && self.store.has_room(need) {
            return true;
        }
        if self.inflight.cause(outcome.operation.tag) == ProgramCause::Gc {
            self.collections[outcome.die.index()].at_gate += 1;
        }
        self.gate.waiting.push_back((*outcome, need));
        self.gate.need += need;
        self.make_room(self.gate.need);
        false
    }

    /// The first program that waited and may pass now.
    pub(crate) fn next_through_gate(&mut self, now: Time) -> Option<Outcome> {
        self.gate.open_at = None;
        let (outcome, need) = *self.gate.waiting.front()?;
        let needs_now = self.new_dirty_pages(&outcome);
        if !self.store.has_room(needs_now) {
            self.gate.need += needs_now - need.min(needs_now);
            self.gate.waiting[0].1 = need.max(needs_now);
            self.make_room(self.gate.need);
            return None;
        }
        self.gate.waiting.pop_front();
        self.gate.need -= need;
        if self.inflight.cause(outcome.operation.tag) == ProgramCause::Gc {
            self.collections[outcome.die.index()].at_gate -= 1;
        }
        self.gate.open_at = (!self.gate.is_empty()).then_some(now);
        Some(Outcome { time: now, ..outcome })
    }

    /// How many mapping pages the units of an ended program would newly make dirty; or, if changes are
    /// logged, how many records it would add.
    fn new_dirty_pages(&mut self, outcome: &Outcome) -> u32 {
        let Kind::Program(page) = outcome.operation.kind else { return 0 };
        if outcome.failed {
            return 0; // in its turn all the same: blocks are closed in the order of their programs
        }
        if self.store.log().is_some() {
            return self.records_of(outcome);
        }
        let first = self.geometry.first_unit(page).0;
        let mut pages = std::mem::take(&mut self.gate.scratch);
        pages.clear();
        for unit in 0..self.geometry.units_per_page() {
            if self.inflight.source(outcome.operation.tag, unit) == NOTHING {
                continue;
            }
            let lpn = self.media.lpn(Ppa(first + unit)).expect("a unit with a source was written");
            let map_page = self.map.page_of(lpn);
            if !self.store.is_dirty(map_page) && !pages.contains(&map_page) {
                pages.push(map_page);
            }
        }
        let count = pages.len() as u32;
        self.gate.scratch = pages;
        count
    }

    /// True if a trim may change the entries of `page`; if not, room is made for it.
    pub fn may_trim(&mut self, page: MapPage) -> bool {
        if self.store.may_trim(page) && self.gate.is_empty() {
            return true;
        }
        self.make_room(self.gate.need + 1);
        false
    }

    /// Has the mapping pages written back that keep `block` from being erased: its die needs it.
    /// True if it is covered already; else its die is asked again when some have been written.
    pub(crate) fn cover(&mut self, die: DieId, block: BlockId) -> bool {
        while let Some(page) = self.moves.keeps(block) {
            if !self.store.has_room(1) {
                self.make_room(self.gate.need + 1);
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
    pub(crate) fn make_room(&mut self, more: u32) {
        for page in self.store.make_room(more) {
            self.queue_writeback(page);
        }
    }

    /// Has `page` written back by its die.
    pub(crate) fn queue_writeback(&mut self, page: MapPage) {
        let die = self.die_of_map_page(page);
        self.map_dies[die.index()].queue.push_back(page);
        self.wake.push(die);
    }

    /// Wakes every die that has something of the map to write.
    pub(crate) fn wake_writers(&mut self) {
        for (die, state) in self.map_dies.iter().enumerate() {
            if state.has_work() {
                self.wake.push(DieId(die as u32));
            }
        }
    }

    /// A die that has got something to write of the map, once.
    #[inline]
    pub fn next_woken(&mut self) -> Option<DieId> {
        self.wake.pop()
    }

    /// True if a FLUSH must wait: a trim is not on flash yet, and nothing else protects it.
    pub fn has_unsaved_trims(&self) -> bool {
        self.store.trims_only() && (self.store.dirty() > 0 || self.map_writes > 0)
    }

    /// Does the next step of writing `die`'s mapping pages, or of erasing what a dump was written to,
    /// if there is one to do. True if it started.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline]
    pub fn map_step(&mut self, now: Time, die: DieId) -> bool {
        if self.erase_dump_block(now, die) {
            return true;
        }
        if self.map_dies.is_empty() {
            return false;
        }
        if self.journal_step(now, die) {
            return true;
        }
        if !self.map_dies[die.index()].has_work() {
            return false;
        }
        self.free_emptied(now, die) || self.write_map_page(now, die)
    }

    /// Erases a block that holds nothing current any more, or retires it.
    fn free_emptied(&mut self, now: Time, die: DieId) -> bool {
        loop {
            let victims = &mut self.map_dies[die.index()].victims;
            let Some(at) = victims.iter().position(|&(block, _)| self.blocks.valid(block) == 0)
            else {
                return false;
            };
            let (block, failed) = victims.remove(at);
            if failed {
                self.blocks.retire(block);
                self.unstick(die);
            } else {
                self.flash.submit(now, Operation { kind: Kind::Erase(block), bytes: 0, tag: 0 });
                return true;
            }
        }
    }

    fn write_map_page(&mut self, now: Time, die: DieId) -> bool {
        let Some((page, is_copy)) = self.next_map_page(die) else { return false };
        let Some(place) = self.map_place(die) else { return false };
        let state = &mut self.map_dies[die.index()];
        if is_copy {
            state.copies.pop_front();
        } else {
            state.queue.pop_front();
        }
        self.program_map_page(now, page, place, is_copy);
        if !self.gate.is_empty() {
            self.gate.open_at = Some(now);
        }
        true
    }

    /// The page to write next: copies first, since a block waits for them. Pages that need not be
    /// written any more are dropped.
    fn next_map_page(&mut self, die: DieId) -> Option<(MapPage, bool)> {
        let settled_below = if self.store.trims_only() { self.settled_below() } else { 0 };
        let state = &mut self.map_dies[die.index()];
        while let Some(&page) = state.copies.front() {
            let place = self.store.place(page).map(|place| self.geometry.block_of_page(place));
            if !self.store.is_handed(page)
                && place.is_some_and(|place| state.victims.iter().any(|&(block, _)| block == place))
            {
                return Some((page, true));
            }
            state.copies.pop_front();
        }
        while let Some(&page) = state.queue.front() {
            if !self.store.is_wanted(page) {
                state.queue.pop_front();
                continue;
            }
            // What is written stands against everything older: nothing older may be on its way.
            let too_early =
                self.store.trims_only() && settled_below < self.trim_versions[page.index()];
            return (!too_early).then_some((page, false));
        }
        None
    }

    /// Where `die`'s next mapping page goes; chooses a block to collect when the last one is opened.
    fn map_place(&mut self, die: DieId) -> Option<Ppn> {
        let state = &mut self.map_dies[die.index()];
        if let Some(open) = state.open {
            if let Some(page) = self.blocks.next_page(open) {
                return Some(page);
            }
            state.full.push(open);
            state.open = None;
        }
        let block = self.blocks.take_kept(die, super::BlockState::Map)?;
        state.open = Some(block);
        if state.victims.is_empty() {
            self.choose_map_victim(die);
        }
        self.blocks.next_page(block)
    }

    /// If the blocks kept back are used up but for one, chooses the full block with the fewest current
    /// pages, and has those moved.
    pub(crate) fn choose_map_victim(&mut self, die: DieId) {
        if self.blocks.kept_for_map(die) > 1 {
            return;
        }
        let state = &mut self.map_dies[die.index()];
        let least = state.full.iter().enumerate().min_by_key(|&(_, &b)| self.blocks.valid(b));
        let Some((at, _)) = least else { return };
        let victim = state.full.remove(at);
        self.empty_map_block(die, victim, false);
    }

    pub(crate) fn empty_map_block(&mut self, die: DieId, victim: BlockId, failed: bool) {
        self.map_dies[die.index()].victims.push((victim, failed));
        for index in 0..self.blocks.written_pages(victim) {
            let place = self.geometry.page(victim, index);
            let Some(page) = self.media.map_page(self.geometry.first_unit(place)).map(MapPage)
            else {
                continue;
            };
            if self.store.place(page) == Some(place) {
                self.map_dies[die.index()].copies.push_back(page);
            }
        }
    }

    /// After a power cut: goes on with emptying blocks.
    pub(crate) fn resume_map_blocks(&mut self, die: DieId) {
        for (block, failed) in std::mem::take(&mut self.map_dies[die.index()].victims) {
            self.empty_map_block(die, block, failed);
        }
        self.choose_map_victim(die);
        if self.map_dies[die.index()].has_work() {
            self.wake.push(die);
        }
    }

    fn program_map_page(&mut self, now: Time, page: MapPage, place: Ppn, is_copy: bool) {
        let cause = if is_copy { ProgramCause::GcMap } else { ProgramCause::Map };
        self.store.hand_over(page, is_copy);
        let tag = self.inflight.insert(cause, NO_VERSION);
        self.inflight.sources_mut(tag)[0] = page.0;
        if self.store.keeps() {
            let saved = SavedPage {
                settled_below: self.settled_below(),
                records_below: self.records_so_far(),
                entries: self.map.entries_of(page),
            };
            self.inflight.set_saved(tag, saved);
        }
        let first = self.geometry.first_unit(place).0;
        (0..self.geometry.units_per_page())
            .for_each(|unit| self.media.write_map_page(Ppa(first + unit), page.0));
        self.map_writes += 1;
        let bytes = self.geometry.page_bytes();
        self.flash.submit(now, Operation { kind: Kind::Program(place), bytes, tag });
    }

    /// Every write with a version below this one is mapped, or will never be.
    pub(crate) fn settled_below(&self) -> u64 {
        self.inflight.oldest_version().unwrap_or(self.next_version)
    }

    /// A mapping page has been programmed.
    pub(crate) fn end_map_write(&mut self, die: DieId, place: Ppn, tag: u32, failed: bool) {
        let page = MapPage(self.inflight.source(tag, 0));
        let saved = self.inflight.take_saved(tag);
        self.inflight.remove(tag);
        self.map_writes -= 1;
        for die in self.moves.take_waiting() {
            self.unstick(die);
            self.wake.push(die);
        }
        let block = self.geometry.block_of_page(place);
        if failed {
            self.make_unreadable(place, false);
            let state = &mut self.map_dies[die.index()];
            if self.store.failed(page) {
                state.copies.push_front(page);
            } else {
                state.queue.push_front(page);
            }
            if self.map_dies[die.index()].open == Some(block) {
                self.map_dies[die.index()].open = None;
            }
            self.empty_map_block(die, block, true);
            return;
        }
        let saved = match self.store.saved(page) {
            Some(old) if is_planted(Canary::MapPageDropped) => Some(old.clone()),
            _ => saved,
        };
        if is_planted(Canary::MapPageStale) {
            self.store.hand_over(page, false);
        }
        if let Some(old) = self.store.written(page, place, saved) {
            self.invalidate_map_place(old);
        }
        self.validate_map_place(place);
    }

    /// The mapping page at `place` is current.
    pub(crate) fn validate_map_place(&mut self, place: Ppn) {
        let first = self.geometry.first_unit(place).0;
        let block = self.geometry.block_of_page(place);
        for unit in first..first + self.geometry.units_per_page() {
            self.validity.set(Ppa(unit));
            self.blocks.add_valid(block);
        }
    }

    fn invalidate_map_place(&mut self, place: Ppn) {
        let first = self.geometry.first_unit(place).0;
        let block = self.geometry.block_of_page(place);
        for unit in first..first + self.geometry.units_per_page() {
            self.validity.clear(Ppa(unit));
            self.blocks.remove_valid(block);
        }
    }
}

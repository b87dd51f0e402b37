//! Writing: mapping pages and pages of the journal, a step of a die at a time.

use leyden_nand::{BlockId, Content, DieId, Medium, MetaPage, Outcome, PageKind, Ppn};
use leyden_sim::Time;

use super::TableWriter;
use super::map_blocks::Emptied;
use crate::map::{MapLog, MapPage, SavedPage, encode_records};
use crate::page_mapped::data::Data;
use crate::page_mapped::programs::{NO_VERSION, ProgramCause, Programs};

/// The drive's parts that a step works on.
pub(in crate::page_mapped) struct Step<'a, C: Content> {
    pub(in crate::page_mapped) now: Time,
    pub(in crate::page_mapped) medium: &'a mut Medium<C>,
    pub(in crate::page_mapped) data: &'a mut Data,
    pub(in crate::page_mapped) programs: &'a mut Programs,
    /// The version of the next page of the host's data.
    pub(in crate::page_mapped) next_version: u64,
    /// A block was retired.
    pub(in crate::page_mapped) has_retired: bool,
}

impl<C: Content> Step<'_, C> {
    /// Every write with a version below this one is mapped, or will never be.
    fn settled_below(&self) -> u64 {
        self.programs.oldest_version().unwrap_or(self.next_version)
    }
}

impl TableWriter {
    /// Does the next step of writing `die`'s mapping pages or journal, if there is one to do. True if it
    /// started.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline(never)]
    pub(in crate::page_mapped) fn step<C: Content>(
        &mut self,
        die: DieId,
        step: &mut Step<'_, C>,
    ) -> bool {
        if !self.journal.are_unused() && self.journal_step(die, step) {
            return true;
        }
        self.blocks.has_work(die) && (self.free_emptied(die, step) || self.write_page(die, step))
    }

    /// Erases a block that holds nothing current any more, or retires it.
    fn free_emptied<C: Content>(&mut self, die: DieId, step: &mut Step<'_, C>) -> bool {
        loop {
            match self.blocks.take_emptied(die) {
                Some(Emptied::Retire(block)) => retire(block, step),
                Some(Emptied::Erase(block)) => {
                    step.medium.erase(step.now, block);
                    return true;
                }
                None => return false,
            }
        }
    }

    fn write_page<C: Content>(&mut self, die: DieId, step: &mut Step<'_, C>) -> bool {
        let trims_only = self.store.trims_only();
        let settled_below = if trims_only { step.settled_below() } else { 0 };
        // A written page stands against everything older: nothing older may be on its way.
        let trim_versions = &self.trim_versions;
        let is_early = |page: MapPage| trims_only && settled_below < trim_versions[page.index()];
        let next = self.blocks.next(die, &self.store, step.medium.geometry(), is_early);
        let Some((page, is_copy)) = next else { return false };
        let blocks = step.data.blocks_mut();
        let Some(place) = self.blocks.place(die, &self.store, step.medium, blocks) else {
            return false;
        };
        self.blocks.take(die, is_copy);
        self.program_page(page, place, is_copy, step);
        self.gate.check_at(step.now);
        true
    }

    fn program_page<C: Content>(
        &mut self,
        page: MapPage,
        place: Ppn,
        is_copy: bool,
        step: &mut Step<'_, C>,
    ) {
        let cause = if is_copy { ProgramCause::GcMap } else { ProgramCause::Map };
        let bytes = self.bytes_of(page, step);
        self.store.hand_over(page, is_copy);
        let (tag, number) = step.programs.insert(cause, NO_VERSION, 1);
        number[0] = page.0;
        let (kind, sequence) = (PageKind::Mapping, self.next_sequence);
        let meta = MetaPage { kind, number: u64::from(page.0), sequence, bytes };
        self.next_sequence += 1;
        self.in_flight += 1;
        step.medium.program_meta(step.now, place, meta, tag);
    }

    /// The bytes that flash will hold of `page`; none if they are never read.
    pub(super) fn bytes_of<C: Content>(&self, page: MapPage, step: &Step<'_, C>) -> Box<[u8]> {
        if !step.medium.keeps().meta {
            return Box::default();
        }
        let saved = SavedPage {
            settled_below: step.settled_below(),
            records_below: self.records_so_far(),
            entries: step.data.map().entries_of(page),
        };
        saved.encode()
    }

    /// How many records of the journal there have been.
    pub(in crate::page_mapped) fn records_so_far(&self) -> u64 {
        self.store.log().map_or(0, MapLog::next)
    }

    /// A mapping page has been programmed, or not. Returns the dies that waited for one to be.
    pub(in crate::page_mapped) fn page_ended<C: Content>(
        &mut self,
        outcome: &Outcome,
        place: Ppn,
        programs: &mut Programs,
        medium: &Medium<C>,
    ) -> Vec<DieId> {
        let tag = outcome.operation.tag;
        let page = MapPage(programs.source(tag, 0));
        programs.remove(tag);
        self.in_flight -= 1;
        let waited = self.moves.take_waiting();
        self.woken.extend(&waited);
        let geometry = medium.geometry();
        if outcome.failed {
            let was_moved = self.store.failed(page);
            let block = geometry.block_of_page(place);
            self.blocks.failed(outcome.die, block, page, was_moved, &self.store, medium);
        } else {
            if let Some(old) = self.store.written(page, place) {
                self.blocks.remove(geometry, old);
            }
            self.blocks.add(geometry, place);
        }
        self.look_at_journal(outcome.time);
        waited
    }

    /// Erases a block of `die` that holds only garbage of the journal, or programs its next page of it.
    /// True if it started.
    fn journal_step<C: Content>(&mut self, die: DieId, step: &mut Step<'_, C>) -> bool {
        let Some(first) = self.store.log().map(MapLog::first_page) else { return false };
        while let Some((block, failed)) = self.journal.take_garbage(die, first) {
            if failed {
                retire(block, step);
            } else {
                step.medium.erase(step.now, block);
                return true;
            }
        }
        self.write_journal_page(die, step)
    }

    fn write_journal_page<C: Content>(&mut self, die: DieId, step: &mut Step<'_, C>) -> bool {
        let Some(number) = self.store.log().and_then(|log| log.next_waiting(die)) else {
            return false;
        };
        let blocks = step.data.blocks_mut();
        let Some(place) = self.journal.place(die, number, step.medium, blocks) else {
            self.shorten_journal(true);
            return false;
        };
        let log = self.store.log_mut().expect("it has a page");
        log.hand_over(number);
        let bytes = if step.medium.keeps().meta {
            encode_records(&log.records_of(number))
        } else {
            Box::default()
        };
        self.store.count_journal_page();
        let (tag, _) = step.programs.insert(ProgramCause::Journal, NO_VERSION, 0);
        let meta = MetaPage { kind: PageKind::Journal, number, sequence: 0, bytes };
        step.medium.program_meta(step.now, place, meta, tag);
        self.gate.check_at(step.now); // there is room in DRAM
        true
    }

    /// A page of the journal has been programmed, or not.
    pub(in crate::page_mapped) fn journal_ended(
        &mut self,
        outcome: &Outcome,
        place: Ppn,
        programs: &mut Programs,
    ) {
        programs.remove(outcome.operation.tag);
        let number = self.journal.number_on(outcome.die);
        let log = self.store.log_mut().expect("a page of it was programmed");
        if outcome.failed {
            log.program_failed(number);
            self.journal.failed(outcome.die);
        } else {
            log.programmed(number, place);
        }
        self.look_at_journal(outcome.time);
    }

    /// The number of the journal's page that `die` programs.
    pub(in crate::page_mapped) fn journal_page_on(&self, die: DieId) -> u64 {
        self.journal.number_on(die)
    }
}

/// Never uses `block` again, in which a program failed and nothing is current.
fn retire<C: Content>(block: BlockId, step: &mut Step<'_, C>) {
    step.data.blocks_mut().retire(block);
    step.medium.retire(block);
    step.has_retired = true;
}

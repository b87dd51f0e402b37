//! What a power cut leaves behind.

use leyden_nand::{BlockId, Content, Interrupted, Kind, Ppn};
use leyden_sim::Time;
use leyden_sim::canary::{Canary, is_planted};

use crate::gc::VictimIndex;
use crate::map::{MapLog, MapPage, MapTable, SavedPage};
use crate::page_mapped::{Collection, Ftl, MapDie, ProgramCause};

use super::{DumpPage, Root};

impl<C: Content> Ftl<C> {
    /// What dies are doing. At a cut the caller decides what of it still ends, tells
    /// [`Ftl::settle_cut`] of each, dumps, and calls [`Ftl::lose_power`].
    pub fn on_the_way(&self) -> Vec<Interrupted> {
        self.flash.on_the_way()
    }

    /// True if the interrupted operation is a program of a mapping page: nothing else of what it
    /// holds is protected.
    pub fn is_map_program(&self, interrupted: &Interrupted) -> bool {
        matches!(interrupted.operation.kind, Kind::Program(_))
            && matches!(
                self.inflight.cause(interrupted.operation.tag),
                ProgramCause::Map | ProgramCause::GcMap | ProgramCause::Journal
            )
    }

    /// An operation that the cut has found on its way did go on to its end, or it did not. A program
    /// that did not leaves a torn page, which reads as such; an erase leaves a block that must be
    /// erased again. Data that was programmed in time is not mapped: what was promised of it is dumped.
    pub fn settle_cut(&mut self, interrupted: &Interrupted, ended: bool) {
        match interrupted.operation.kind {
            Kind::Program(page) => {
                let tag = interrupted.operation.tag;
                let is_map = self.is_map_program(interrupted);
                self.count_program(page, tag, false);
                if !ended {
                    self.make_unreadable(page, is_planted(Canary::TornPageBelieved) && !is_map);
                }
                if is_map {
                    self.settle_map_program(page, tag, ended);
                }
            }
            Kind::Erase(block) => self.half_erased(block),
            Kind::Read(_) | Kind::HostRead(_) => {}
        }
    }

    fn settle_map_program(&mut self, place: Ppn, tag: u32, ended: bool) {
        if self.inflight.cause(tag) == ProgramCause::Journal {
            self.settle_journal_program(place, tag, ended);
            return;
        }
        let page = MapPage(self.inflight.source(tag, 0));
        let saved = self.inflight.take_saved(tag);
        if ended {
            self.store.written(page, place, saved);
        } else {
            self.store.failed(page); // dirty again: to be dumped
        }
    }

    fn half_erased(&mut self, block: BlockId) {
        self.media.erase(&self.geometry, block);
        self.half_erased.push(block);
    }

    /// The mapping pages that a dump must save: all of them if none is written while the power is on,
    /// else those that flash does not hold as they are, and those that dies are writing but for the
    /// ones whose programs are `ended` in time.
    pub fn map_pages_to_dump(&self, ended: impl Fn(&Interrupted) -> bool) -> Vec<MapPage> {
        if self.store.log().is_some() {
            return Vec::new(); // the journal is dumped instead
        }
        if self.store.writes_back() {
            let written = self.on_the_way().into_iter().filter(|op| self.is_map_program(op));
            let unwritten = written
                .filter(|op| !ended(op))
                .map(|op| MapPage(self.inflight.source(op.operation.tag, 0)));
            // What is only moved lies where it did. It has no room under the limit of dirty pages: cuts
            // in a row would have ever more to dump.
            let is_needed =
                |&page: &MapPage| !self.store.is_dirty(page) && !self.store.is_moving(page);
            let unwritten: Vec<_> = unwritten.filter(is_needed).collect();
            return self.store.dirty_pages().chain(unwritten).collect();
        }
        // A page of entries that were never mapped is what recovery assumes of a page it finds nowhere.
        (0..self.map.pages()).map(MapPage).filter(|&page| self.map.has_mapped(page)).collect()
    }

    /// A mapping page as a dump writes it. Nothing is on its way any more: it is right about all
    /// versions so far.
    pub fn map_page_to_dump(&self, page: MapPage) -> DumpPage<C> {
        let entries = self.map.entries_of(page);
        let records_below = self.records_so_far();
        DumpPage::Map(page, SavedPage { settled_below: self.next_version, records_below, entries })
    }

    /// The root page of a dump that is to hold `map_pages`.
    pub fn dump_root(&self, map_pages: &[MapPage]) -> Root {
        let mut map_pages = map_pages.to_vec();
        map_pages.extend(self.store.log().into_iter().flat_map(MapLog::scanned_pages));
        let log = self.store.log().map(MapLog::root);
        Root { map_pages, next_version: self.next_version, log }
    }

    /// DRAM loses what it held. What is left is what flash holds.
    pub fn lose_power(&mut self, now: Time) {
        self.flash.cut_power(now);
        let pages = self.map.entries_per_page();
        self.map = MapTable::new(self.map.len(), pages);
        self.store.lose_power();
        self.map_dies.iter_mut().for_each(MapDie::lose_power);
        self.trim_versions.fill(0);
        self.map_writes = 0;
        self.gate.clear();
        self.stuck_dies = 0;
        self.moves.lose_power();
        self.zombies.lose_power();
        self.logs.lose_power();
        self.wake.clear();
        self.next_version = 0;
        self.inflight.clear();
        self.validity.clear_all();
        self.index = VictimIndex::new(&self.geometry, self.policy.order());
        self.blocks.lose_power();
        self.collections.iter_mut().for_each(Collection::lose_power);
    }
}

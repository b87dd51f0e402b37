//! The FTL's part in a power cut: operations in flight, pages that a dump must save, and the
//! beginning and end of recovery.

use leyden_nand::{BlockId, Content, DieId, Health, Interrupted, Kind, Ppn};

use super::data::{BlockState, unit_of};
use super::ftl::Ftl;
use super::programs::ProgramCause;
use super::recover::Recovery;
use crate::dump_area::{DumpPage, Root};
use crate::map::{MapLog, MapPage, SavedPage};
use crate::recovery::Recovered;

impl<C: Content> Ftl<C> {
    /// The operations of dies in flight. At a cut the caller decides which of them still end, tells
    /// [`Ftl::settle_cut`] of each, dumps, and calls [`Ftl::lose_power`].
    pub fn on_the_way(&self) -> Vec<Interrupted> {
        self.medium.on_the_way().collect()
    }

    /// The mapping page that the interrupted operation programs, if it does.
    fn map_page_on(&self, interrupted: &Interrupted) -> Option<MapPage> {
        let Kind::Program(_) = interrupted.operation.kind else { return None };
        let tag = interrupted.operation.tag;
        matches!(self.programs.cause(tag), ProgramCause::Map | ProgramCause::GcMap)
            .then(|| MapPage(self.programs.source(tag, 0)))
    }

    /// The page of the journal that the interrupted operation programs, if it does.
    fn journal_page_on(&self, interrupted: &Interrupted) -> Option<u64> {
        let Kind::Program(_) = interrupted.operation.kind else { return None };
        let cause = self.programs.cause(interrupted.operation.tag);
        (cause == ProgramCause::Journal).then(|| self.table.journal_page_on(interrupted.die))
    }

    /// An operation that the cut has found on its way did go on to its end, or it did not. Data that was
    /// programmed in time is not mapped: what was promised of it is dumped.
    pub fn settle_cut(&mut self, interrupted: &Interrupted, ended: bool) {
        let Kind::Program(place) = interrupted.operation.kind else { return };
        self.count_program(self.programs.cause(interrupted.operation.tag), false);
        if let Some(page) = self.map_page_on(interrupted) {
            if ended {
                self.table.store_mut().written(page, place);
            } else {
                self.table.store_mut().failed(page); // dirty again: to be dumped
            }
        } else if let Some(number) = self.journal_page_on(interrupted) {
            self.settle_journal_page(number, place, ended);
        }
    }

    /// The program of a page of the host's data went on to its end: maps the units whose sources `is_wanted`, where a scan
    /// will find them. A dumped mapping page that knew nothing of them would hide some from it, as if they were trimmed.
    pub fn map_at_cut(&mut self, interrupted: &Interrupted, is_wanted: impl Fn(u32) -> bool) {
        let Kind::Program(page) = interrupted.operation.kind else { return };
        let tag = interrupted.operation.tag;
        if !self.store().trims_only() || self.programs.cause(tag) != ProgramCause::User {
            return;
        }
        for unit in 0..self.programs.units(tag) {
            let place = unit_of(self.medium.geometry(), page, unit);
            let lpn = self.medium.lpn(place).filter(|_| is_wanted(self.programs.source(tag, unit)));
            if let Some(lpn) = lpn {
                self.data.found(lpn, Some(place));
            }
        }
    }

    fn settle_journal_page(&mut self, number: u64, place: Ppn, ended: bool) {
        let log = self.table.store_mut().log_mut().expect("a page of it was on its way");
        if ended {
            log.programmed(number, place);
        } else {
            log.program_failed(number);
        }
    }

    /// The mapping pages that a dump must save: all of them if none is written while the power is on,
    /// else those that flash does not hold as they are, and those that dies are writing but for the
    /// ones whose programs are `ended` in time.
    pub fn map_pages_to_dump(&self, ended: impl Fn(&Interrupted) -> bool) -> Vec<MapPage> {
        let (store, map) = (self.store(), self.map());
        if store.log().is_some() {
            return Vec::new(); // the journal is dumped instead
        }
        if store.writes_back() {
            let unwritten = self.on_the_way().into_iter().filter(|op| !ended(op));
            let unwritten = unwritten.filter_map(|op| self.map_page_on(&op));
            // Pages that are only moved lie in their old place. They have no room under the limit
            // of dirty pages: cuts in a row would have ever more to dump.
            let is_needed = |&page: &MapPage| !store.is_dirty(page) && !store.is_moving(page);
            return store.dirty_pages().chain(unwritten.filter(is_needed)).collect();
        }
        // A page of entries that were never mapped is what recovery assumes of a page it finds nowhere.
        (0..map.pages()).map(MapPage).filter(|&page| map.has_mapped(page)).collect()
    }

    /// A mapping page as a dump writes it. Nothing is on its way any more: it is right about all
    /// versions so far.
    pub fn map_page_to_dump(&self, page: MapPage) -> DumpPage<C> {
        let entries = self.map().entries_of(page);
        let records_below = self.table.records_so_far();
        DumpPage::Map(page, SavedPage { settled_below: self.next_version, records_below, entries })
    }

    /// The pages of the journal that a dump must save: those that flash does not hold, but for the ones
    /// whose programs are `ended` in time. By number.
    pub fn journal_pages_to_dump(&self, ended: impl Fn(&Interrupted) -> bool) -> Vec<u64> {
        let Some(log) = self.store().log() else { return Vec::new() };
        let on_the_way = self.on_the_way();
        let in_time = on_the_way.iter().filter(|op| ended(op));
        let in_time: Vec<u64> = in_time.filter_map(|op| self.journal_page_on(op)).collect();
        log.pages_to_dump(|number| in_time.contains(&number))
    }

    /// A page of the journal as a dump writes it.
    pub fn journal_page_to_dump(&self, number: u64) -> DumpPage<C> {
        let records = self.store().log().map(|log| log.records_of(number)).unwrap_or_default();
        DumpPage::Journal(number, records)
    }

    /// The root of a dump that is to hold `map_pages`, as `pages` pages.
    pub fn dump_root(&self, map_pages: &[MapPage], pages: u32) -> Vec<DumpPage<C>> {
        let mut map_pages = map_pages.to_vec();
        map_pages.extend(self.store().log().into_iter().flat_map(MapLog::scanned_pages));
        let log = self.store().log().map(MapLog::root);
        let root = Root { map_pages, next_version: self.next_version, log };
        root.encode(self.map().pages(), pages).into_iter().map(DumpPage::Root).collect()
    }

    /// The die whose blocks hold `page`.
    pub fn die_of_map_page(&self, page: MapPage) -> DieId {
        DieId(page.0 % self.geometry().dies())
    }

    /// Blocks that a dump can have on `die`.
    pub fn dump_blocks(&self, die: DieId) -> u32 {
        self.blocks().dump_blocks(die)
    }

    /// Begins a dump. The one before must have been used up ([`Ftl::finish_recovery`]).
    pub fn begin_dump(&mut self) {
        self.dumps.begin();
    }

    /// Programs a page of the dump on `die`. Returns its place; `None` if there is no room.
    pub fn dump_page(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        page: DumpPage<C>,
    ) -> Option<Ppn> {
        let blocks = self.data.blocks_mut();
        let place = self.dumps.write(die, pages_per_block, page, &mut self.medium, blocks)?;
        self.stats.programs.dump += 1;
        Some(place)
    }

    /// A program of the dump fails on `die`. Its block is used on for this dump, and never again.
    pub fn fail_dump_page(&mut self, die: DieId, pages_per_block: u32) {
        let blocks = self.data.blocks_mut();
        self.dumps.fail(die, pages_per_block, &mut self.medium, blocks);
        self.stats.programs.dump += 1;
        self.stats.program_failures += 1;
    }

    /// A block of `die` to be erased whose dump is obsolete. Those in which a program has failed are retired.
    #[inline(never)]
    pub(super) fn take_old_dump(&mut self, die: DieId) -> Option<BlockId> {
        while let Some(block) = self.dumps.take_old(die) {
            if !self.retire_failing(block) {
                return Some(block);
            }
        }
        None
    }

    /// Retires a block of the dump area in which a program has failed. True if it was one.
    fn retire_failing(&mut self, block: BlockId) -> bool {
        let fails = self.medium.health(block) == Health::Failing;
        if fails {
            self.data.blocks_mut().retire(block);
            self.medium.retire(block);
        }
        fails
    }

    /// Builds the state from what flash holds. Changes nothing on flash.
    ///
    /// # Panics
    /// If DRAM still holds something: before [`Ftl::lose_power`].
    pub fn recover(&mut self) -> Recovered<C> {
        assert!(self.map().mapped() == 0 && self.programs.is_empty(), "the power is still on");
        Recovery { ftl: self }.run()
    }

    /// The drive is ready: what the dump held is where it belongs, and its blocks will be erased.
    pub fn finish_recovery(&mut self) {
        self.dumps.use_up(&mut self.medium);
    }

    /// Erases the blocks of dumps before the last one, which are obsolete: a cut just after
    /// the recovery needs the room. A die that has lost blocks and still has no room for a dump also
    /// erases blocks in which nothing is valid.
    pub fn erase_old_dumps(&mut self) {
        let mut old = Vec::new();
        self.dumps.erase_old(|block| old.push(block));
        for block in old {
            if !self.retire_failing(block) {
                self.erase_now(block);
            }
        }
        for die in (0..self.geometry().dies()).map(DieId) {
            let needed = self.durability.blocks_per_dump();
            while self.blocks().missing_for_dump(die, needed, 0, 0) > 0 {
                let garbage = self.garbage_blocks(die).next();
                let Some(block) = garbage else { break };
                self.data.give_up(block);
                self.collector.forget_emptied(die, block);
                self.erase_now(block);
            }
        }
    }

    fn erase_now(&mut self, block: BlockId) {
        let failed = self.medium.erase_now(block);
        self.erase_ended(block, failed);
    }

    /// The blocks for data of `die` that are written, and hold nothing valid. No program is under way.
    pub(super) fn garbage_blocks(&self, die: DieId) -> impl Iterator<Item = BlockId> + '_ {
        let geometry = self.geometry();
        let of_die = (0..geometry.blocks()).map(BlockId);
        of_die.filter(move |&block| {
            let state = self.blocks().state(block);
            geometry.die_of(block) == die
                && matches!(state, BlockState::Open | BlockState::Closed | BlockState::Collected)
                && self.data.valid_in_block(block) == 0
        })
    }
}

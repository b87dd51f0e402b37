//! The way back from a power cut: an FTL that has just been made on its medium finds its table.

use leyden_nand::{BlockId, Content, DieId, Health, Lpn, PageKind, Ppa, Ppn};

use super::data::BlockState;
use super::ftl::Ftl;
use crate::dump_area::{DumpImage, Root};
use crate::map::{LogRoot, MapPage, SavedPage, decode_records};
use crate::recovery::{Reads, Recovered, Step, StepName};

/// The parts of the table that the medium holds.
struct Found<C> {
    dump: Option<DumpImage<C>>,
    /// By mapping page: what its newest copy on flash says.
    saved: Vec<Option<SavedPage>>,
}

impl<C> Found<C> {
    fn root(&self) -> Option<&Root> {
        self.dump.as_ref()?.root.as_ref()
    }

    fn log_root(&self) -> Option<LogRoot> {
        self.root()?.log
    }

    fn dumped_pages(&self) -> impl DoubleEndedIterator<Item = &(MapPage, SavedPage)> {
        self.dump.iter().flat_map(|dump| &dump.map_pages)
    }

    /// The newest copy of `page` on flash or in the dump.
    fn saved(&self, page: MapPage) -> Option<&SavedPage> {
        let dumped = self.dumped_pages().rev().find(|(other, _)| *other == page);
        dumped.map(|(_, saved)| saved).or(self.saved[page.index()].as_ref())
    }
}

/// A recovery under way.
pub(super) struct Recovery<'a, C: Content> {
    pub(super) ftl: &'a mut Ftl<C>,
}

impl<C: Content> Recovery<'_, C> {
    /// Builds the state. Changes nothing on flash.
    pub(super) fn run(&mut self) -> Recovered<C> {
        let mut steps = vec![self.find_checkpoint()];
        let found = self.find_table();
        let (load, lost) = self.load_map(&found);
        steps.push(load);
        if !lost.is_empty() {
            steps.push(self.roll_forward(&lost, &found));
        }
        steps.extend(self.replay_journal(&found));
        self.ftl.data.rebuild(self.ftl.medium.geometry());
        self.ftl.table.rebuild(&self.ftl.medium, &self.ftl.data);
        let dumped = found.dumped_pages().map(|&(page, _)| page);
        self.ftl.table.mark_unsaved(dumped, &lost, self.ftl.next_version);
        steps.push(self.open_blocks());
        let units = found.dump.map(|dump| dump.units).unwrap_or_default();
        if !units.is_empty() {
            let reads = self.dumped(PageKind::Dump);
            let per_page = self.ftl.geometry().units_per_page();
            steps.push(reads.step(StepName::PutBack, &self.ftl.medium, per_page));
        }
        steps.extend(self.erase_old_step());
        self.ftl.stats.reads.recovery += steps.iter().map(|step| step.pages).sum::<u64>();
        Recovered { steps, units, scanned_map_pages: lost.len() as u32 }
    }

    /// The time to erase the blocks of older dumps, and others that a die erases to make room for the next dump.
    fn erase_old_step(&self) -> Option<Step> {
        let needed = self.ftl.durability.blocks_per_dump();
        let blocks = |die| {
            // One in which a program failed is retired without an erase.
            let is_failing = |&block: &_| self.ftl.medium.health(block) == Health::Failing;
            let retired = self.ftl.dumps.old_blocks(die).filter(is_failing).count() as u32;
            let erased = self.ftl.dumps.old_blocks(die).count() as u32 - retired;
            let missing = self.ftl.blocks().missing_for_dump(die, needed, erased, retired);
            let garbage = if missing == 0 { 0 } else { self.ftl.garbage_blocks(die).count() };
            u64::from(erased + missing.min(garbage as u32))
        };
        let blocks = (0..self.ftl.geometry().dies()).map(DieId).map(blocks).max().unwrap_or(0);
        let time = self.ftl.medium.erase_time().saturating_mul(blocks);
        (blocks > 0).then_some(Step { name: StepName::EraseOldDumps, pages: 0, time })
    }

    fn all_blocks(&self) -> impl Iterator<Item = (BlockId, BlockState)> + '_ {
        let blocks = (0..self.ftl.geometry().blocks()).map(BlockId);
        blocks.map(|block| (block, self.ftl.blocks().state(block)))
    }

    /// The reads that find the last dump, and the places of mapping pages. One page of each block
    /// of the dump area tells whether there is a dump; its root says the rest. Mapping pages, and
    /// pages of the journal, are found by the out-of-band areas of their blocks.
    fn find_checkpoint(&self) -> Step {
        let mut reads = Reads::none(&self.ftl.medium);
        for (block, state) in self.all_blocks() {
            let pages = match state {
                BlockState::Dump => 1,
                BlockState::Map | BlockState::Journal => self.ftl.medium.written_pages(block),
                _ => 0,
            };
            reads.add(self.ftl.geometry().die_of(block), u64::from(pages));
        }
        reads.step(StepName::FindCheckpoint, &self.ftl.medium, 0)
    }

    /// Reads the dump, and finds the newest copy of each mapping page and the pages of the journal.
    fn find_table(&mut self) -> Found<C> {
        let pages = self.ftl.map().pages() as usize;
        let mut newest: Vec<Option<(u64, Ppn)>> = vec![None; pages];
        let mut journal = Vec::new();
        for (block, _) in self.all_blocks().filter(|&(_, state)| state.is_kept()) {
            for (place, page) in self.ftl.medium.meta_pages(block) {
                match (page.kind, self.ftl.blocks().state(block)) {
                    (PageKind::Mapping, BlockState::Map) => {
                        let copy = &mut newest[page.number as usize];
                        *copy = (*copy).max(Some((page.sequence, place)));
                    }
                    (PageKind::Journal, BlockState::Journal) => {
                        let records = decode_records(&page.bytes).unwrap_or_default();
                        journal.push((page.number, place, records));
                    }
                    _ => {}
                }
            }
        }
        if let Some(log) = self.ftl.table.store_mut().log_mut() {
            for (number, place, records) in journal {
                log.found(number, place, records);
            }
        }
        let mut saved = Vec::with_capacity(pages);
        for (page, copy) in (0..).map(MapPage).zip(newest) {
            saved.push(copy.and_then(|(sequence, place)| {
                self.ftl.table.found(page, place, sequence);
                SavedPage::decode(&self.ftl.medium.meta_page(place)?.bytes)
            }));
        }
        Found { dump: self.ftl.dumps.read(&self.ftl.medium), saved }
    }

    /// True if there is no journal, or flash and the dump hold all of it that is needed.
    fn journal_is_whole(&self, found: &Found<C>) -> bool {
        let (Some(log), Some(dump)) = (self.ftl.store().log(), &found.dump) else { return true };
        found.log_root().is_some_and(|root| log.is_whole(root, &dump.journal))
    }

    /// Loads each mapping page from the dump, or from where it lies. Returns those whose state at the
    /// cut is nowhere.
    fn load_map(&mut self, found: &Found<C>) -> (Step, Vec<MapPage>) {
        let all = || (0..found.saved.len() as u32).map(MapPage);
        let mut reads = self.dumped(PageKind::Root);
        reads.add_dumped(&self.ftl.dumps, &self.ftl.medium, PageKind::Mapping);
        let mut is_dumped = vec![false; found.saved.len()];
        for (page, saved) in found.dumped_pages() {
            is_dumped[page.index()] = true;
            self.ftl.data.load(*page, &saved.entries);
        }
        for page in all().filter(|page| !is_dumped[page.index()]) {
            if let Some(saved) = &found.saved[page.index()] {
                self.ftl.data.load(page, &saved.entries);
                reads.add(self.ftl.die_of_map_page(page), 1);
            }
        }
        let step =
            reads.step(StepName::LoadMap, &self.ftl.medium, self.ftl.geometry().units_per_page());
        self.ftl.next_version = found.root().map_or(1, |root| root.next_version.max(1));
        let scans_all = self.ftl.store().trims_only() || !self.journal_is_whole(found);
        match found.root() {
            Some(root) if !scans_all => {
                let missing = root.map_pages.iter().filter(|page| !is_dumped[page.index()]);
                (step, missing.copied().collect())
            }
            // Without its root, the missing pages are unknown.
            _ => (step, all().collect()),
        }
    }

    /// Finds the newest copy of every unit whose mapping page is among `lost`, by the out-of-band
    /// areas of all pages written. A saved page stands for its entries against anything older: what
    /// it does not map was trimmed.
    fn roll_forward(&mut self, lost: &[MapPage], found: &Found<C>) -> Step {
        assert!(self.ftl.medium.has_versions(), "a drive that cannot lose its table has lost it");
        let trimmed_below = self.forget_lost(lost, found);
        let mut newest = vec![0_u64; self.ftl.map().len() as usize];
        let mut reads = Reads::none(&self.ftl.medium);
        let mut latest = 0;
        for block in (0..self.ftl.geometry().blocks()).map(BlockId) {
            let state = self.ftl.blocks().state(block);
            if matches!(state, BlockState::Free | BlockState::Bad) || state.is_kept() {
                continue;
            }
            let pages = self.ftl.medium.written_pages(block);
            reads.add(self.ftl.geometry().die_of(block), u64::from(pages));
            let first = self.ftl.geometry().first_unit_of_block(block).0;
            let written = pages * self.ftl.geometry().units_per_page();
            for unit in (first..first + written).map(Ppa) {
                latest = latest.max(self.ftl.medium.version(unit));
                self.consider(unit, &trimmed_below, &mut newest);
            }
        }
        // Above everything that was ever written, what is not wanted any more included: else a saved
        // page would take what comes next for something that it knows to be trimmed.
        let settled = found.saved.iter().flatten().map(|saved| saved.settled_below);
        self.ftl.next_version =
            self.ftl.next_version.max(latest + 1).max(settled.max().unwrap_or(0));
        reads.step(StepName::RollForward, &self.ftl.medium, 0)
    }

    /// A unit's out-of-band area was read: its owner lies there, unless a newer copy is known.
    fn consider(&mut self, unit: Ppa, trimmed_below: &[Vec<u64>], newest: &mut [u64]) {
        let Some(lpn) = self.ftl.medium.lpn(unit) else { return };
        let page = self.ftl.map().page_of(lpn);
        let Some(limits) = trimmed_below.get(page.index()).filter(|limits| !limits.is_empty())
        else {
            return; // its mapping page was not lost
        };
        let version = self.ftl.medium.version(unit);
        let at = (lpn.0 - self.ftl.map().lpns_of(page).0.0) as usize;
        let known = newest[lpn.index()];
        let is_older = version <= known;
        if version < limits[at] || is_older {
            return;
        }
        newest[lpn.index()] = version;
        self.ftl.data.found(lpn, Some(unit));
    }

    /// Unmaps the lost pages. For each of their entries: below which version data is known to be
    /// trimmed.
    fn forget_lost(&mut self, lost: &[MapPage], found: &Found<C>) -> Vec<Vec<u64>> {
        let mut limits = vec![Vec::new(); found.saved.len()];
        for &page in lost {
            let (first, end) = self.ftl.map().lpns_of(page);
            let settled_below = found.saved(page).map_or(0, |saved| saved.settled_below);
            for lpn in (first.0..end.0).map(Lpn) {
                // A trimmed entry stays so against everything the page knew of. Versions begin at
                // 1, so a limit of 0 lets everything pass.
                let is_mapped = self.ftl.map().get(lpn).is_some();
                self.ftl.data.found(lpn, None);
                let knows = !is_mapped;
                limits[page.index()].push(if knows { settled_below } else { 0 });
            }
        }
        limits
    }

    /// Replays the journal from its tail, in order. Of a mapping page, what it knew when it was written
    /// is left out. If part of the journal is lost, a scan has found every entry, and the journal starts over.
    fn replay_journal(&mut self, found: &Found<C>) -> Option<Step> {
        self.ftl.store().log()?;
        let root = found.log_root().filter(|_| self.journal_is_whole(found));
        let Some((root, dump)) = root.zip(found.dump.as_ref()) else {
            let head = self.ftl.table.journal_end();
            self.ftl.table.store_mut().log_mut()?.begin_anew(head);
            return None;
        };
        let records = self.ftl.table.store_mut().log_mut()?.recover(root, &dump.journal);
        let mut reads = self.dumped(PageKind::Journal);
        let log = self.ftl.store().log()?;
        for (number, _) in log.places() {
            reads.add(log.die_of(number), 1);
        }
        for (number, record) in records {
            let page = self.ftl.map().page_of(record.lpn);
            let saved = found.saved[page.index()].as_ref();
            if saved.is_none_or(|saved| number >= saved.records_below) {
                self.ftl.data.found(record.lpn, record.unit);
                self.ftl.table.store_mut().log_mut()?.mark_dirty(page, number);
            }
        }
        let units = self.ftl.geometry().units_per_page();
        Some(reads.step(StepName::ReplayJournal, &self.ftl.medium, units))
    }

    /// The reads that find the end of each open block: a search by halves over its pages.
    fn open_blocks(&self) -> Step {
        let mut reads = Reads::none(&self.ftl.medium);
        let each = u64::from(self.ftl.geometry().pages_per_block().ilog2() + 1);
        for (block, _) in self.all_blocks().filter(|&(_, state)| state == BlockState::Open) {
            reads.add(self.ftl.geometry().die_of(block), each);
        }
        reads.step(StepName::OpenBlocks, &self.ftl.medium, 0)
    }

    /// The pages of a kind that the dump holds, each on the die that it went to.
    fn dumped(&self, kind: PageKind) -> Reads {
        let mut reads = Reads::none(&self.ftl.medium);
        reads.add_dumped(&self.ftl.dumps, &self.ftl.medium, kind);
        reads
    }
}

//! Finding the mapping table: in the dump, in the mapping pages' blocks, or in the out-of-band areas.

use leyden_nand::{BlockId, Content, DieId, Lpn, Ppa};
use leyden_sim::Span;
use leyden_sim::canary::{Canary, is_planted};

use crate::map::MapPage;
use crate::page_mapped::{BlockState, Ftl};

use super::{Step, StepName};

impl<C: Content> Ftl<C> {
    /// Finds the last dump, and where mapping pages lie.
    pub(super) fn find_checkpoint(&self) -> Step {
        // One page of each block kept back tells whether there is a dump; its root page says the rest.
        // Mapping pages are found by the out-of-band areas of their blocks.
        let mut reads = self.reads();
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let pages = match self.blocks.state(block) {
                BlockState::Dump => 1,
                BlockState::Map | BlockState::Journal => self.blocks.written_pages(block),
                _ => 0,
            };
            reads[self.geometry.die_of(block).index()] += u64::from(pages);
        }
        self.step(StepName::FindCheckpoint, &reads, 0)
    }

    /// Loads each mapping page from the dump, or from where it lies. Returns those whose state at the
    /// cut is nowhere.
    pub(super) fn load_map(&mut self) -> (Step, Vec<MapPage>) {
        let mut reads = self.reads();
        let mut lost = Vec::new();
        let mut found = vec![false; self.map.pages() as usize];
        let mut next_version = 0;
        if let Some(dump) = &self.dump {
            for &(page, ref saved) in &dump.map_pages {
                found[page.index()] = true;
                self.map.load(page, &saved.entries);
                reads[self.die_of_map_page(page).index()] += 1;
            }
            let missing = |root: &super::Root| {
                let missing = root.map_pages.iter().filter(|page| !found[page.index()]);
                missing.copied().collect::<Vec<_>>()
            };
            match &dump.root {
                Some(root) => {
                    lost.extend(missing(root));
                    next_version = root.next_version;
                }
                // Nobody knows which pages are missing.
                None => lost.extend((0..self.map.pages()).map(MapPage)),
            }
        }
        let scans_all = self.store.trims_only() || self.dump.is_none() || !self.journal_is_whole();
        for page in (0..self.map.pages()).map(MapPage).filter(|page| !found[page.index()]) {
            if let Some(saved) = self.store.saved(page) {
                self.map.load(page, &saved.entries);
                reads[self.die_of_map_page(page).index()] += 1;
            }
        }
        if scans_all {
            lost = (0..self.map.pages()).map(MapPage).collect();
        }
        self.next_version = next_version.max(1);
        (self.step(StepName::LoadMap, &reads, self.geometry.units_per_page()), lost)
    }

    /// Finds the newest copy of every unit whose mapping page is among `lost`, by the out-of-band
    /// areas of all pages written. A saved page stands for its entries against anything older: what
    /// it does not map was trimmed.
    pub(super) fn roll_forward(&mut self, lost: &[MapPage]) -> Step {
        assert!(self.media.has_versions(), "a drive that cannot lose its table has lost it");
        let trimmed_below = self.forget_lost(lost);
        let mut newest = vec![0_u64; self.map.len() as usize];
        let mut reads = self.reads();
        let mut latest = 0;
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let state = self.blocks.state(block);
            if matches!(state, BlockState::Free | BlockState::Bad) || state.is_kept() {
                continue;
            }
            reads[self.geometry.die_of(block).index()] +=
                u64::from(self.blocks.written_pages(block));
            let first = self.geometry.first_unit_of_block(block).0;
            let written = self.blocks.written_pages(block) * self.geometry.units_per_page();
            for unit in (first..first + written).map(Ppa) {
                latest = latest.max(self.media.version(unit));
                self.found(unit, &trimmed_below, &mut newest);
            }
        }
        // Above everything that was ever written, what is not wanted any more included: else a saved
        // page would take what comes next for something that it knows to be trimmed.
        let pages = (0..self.map.pages()).map(MapPage);
        let settled = pages.filter_map(|page| self.store.saved(page)).map(|s| s.settled_below);
        self.next_version = self.next_version.max(latest + 1).max(settled.max().unwrap_or(0));
        self.step(StepName::RollForward, &reads, 0)
    }

    /// A unit's out-of-band area was read: its owner lies there, unless a newer copy is known.
    fn found(&mut self, unit: Ppa, trimmed_below: &[Vec<u64>], newest: &mut [u64]) {
        let Some(lpn) = self.media.lpn(unit) else { return };
        let page = self.map.page_of(lpn);
        let Some(limits) = trimmed_below.get(page.index()).filter(|limits| !limits.is_empty())
        else {
            return; // its mapping page was not lost
        };
        let version = self.media.version(unit);
        let at = (lpn.0 - self.map.lpns_of(page).0.0) as usize;
        let known = newest[lpn.index()];
        let is_older = if is_planted(Canary::OlderVersionWins) {
            known != 0 && version >= known
        } else {
            version <= known
        };
        if version < limits[at] || is_older {
            return;
        }
        newest[lpn.index()] = version;
        self.map.set(lpn, unit);
    }

    /// Unmaps the lost pages. For each of their entries: below which version data is known to be
    /// trimmed.
    fn forget_lost(&mut self, lost: &[MapPage]) -> Vec<Vec<u64>> {
        let mut limits = vec![Vec::new(); self.map.pages() as usize];
        for &page in lost {
            let (first, end) = self.map.lpns_of(page);
            let mut dumped = self.dump.iter().flat_map(|dump| dump.map_pages.iter().rev());
            let saved = dumped.find(|(other, _)| *other == page).map(|(_, saved)| saved);
            let settled_below = saved.or(self.store.saved(page)).map_or(0, |s| s.settled_below);
            limits[page.index()] = (first.0..end.0)
                .map(|lpn| {
                    let mapped = self.map.unmap(Lpn(lpn)).is_some();
                    // A trimmed entry stays so against everything the page knew of. Versions begin at
                    // 1, so a limit of 0 lets everything pass.
                    if mapped { 0 } else { settled_below }
                })
                .collect();
        }
        limits
    }

    /// Reads of each die, none yet.
    pub(super) fn reads(&self) -> Vec<u64> {
        vec![0; self.geometry.dies() as usize]
    }

    /// What it takes to read `reads` pages of each die, and to transfer `units` units of each: dies
    /// read side by side, a channel carries one transfer at a time. For out-of-band areas alone
    /// (`units` is 0) only the array's time counts.
    pub(super) fn step(&self, name: StepName, reads: &[u64], units: u32) -> Step {
        let (read, transfer) = self.flash.read_times(units);
        let mut on_channel = vec![0_u64; self.geometry.channels() as usize];
        let mut time = Span::ZERO;
        for (die, &pages) in reads.iter().enumerate() {
            on_channel[self.geometry.channel_of(DieId(die as u32)).index()] += pages;
            time = time.max((read + transfer).saturating_mul(pages));
        }
        for pages in on_channel.into_iter().filter(|&pages| pages > 0) {
            time = time.max(read + transfer.saturating_mul(pages));
        }
        Step { name, pages: reads.iter().sum(), time }
    }
}

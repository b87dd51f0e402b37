//! Everything that follows from the mapping table: which units are valid, and what each block is.

use leyden_nand::{BlockId, Content, DieId, Lpn};
use leyden_sim::Time;

use crate::map::MapPage;
use crate::page_mapped::{BlockState, Ftl};

use super::{Step, StepName};

impl<C: Content> Ftl<C> {
    /// Counts valid units, and sorts blocks by what they hold.
    pub(super) fn rebuild_blocks(&mut self) {
        let end = Lpn(self.map.len());
        let mut next = Lpn(0);
        while let Some(lpn) = self.map.next_mapped(next, end) {
            let unit = self.map.get(lpn).expect("it is mapped");
            self.validity.set(unit);
            self.blocks.add_valid(self.geometry.block_of(unit));
            next = Lpn(lpn.0 + 1);
        }
        for page in (0..self.map.pages()).map(MapPage) {
            if let Some(place) = self.store.place(page) {
                self.validate_map_place(place);
            }
        }
        self.blocks.sort();
        for block in std::mem::take(&mut self.half_erased) {
            self.erase_again(block);
        }
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.blocks.state(block) == BlockState::Closed {
                self.index.insert(block, self.blocks.valid(block), 0, Time::ZERO);
            }
        }
        for die in (0..self.map_dies.len() as u32).map(DieId) {
            self.resume_map_blocks(die);
        }
    }

    /// A block whose erase was broken off holds nothing, and is erased before it is used.
    fn erase_again(&mut self, block: BlockId) {
        let die = self.geometry.die_of(block).index();
        match self.blocks.state(block) {
            BlockState::Map => self.map_dies[die].erase_again(block),
            BlockState::Journal => self.journal_dies[die].erase_again(block),
            BlockState::Dump => {
                self.dump_dies[die].written.retain(|&other| other != block);
                self.dump_dies[die].to_erase.push(block);
            }
            _ => {
                self.blocks.collect(block);
                self.collections[die].erase_again(block);
            }
        }
    }

    /// The mapping pages that flash does not hold as they are now are dirty again.
    pub(super) fn mark_unsaved(&mut self, lost: &[MapPage]) {
        if !self.store.writes_back() {
            return;
        }
        if self.store.log().is_some() {
            self.mark_logged(lost);
            return;
        }
        let dumped: Vec<MapPage> =
            self.dump.iter().flat_map(|dump| &dump.map_pages).map(|&(page, _)| page).collect();
        for page in dumped {
            if self.store.trims_only() {
                self.trim_versions[page.index()] = self.next_version;
            }
            if self.store.recovered(page) {
                self.queue_writeback(page);
            }
        }
        if !self.store.trims_only() {
            for &page in lost {
                self.store.recovered(page);
            }
            self.make_room(0);
        }
    }

    /// Finds where each open block goes on: a search by halves over its pages.
    pub(super) fn open_blocks(&self) -> Step {
        let mut reads = self.reads();
        let each = u64::from(self.geometry.pages_per_block().ilog2() + 1);
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if self.blocks.state(block) == BlockState::Open {
                reads[self.geometry.die_of(block).index()] += each;
            }
        }
        self.step(StepName::OpenBlocks, &reads, 0)
    }

    /// Reads the pages of the dump that hold `units` units of the host's data.
    pub(super) fn put_back_step(&self, units: usize) -> Step {
        let pages = (units as u64).div_ceil(u64::from(self.geometry.units_per_page()));
        let dies = u64::from(self.geometry.dies());
        let reads: Vec<u64> = (0..dies).map(|die| (pages + dies - 1 - die) / dies).collect();
        self.step(StepName::PutBack, &reads, self.geometry.units_per_page())
    }
}

//! What a dump has written, and the blocks it was written to.

use leyden_nand::{BlockId, Content, DieId, Kind, Lpn, Operation, Ppn};
use leyden_sim::Time;
use leyden_sim::canary::{Canary, is_planted};
use serde::{Deserialize, Serialize};

use crate::map::{LogRoot, MapPage, Record, SavedPage};
use crate::page_mapped::{BlockState, Ftl};

/// The first page of a dump: what the rest holds. It lists the pages of the mapping table that are
/// newer in this dump than anywhere else, so that recovery knows what is missing. Of a journal it says
/// which records are needed, and lists the mapping pages that the records do not tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The mapping pages that the dump is to hold.
    pub map_pages: Vec<MapPage>,
    /// The version of the next page of data.
    pub next_version: u64,
    /// Which part of the mapping table's journal is needed, if there is one.
    pub log: Option<LogRoot>,
}

/// A page of a dump.
#[derive(Clone, Debug)]
pub enum DumpPage<C> {
    /// What the dump holds.
    Root(Root),
    /// Up to a page of units of the host's data, with their home addresses.
    Units(Vec<(Lpn, C)>),
    /// A mapping page.
    Map(MapPage, SavedPage),
    /// A page of the mapping table's journal, by its number.
    Journal(u64, Box<[Record]>),
}

/// The dump that flash holds: what its pages say, in the order they were written. It is kept beside
/// the cells, since its pages are laid out otherwise than pages of data.
#[derive(Clone, Debug)]
pub struct DumpImage<C> {
    pub(crate) root: Option<Root>,
    pub(crate) units: Vec<(Lpn, C)>,
    pub(crate) map_pages: Vec<(MapPage, SavedPage)>,
    pub(crate) journal: Vec<(u64, Box<[Record]>)>,
    pub(crate) pages: u64,
}

impl<C> Default for DumpImage<C> {
    fn default() -> Self {
        Self { root: None, units: Vec::new(), map_pages: Vec::new(), journal: Vec::new(), pages: 0 }
    }
}

/// One die's blocks for dumps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DumpDie {
    /// Blocks that hold the last dump, the last one perhaps in part.
    pub(crate) written: Vec<BlockId>,
    /// Blocks whose dump is not needed any more.
    pub(crate) to_erase: Vec<BlockId>,
}

impl<C: Content> Ftl<C> {
    /// Blocks that a dump can have on `die`.
    pub fn dump_blocks(&self, die: DieId) -> u32 {
        self.blocks.dump_blocks(die)
    }

    /// Erases the blocks of dumps before the last one, which nobody needs any more: a cut just after
    /// the recovery needs the room. Returns how many that were on the die with the most.
    pub fn erase_old_dumps(&mut self) -> u32 {
        let mut most = 0;
        for die in 0..self.dump_dies.len() {
            if is_planted(Canary::OldDumpsKept) {
                continue;
            }
            let blocks = std::mem::take(&mut self.dump_dies[die].to_erase);
            most = most.max(blocks.len() as u32);
            for block in blocks {
                let failed = self.flash.erase_now();
                self.end_erase(block, failed);
            }
        }
        most
    }

    /// Blocks of dumps before the last one, on the die with the most.
    pub(super) fn old_dump_blocks(&self) -> usize {
        self.dump_dies.iter().map(|die| die.to_erase.len()).max().unwrap_or(0)
    }

    /// Begins a dump. The one before must have been given up ([`Ftl::finish_recovery`]).
    pub fn begin_dump(&mut self) {
        assert!(self.dump_dies.iter().all(|die| die.written.is_empty()), "an older dump is needed");
        self.dump = Some(DumpImage::default());
    }

    /// Programs a page of the dump on `die`. Returns its place; `None` if there is no room.
    pub fn dump_page(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        page: DumpPage<C>,
    ) -> Option<Ppn> {
        let open = self.dump_dies[die.index()].written.last().copied();
        let open = open.filter(|&open| self.blocks.written_pages(open) < pages_per_block);
        let block = if let Some(open) = open {
            open
        } else {
            let block = self.blocks.take_kept(die, BlockState::Dump)?;
            self.dump_dies[die.index()].written.push(block);
            block
        };
        let place = self.blocks.next_page(block)?;
        let image = self.dump.as_mut().expect("a dump was begun");
        image.pages += 1;
        match page {
            DumpPage::Root(root) => image.root = Some(root),
            DumpPage::Units(units) => image.units.extend(units),
            DumpPage::Map(page, saved) => image.map_pages.push((page, saved)),
            DumpPage::Journal(number, records) => image.journal.push((number, records)),
        }
        self.stats.dump_programs += 1;
        Some(place)
    }

    /// Starts the erase of a block of `die` whose dump is not needed any more. True if there was one.
    pub(crate) fn erase_dump_block(&mut self, now: Time, die: DieId) -> bool {
        if !self.blocks.keeps_for_dumps() {
            return false;
        }
        let Some(block) = self.dump_dies[die.index()].to_erase.pop() else { return false };
        self.flash.submit(now, Operation { kind: Kind::Erase(block), bytes: 0, tag: 0 });
        true
    }
}

//! Sudden power-off recovery (SPOR): what flash holds after a cut, and the way back from it.
//!
//! **What lives here**: what a cut leaves behind ([`Ftl::lose_power`]), what a dump has written
//! ([`DumpImage`]), and the steps that build the FTL's state from flash alone ([`Ftl::recover`]).
//! **What doesn't**: what is dumped, in which order and with which energy; that is the device's.
//!
//! **What flash holds**, beside the data itself:
//! - in the out-of-band area of each unit its owner and, where recovery may need it, its version
//!   ([`leyden_nand::Media`]);
//! - mapping pages in blocks of their own, each saying below which version it is right
//!   ([`crate::map::SavedPage`]); where they lie is found by scanning those blocks;
//! - pages of the mapping table's journal in blocks of their own, each with its number;
//! - in the blocks kept back for it, the last dump: a root page, the host's data, mapping pages, pages of
//!   the journal;
//! - the bad block table, and each block's erase count: never lost, and not timed.
//!
//! **Invariants**
//! - Nothing that DRAM held survives [`Ftl::lose_power`]: recovery reads flash only.
//! - Recovery programs nothing, and erases nothing that is needed, so that a cut in the middle of it
//!   changes nothing: it is begun again. The dump is given up only when the drive is ready, and has
//!   room for another ([`Ftl::finish_recovery`]).

mod cut;
mod image;
mod rebuild;
mod replay;
mod scan;

use leyden_nand::{Content, Lpn};
use leyden_sim::Span;

pub(crate) use image::DumpDie;
pub use image::{DumpImage, DumpPage, Root};

use crate::page_mapped::Ftl;

/// A step of recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StepName {
    /// Find the dump's root page, or else every mapping page by the out-of-band areas of their blocks.
    FindCheckpoint,
    /// Load the mapping pages.
    LoadMap,
    /// Find the newest copy of every unit by the out-of-band areas of all pages.
    RollForward,
    /// Replay the mapping table's journal from its tail.
    ReplayJournal,
    /// Bring the host's data that was dumped back into the buffer.
    PutBack,
    /// Find the first page of each open block that is not written.
    OpenBlocks,
    /// Erase the blocks of dumps before the last one, so that there is room for the next.
    EraseOldDumps,
}

/// A step that was taken, and what it cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which.
    pub name: StepName,
    /// Pages read.
    pub pages: u64,
    /// How long that took.
    pub time: Span,
}

/// The outcome of a recovery.
#[derive(Clone, Debug)]
pub struct Recovered<C> {
    /// In the order they were taken.
    pub steps: Vec<Step>,
    /// The host's data that was dumped, to be put back into the buffer in this order.
    pub units: Vec<(Lpn, C)>,
    /// Mapping pages that neither the dump nor flash held as they were at the cut: their entries were
    /// found by scanning.
    pub scanned_map_pages: u32,
}

impl<C: Content> Ftl<C> {
    /// Builds the state from what flash holds. Changes nothing on flash.
    ///
    /// # Panics
    /// If DRAM still holds something: before [`Ftl::lose_power`].
    pub fn recover(&mut self) -> Recovered<C> {
        assert!(self.map.mapped() == 0 && self.inflight.is_empty(), "the power is still on");
        let mut steps = vec![self.find_checkpoint()];
        let (load, lost) = self.load_map();
        steps.push(load);
        if !lost.is_empty() {
            steps.push(self.roll_forward(&lost));
        }
        steps.extend(self.replay_journal());
        self.rebuild_blocks();
        self.mark_unsaved(&lost);
        steps.push(self.open_blocks());
        let units = self.dump.as_ref().map(|dump| dump.units.clone()).unwrap_or_default();
        if !units.is_empty() {
            steps.push(self.put_back_step(units.len()));
        }
        steps.extend(self.erase_old_step());
        Recovered { steps, units, scanned_map_pages: lost.len() as u32 }
    }

    /// What it takes to erase the blocks of older dumps.
    fn erase_old_step(&self) -> Option<Step> {
        let blocks = self.old_dump_blocks() as u64;
        let time = self.flash.erase_time().saturating_mul(blocks);
        (blocks > 0).then_some(Step { name: StepName::EraseOldDumps, pages: 0, time })
    }

    /// The drive is ready: what the dump held is where it belongs, and its blocks will be erased.
    pub fn finish_recovery(&mut self) {
        self.dump = None;
        for die in 0..self.dump_dies.len() {
            let blocks = std::mem::take(&mut self.dump_dies[die].written);
            self.dump_dies[die].to_erase.extend(blocks);
        }
    }
}

//! Sudden power-off recovery (SPOR): its steps, and what they cost.
//!
//! **What flash holds**, beside the data itself:
//! - in the out-of-band area of each unit its owner and, where recovery may need it, its version;
//! - mapping pages in blocks of their own, each saying below which version it is right
//!   ([`crate::map::SavedPage`]), numbered in the order they were written;
//! - pages of the mapping table's journal in blocks of their own, each with its number;
//! - in the dump area the last dump ([`crate::dump_area`]);
//! - the system area ([`leyden_nand::Medium`]).
//!
//! **Invariants**
//! - Nothing that DRAM held survives a cut: what recovers is made from the medium alone.
//! - Recovery programs nothing, and erases only obsolete blocks, so that a cut in the middle of it
//!   changes nothing: it is begun again. The dump is used up only when the drive is ready, and has room
//!   for another.

use leyden_nand::{Content, DieId, Lpn, Medium, PageKind};
use leyden_sim::Span;

use crate::dump_area::DumpArea;

/// A step of recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StepName {
    /// Find the dump's root page, or else every mapping page by the out-of-band areas of their blocks.
    FindCheckpoint,
    /// Read the dump's root, and load the mapping pages.
    LoadMap,
    /// Find the newest copy of every unit by the out-of-band areas of all pages.
    RollForward,
    /// Replay the mapping table's journal from its tail.
    ReplayJournal,
    /// Bring the host's data that was dumped back into the buffer.
    PutBack,
    /// Find the first page of each open block that is not written.
    OpenBlocks,
    /// Erase the blocks of dumps before the last one, so that there is room for the next; and, where blocks that
    /// were kept back for it have gone bad, blocks in which nothing is valid.
    EraseOldDumps,
}

impl StepName {
    /// Its name in records and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FindCheckpoint => "find_checkpoint",
            Self::LoadMap => "load_map",
            Self::RollForward => "roll_forward",
            Self::ReplayJournal => "replay_journal",
            Self::PutBack => "put_back",
            Self::OpenBlocks => "open_blocks",
            Self::EraseOldDumps => "erase_old_dumps",
        }
    }
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

/// Pages that a step reads of each die.
#[derive(Clone, Debug)]
pub(crate) struct Reads {
    by_die: Vec<u64>,
}

impl Reads {
    pub(crate) fn none<C: Content>(medium: &Medium<C>) -> Self {
        Self { by_die: vec![0; medium.geometry().dies() as usize] }
    }

    pub(crate) fn add(&mut self, die: DieId, pages: u64) {
        self.by_die[die.index()] += pages;
    }

    /// The pages of the last dump that are of `kind`, where they lie.
    pub(crate) fn add_dumped<C: Content>(
        &mut self,
        dumps: &DumpArea,
        medium: &Medium<C>,
        kind: PageKind,
    ) {
        for (place, _) in dumps.by_block(medium).filter(|(_, page)| page.kind == kind) {
            self.add(medium.geometry().die_of_page(place), 1);
        }
    }

    /// The step that reads these pages, and transfers `units` units of each: dies read side by
    /// side, a channel carries one transfer at a time. For out-of-band areas alone (`units` is 0)
    /// only the array's time counts.
    pub(crate) fn step<C: Content>(&self, name: StepName, medium: &Medium<C>, units: u32) -> Step {
        let (read, transfer) = medium.read_times(units);
        let geometry = medium.geometry();
        let mut on_channel = vec![0_u64; geometry.channels() as usize];
        let mut time = Span::ZERO;
        for (die, &pages) in (0..).map(DieId).zip(&self.by_die) {
            on_channel[geometry.channel_of(die).index()] += pages;
            time = time.max((read + transfer).saturating_mul(pages));
        }
        for pages in on_channel.into_iter().filter(|&pages| pages > 0) {
            time = time.max(read + transfer.saturating_mul(pages));
        }
        Step { name, pages: self.by_die.iter().sum(), time }
    }
}

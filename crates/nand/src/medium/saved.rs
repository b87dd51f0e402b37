//! The medium at rest, as snapshots hold it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use leyden_sim::Rng;
use serde::{Deserialize, Serialize};

use super::Medium;
use super::block::Block;
use crate::cells::CellsState;
use crate::{Content, MetaPage, Ppn};

/// A medium at rest, borrowed to save it or owned when loaded.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct MediumState<'a, C: Content> {
    cells: CellsState<'a, C>,
    pages: Cow<'a, BTreeMap<Ppn, MetaPage>>,
    blocks: Cow<'a, [Block]>,
    used_dump: u64,
    fault_rng: Rng,
}

impl<C: Content> Medium<C> {
    /// The state at rest.
    ///
    /// # Panics
    /// If anything is in progress.
    pub fn state(&self) -> MediumState<'_, C> {
        assert!(self.is_idle(), "the flash is at work");
        MediumState {
            cells: CellsState::Here(&self.cells),
            pages: Cow::Borrowed(&self.pages),
            blocks: Cow::Borrowed(&self.blocks),
            used_dump: self.used_dump,
            fault_rng: self.flash.rng().clone(),
        }
    }

    /// Takes over a state. False if it is not of a medium of this shape.
    pub fn restore(&mut self, state: MediumState<'_, C>) -> bool {
        let pages = self.geometry.pages();
        let fits = state.blocks.len() == self.blocks.len()
            && state
                .blocks
                .iter()
                .all(|block| block.written_pages <= self.geometry.pages_per_block())
            && state.pages.keys().all(|page| page.0 < pages)
            && self.cells.restore(state.cells);
        if fits {
            self.pages = state.pages.into_owned();
            self.blocks = state.blocks.into_owned();
            self.note_all_blocks();
            self.used_dump = state.used_dump;
            self.flash.set_rng(state.fault_rng);
        }
        fits
    }
}

//! The FTL's state at rest, to save and load.

use leyden_nand::{Content, Media};
use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::check::Violation;
use super::collect::Collection;
use super::ftl::Ftl;
use super::validity::Validity;
use crate::gc::VictimIndex;
use crate::map::MapTable;

/// Everything that outlives an idle moment, borrowed or owned. Counters start anew.
#[derive(Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct FtlState<C: Content> {
    map: MapTable,
    validity: Validity,
    blocks: Blocks,
    index: VictimIndex,
    collections: Vec<Collection>,
    media: Media<C>,
    fault_rng: leyden_sim::Rng,
}

impl<C: Content> Ftl<C> {
    /// The state at rest.
    ///
    /// # Panics
    /// If an operation is in progress.
    pub fn state(&self) -> FtlState<C> {
        assert!(self.is_idle() && self.inflight.is_empty(), "the flash is at work");
        FtlState {
            map: self.map.clone(),
            validity: self.validity.clone(),
            blocks: self.blocks.clone(),
            index: self.index.clone(),
            collections: self.collections.clone(),
            media: self.media.clone(),
            fault_rng: self.flash.rng().clone(),
        }
    }

    /// True if `state` is of a drive of this shape.
    pub fn fits(&self, state: &FtlState<C>) -> bool {
        let streams = self.placement.streams();
        state.map.len() == self.map.len()
            && state.map.pages() == self.map.pages()
            && state.validity.fits(&self.geometry)
            && state.blocks.fits(&self.geometry, streams)
            && state.index.fits(&self.geometry)
            && state.collections.len() == self.collections.len()
            && state.collections.iter().all(|collection| collection.fits(streams))
            && state.media.fits(&self.geometry)
    }

    /// Takes over a state that was saved from a drive of the same configuration. Refuses one that
    /// contradicts itself; this FTL is of no use then.
    ///
    /// # Panics
    /// If the state does not fit ([`Ftl::fits`]).
    pub fn restore(&mut self, state: FtlState<C>) -> Result<(), Violation> {
        assert!(self.fits(&state), "a snapshot of another shape");
        (self.map, self.validity, self.blocks) = (state.map, state.validity, state.blocks);
        (self.index, self.collections, self.media) = (state.index, state.collections, state.media);
        self.flash.set_rng(state.fault_rng);
        self.check()
    }
}

//! The FTL's state at rest, to save and load.

use std::borrow::Cow;

use leyden_nand::{Content, Media};
use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::check::Violation;
use super::collect::Collection;
use super::ftl::Ftl;
use super::journal::JournalDie;
use super::mapping::MapDie;
use super::moves::Moves;
use super::validity::Validity;
use super::zombies::Zombies;
use crate::gc::VictimIndex;
use crate::logs::Logs;
use crate::map::{MapStoreState, MapTable};
use crate::recovery::DumpDie;

/// Everything that outlives an idle moment: borrowed to save it, so that a large drive is not copied
/// for that, and owned when loaded. Counters start anew.
#[derive(Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct FtlState<'a, C: Content> {
    map: Cow<'a, MapTable>,
    store: MapStoreState,
    map_dies: Cow<'a, [MapDie]>,
    journal_dies: Cow<'a, [JournalDie]>,
    trim_versions: Cow<'a, [u64]>,
    moves: Cow<'a, Moves>,
    dump_dies: Cow<'a, [DumpDie]>,
    next_version: u64,
    validity: Cow<'a, Validity>,
    zombies: Cow<'a, Zombies>,
    logs: Cow<'a, Logs>,
    blocks: Cow<'a, Blocks>,
    index: Cow<'a, VictimIndex>,
    collections: Cow<'a, [Collection]>,
    media: Cow<'a, Media<C>>,
    fault_rng: leyden_sim::Rng,
    victim_rng: leyden_sim::Rng,
}

impl<C: Content> Ftl<C> {
    /// The state at rest.
    ///
    /// # Panics
    /// If an operation is in progress.
    pub fn state(&self) -> FtlState<'_, C> {
        assert!(self.is_idle() && self.inflight.is_empty(), "the flash is at work");
        assert!(self.dump.is_none(), "the drive is not ready");
        FtlState {
            map: Cow::Borrowed(&self.map),
            store: self.store.state(),
            map_dies: Cow::Borrowed(&self.map_dies),
            journal_dies: Cow::Borrowed(&self.journal_dies),
            trim_versions: Cow::Borrowed(&self.trim_versions),
            moves: Cow::Borrowed(&self.moves),
            dump_dies: Cow::Borrowed(&self.dump_dies),
            next_version: self.next_version,
            validity: Cow::Borrowed(&self.validity),
            zombies: Cow::Borrowed(&self.zombies),
            logs: Cow::Borrowed(&self.logs),
            blocks: Cow::Borrowed(&self.blocks),
            index: Cow::Borrowed(&self.index),
            collections: Cow::Borrowed(&self.collections),
            media: Cow::Borrowed(&self.media),
            fault_rng: self.flash.rng().clone(),
            victim_rng: self.policy.rng().clone(),
        }
    }

    /// True if `state` is of a drive of this shape.
    pub fn fits(&self, state: &FtlState<'_, C>) -> bool {
        let streams = self.streams.count();
        state.map.len() == self.map.len()
            && state.map.pages() == self.map.pages()
            && self.store.fits(&state.store)
            && state.map_dies.len() == self.map_dies.len()
            && state.moves.fits(&self.moves)
            && state.journal_dies.len() == self.journal_dies.len()
            && state.dump_dies.len() == self.dump_dies.len()
            && state.trim_versions.len() == self.trim_versions.len()
            && state.validity.fits(&self.geometry)
            && state.zombies.fits(self.map.len(), self.geometry.blocks())
            && state.logs.fits(&self.logs)
            && state.blocks.fits(&self.geometry, streams)
            && state.index.fits(&self.geometry)
            && state.collections.len() == self.collections.len()
            && state.collections.iter().all(|collection| collection.fits(streams))
            && state.media.fits(&self.geometry, self.media.has_versions())
    }

    /// Takes over a state that was saved from a drive of the same configuration. Refuses one that
    /// contradicts itself; this FTL is of no use then.
    ///
    /// # Panics
    /// If the state does not fit ([`Ftl::fits`]).
    pub fn restore(&mut self, state: FtlState<'_, C>) -> Result<(), Violation> {
        assert!(self.fits(&state), "a snapshot of another shape");
        self.map = state.map.into_owned();
        self.store.restore(state.store);
        self.map_dies = state.map_dies.into_owned();
        self.moves = state.moves.into_owned();
        self.journal_dies = state.journal_dies.into_owned();
        self.dump_dies = state.dump_dies.into_owned();
        self.trim_versions = state.trim_versions.into_owned();
        self.next_version = state.next_version;
        self.validity = state.validity.into_owned();
        self.zombies = state.zombies.into_owned();
        self.logs = state.logs.into_owned();
        self.blocks = state.blocks.into_owned();
        self.index = state.index.into_owned();
        self.collections = state.collections.into_owned();
        self.stuck_dies = 0;
        self.media = state.media.into_owned();
        self.flash.set_rng(state.fault_rng);
        self.policy.set_rng(state.victim_rng);
        self.check()
    }
}

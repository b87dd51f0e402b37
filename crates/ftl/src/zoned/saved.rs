//! The zoned FTL's state: whether it holds together, saved and loaded.

use std::borrow::Cow;

use leyden_nand::{BlockId, Content, Health, Lpn, MediumState};
use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::body::Body;
use super::ftl::{ZonedFtl, dumps_of};
use super::zones::ZoneTableState;

/// The state that outlives an idle moment: borrowed to save it, owned when loaded. Counters start
/// at zero.
#[derive(Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct ZonedFtlState<'a, C: Content> {
    zones: ZoneTableState,
    bodies: Cow<'a, [Body]>,
    blocks: Cow<'a, Blocks>,
    medium: MediumState<'a, C>,
}

impl<C: Content> ZonedFtl<C> {
    /// The state at rest.
    ///
    /// # Panics
    /// If an operation is in progress, or what was found is not sorted yet.
    pub fn state(&self) -> ZonedFtlState<'_, C> {
        assert!(self.medium.is_idle() && self.found.is_empty(), "the flash is at work");
        ZonedFtlState {
            zones: self.zones.state(),
            bodies: Cow::Borrowed(&self.bodies),
            blocks: Cow::Borrowed(&self.blocks),
            medium: self.medium.state(),
        }
    }

    /// Takes over a state that was saved from a drive of the same configuration. False if it is of a drive of another
    /// shape, or contradicts itself; this FTL is of no use then. [`ZonedFtl::check`] looks at the rest.
    pub fn restore(&mut self, state: ZonedFtlState<'_, C>) -> bool {
        let geometry = *self.geometry();
        let keep = self.dump_blocks_per_die();
        let fits = state.bodies.len() == self.bodies.len()
            && state.bodies.iter().all(|body| body.fits(&geometry, self.shape.capacity))
            && state.blocks.fits(&geometry, keep);
        if !fits || !self.medium.restore(state.medium) || !self.zones.restore_all(state.zones) {
            return false;
        }
        self.bodies = state.bodies.into_owned();
        self.blocks = state.blocks.into_owned();
        self.found.clear();
        self.dumps = dumps_of(&self.medium);
        let mut open_sets = vec![0; geometry.dies() as usize];
        for set in self.bodies.iter().filter_map(Body::open_set) {
            set.lane_dies(&geometry).for_each(|die| open_sets[die.index()] += 1);
        }
        self.blocks.open_sets().eq(open_sets)
    }
}

impl<C: Content> ZonedFtl<C> {
    /// Checks that zones and blocks agree with each other and with the medium: a block is in one place;
    /// whatever is said to lie somewhere lies there; the resources are counted right. `settled` says of
    /// each zone how much of it flash holds for certain.
    ///
    /// # Errors
    /// Says what does not hold.
    pub fn check(&self, settled: impl Fn(super::ZoneId) -> u32) -> Result<(), String> {
        self.zones.check()?;
        let mut seen = vec![false; self.geometry().blocks() as usize];
        let in_bodies = self.bodies.iter().flat_map(Body::blocks);
        for block in in_bodies.chain(self.blocks.all()).chain(self.dumps.blocks()) {
            if std::mem::replace(&mut seen[block.index()], true) {
                return Err(format!("{block:?} is in two places"));
            }
        }
        let (unused, all) = self.tags();
        if self.medium.is_idle() && unused != all {
            return Err(format!("{unused} tags of programs are unused, of {all}"));
        }
        // A block that is being erased is nowhere.
        if self.medium.is_idle()
            && let Some(block) = (0..self.geometry().blocks())
                .map(BlockId)
                .find(|&block| !seen[block.index()] && self.medium.health(block) == Health::Good)
        {
            return Err(format!("{block:?} is nowhere"));
        }
        for (id, _) in self.zones.all() {
            let body = &self.bodies[id.index()];
            for unit in 0..settled(id).min(body.end()) {
                let owner = self.medium.lpn(body.lies(unit, self.geometry()));
                if owner != Some(Lpn(id.0 * self.shape.size + unit)) {
                    return Err(format!("unit {unit} of {id:?} lies where {owner:?} is"));
                }
            }
            if body.end() < settled(id) {
                return Err(format!("{id:?} has lost its data from {} on", body.end()));
            }
        }
        Ok(())
    }
}

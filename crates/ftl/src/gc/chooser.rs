//! The policies of collection, with what they draw from.

use std::sync::Arc;

use leyden_nand::BlockId;
use leyden_sim::Rng;

use super::level::{LevelPolicy, WearView};
use super::{DieView, Order, VictimPolicy};
use crate::GcConfig;

/// The policies at work.
#[derive(Clone, Debug)]
pub struct Chooser {
    /// Shared by clones of a drive: it has no state.
    policy: Arc<dyn VictimPolicy>,
    level: Arc<dyn LevelPolicy>,
    rng: Rng,
}

impl Chooser {
    /// The policies of `config` in the run with `seed`. Their numbers are a stream of their own: policies
    /// that draw none, or more of them, change nobody else's.
    pub fn new(config: &GcConfig, seed: u64) -> Self {
        Self {
            policy: config.victim.policy().into(),
            level: config.levelling.policy().into(),
            rng: Rng::new(seed, "ftl.gc"),
        }
    }

    /// The block of `die` to empty for its wear, if one should be.
    pub fn worn_unevenly(&self, die: &WearView<'_>) -> Option<BlockId> {
        self.level.block(die)
    }

    /// The one of `blocks` to collect; `None` if there is none.
    pub fn victim(&mut self, blocks: &DieView<'_>) -> Option<BlockId> {
        self.policy.victim(blocks, &mut self.rng)
    }

    /// See [`VictimPolicy::depends_on_time`].
    pub fn depends_on_time(&self) -> bool {
        self.policy.depends_on_time()
    }

    /// See [`VictimPolicy::asks_for_lead`].
    pub fn asks_for_lead(&self) -> bool {
        self.policy.asks_for_lead()
    }

    /// See [`VictimPolicy::order`].
    pub fn order(&self) -> Order {
        self.policy.order()
    }

    /// Where its stream stands, for snapshots.
    pub const fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Goes on from where a snapshot's stream stood.
    pub const fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }
}

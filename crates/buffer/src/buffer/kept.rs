//! Versions that capacitors keep.

use leyden_nand::{Content, Lpn};

use super::WriteBuffer;
use crate::PoolKind;
use crate::slot::{SUPERSEDED, Slot, State};

impl<C: Content> WriteBuffer<C> {
    /// The data that capacitors keep: of each logical page the newest version in the protected pool. Data newer than
    /// that, in the plain one, is lost with the power.
    pub fn protected(&self) -> Vec<(Lpn, C)> {
        let is_kept = |slot: &Slot<C>| {
            slot.pool == PoolKind::Protected
                && slot.newer != SUPERSEDED
                && !matches!(slot.state, State::Free | State::Stale)
        };
        let newer = |slot: &Slot<C>| self.state.slots.get(slot.newer as usize);
        let is_newest = |slot: &Slot<C>| {
            let mut later = std::iter::successors(newer(slot), |&slot| newer(slot));
            !later.any(&is_kept)
        };
        let kept = |slot: &&Slot<C>| is_kept(slot) && is_newest(slot);
        let slots = self.state.slots.iter().filter(kept);
        slots.map(|slot| (slot.lpn, slot.content.clone())).collect()
    }

    /// True if capacitors keep a version of `lpn`, whether or not it is the newest.
    pub fn is_protected(&self, lpn: Lpn) -> bool {
        let slot = |id: u32| self.state.slots.get(id as usize);
        let newest = self.newest(lpn).and_then(|id| slot(id.0));
        let mut versions = std::iter::successors(newest, |version| slot(version.older));
        versions.any(|version| version.pool == PoolKind::Protected)
    }
}

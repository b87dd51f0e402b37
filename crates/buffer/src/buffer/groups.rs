//! Slots that go to flash in one page: one command wrote them, and all of it survives a power cut or none.
//!
//! **Invariants**: the slots of a group are all in the schedule, all staged, or all in flight, and all in the plain pool. The
//! caller sees to that: it stages a group as a whole, and lets nothing overwrite what is in flight.

use leyden_nand::{Content, Lpn};

use super::{BufferState, WriteBuffer};
use crate::PoolKind;
use crate::slot::{NONE, Slot, SlotId, State};

/// Rings of slots; a slot without a group is a ring of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// By slot: the next of its ring. Empty if no groups are kept.
    next: Vec<u32>,
}

impl Groups {
    fn new(slots: usize) -> Self {
        Self { next: (0..slots as u32).collect() }
    }

    /// Groups of the same slots, without any.
    pub(super) fn emptied(&self) -> Self {
        Self::new(self.next.len())
    }

    #[inline]
    pub(super) const fn are_kept(&self) -> bool {
        !self.next.is_empty()
    }

    fn next(&self, slot: SlotId) -> SlotId {
        SlotId(self.next[slot.index()])
    }

    /// The slots of a group, from `slot` on.
    fn of(&self, slot: SlotId) -> impl Iterator<Item = SlotId> + '_ {
        let after = move |&at: &SlotId| Some(self.next(at)).filter(|&next| next != slot);
        std::iter::successors(Some(slot), after)
    }

    /// One group of the two slots' groups.
    fn join(&mut self, one: SlotId, other: SlotId) {
        if self.of(one).all(|slot| slot != other) {
            self.next.swap(one.index(), other.index());
        }
    }

    /// Takes a slot out of its group.
    #[inline(never)]
    pub(super) fn leave(&mut self, slot: SlotId) {
        let before = self.of(slot).last().unwrap_or(slot);
        self.next[before.index()] = self.next[slot.index()];
        self.next[slot.index()] = slot.0;
    }
}

impl<C: Content> WriteBuffer<C> {
    /// From now on groups can be made. The buffer coalesces, and is empty.
    pub fn keep_groups(&mut self) {
        assert!(self.coalesces, "versions that wait beside each other are in no group");
        self.groups = Groups::new(self.state.slots.len());
    }

    /// True if groups can be made.
    #[inline]
    pub const fn keeps_groups(&self) -> bool {
        self.groups.are_kept()
    }

    /// The slot of the newest version of `lpn`.
    pub fn newest(&self, lpn: Lpn) -> Option<SlotId> {
        self.state.index.get(lpn)
    }

    /// The pool that a slot is in.
    pub fn pool_of(&self, slot: SlotId) -> PoolKind {
        self.state.slots[slot.index()].pool
    }

    /// True if a slot has been taken from the schedule, and its program has not started.
    pub fn is_staged(&self, slot: SlotId) -> bool {
        self.state.slots[slot.index()].state == State::Staged
    }

    /// Slots that are free in a pool.
    pub fn room(&self, pool: PoolKind) -> u32 {
        self.state.pools.room(pool)
    }

    /// Slots of a pool, free ones included.
    pub fn slots(&self, pool: PoolKind) -> u32 {
        self.state.pools.sizes()[pool.index()].slots
    }

    /// True if a slot has to be programmed together with others.
    pub fn is_grouped(&self, slot: SlotId) -> bool {
        self.keeps_groups() && self.groups.next(slot) != slot
    }

    /// The slots of a group, from `slot` on.
    pub fn group(&self, slot: SlotId) -> impl Iterator<Item = SlotId> + '_ {
        self.groups.of(slot)
    }

    /// Makes one group of two slots' groups.
    pub fn join(&mut self, one: SlotId, other: SlotId) {
        self.groups.join(one, other);
    }

    /// Slots that a write of `lpn` to a pool needs: none if it replaces what waits there.
    pub fn needs_slot(&self, lpn: Lpn, pool: PoolKind) -> bool {
        !self.coalesces
            || self.newest(lpn).is_none_or(|slot| {
                let is_promoted =
                    pool == PoolKind::Protected && self.pool_of(slot) == PoolKind::Plain;
                !self.state.slots[slot.index()].is_dirty() || is_promoted
            })
    }
}

impl<C: Content> BufferState<C> {
    /// Writes groups into what is saved: where they are kept, no slot at rest has an older version, and the field for that
    /// names the next slot of its group. Images without groups stay as they are.
    pub(super) fn with_groups(mut self, groups: &Groups) -> Self {
        for ((slot, &next), number) in self.slots.iter_mut().zip(&groups.next).zip(0..) {
            if slot.is_dirty() && next != number {
                slot.older = next;
            }
        }
        self
    }

    /// The groups of what was saved, which is made as it is without them. `None` if there can be no such groups.
    pub(super) fn take_groups(&mut self) -> Option<Groups> {
        let mut groups = Groups::new(self.slots.len());
        let mut is_named = vec![false; self.slots.len()];
        for number in 0..self.slots.len() {
            let Slot { state, older: next, .. } = self.slots[number];
            if state == State::Free || next == NONE {
                continue;
            }
            let other = self.slots.get(next as usize)?;
            if other.state != state || std::mem::replace(&mut is_named[next as usize], true) {
                return None;
            }
            groups.next[number] = next;
        }
        // Rings: whoever names another is named.
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if (groups.next[number] as usize != number) != is_named[number] {
                return None;
            }
            if slot.state != State::Free {
                slot.older = NONE;
            }
        }
        Some(groups)
    }
}

//! The pools of a conventional drive's buffer: how much room each has, and what of it goes to flash next.
//!
//! Selective-PLP (section 4.3) cuts the buffer in two. Without that there is one pool: the protected one if
//! capacitors keep the whole buffer, else the plain one.
//!
//! **Invariants**: dirty slots are in use, and no more are in use than the pool has. A slot that is dirty or
//! staged is known to the schedule of its pool alone.

use leyden_nand::Lpn;
use serde::{Deserialize, Serialize};

use crate::schedule::{Schedule, ScheduleConfig, Shape};
use crate::{PoolKind, PoolSize, PoolSizes, SlotId};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pool {
    /// Not saved: it comes from the configuration.
    #[serde(skip)]
    size: PoolSize,
    used: u32,
    dirty: u32,
    /// It reached its threshold, and has not been written out since. Not saved: at rest there is nothing to write.
    #[serde(skip)]
    is_draining: bool,
    schedule: Schedule,
}

impl Pool {
    fn new(config: &ScheduleConfig, shape: &Shape, size: PoolSize) -> Self {
        // A pool that is not there costs no memory.
        let nothing = Shape { slots: 0, mapping_pages: 0, ..*shape };
        let shape = if size.slots > 0 { shape } else { &nothing };
        // Asked at every event: a pool that is not there never reaches its threshold.
        let threshold = if size.slots > 0 { size.threshold } else { u32::MAX };
        let size = PoolSize { threshold, ..size };
        Self { size, used: 0, dirty: 0, is_draining: false, schedule: Schedule::new(config, shape) }
    }

    #[inline]
    const fn is_there(&self) -> bool {
        self.size.slots > 0
    }

    /// True from the threshold on, until it is drained.
    #[inline]
    const fn wants_writing(&self) -> bool {
        self.dirty >= self.size.threshold || self.is_draining
    }

    #[inline]
    const fn add_dirty(&mut self, slots: u32) {
        self.dirty += slots;
        if self.dirty >= self.size.threshold {
            self.is_draining = true;
        }
    }

    #[inline]
    const fn remove_dirty(&mut self, slots: u32) {
        self.dirty -= slots;
        if self.dirty <= self.size.low {
            self.is_draining = false;
        }
    }

    /// Takes up to `count` slots to write next. With too few it is drained: what is dirty still waits for a page to
    /// be full.
    #[inline]
    fn pop(&mut self, count: usize, to: &mut Vec<SlotId>) {
        let before = to.len();
        self.schedule.pop(count, to);
        if to.len() - before < count {
            self.is_draining = false;
        }
    }

    /// True if more of its threshold is dirty than of the other's.
    fn is_fuller_than(&self, other: &Self) -> bool {
        let share = |pool: &Self, of: &Self| u64::from(pool.dirty) * u64::from(of.size.threshold);
        share(self, other) > share(other, self)
    }

    fn fits(&self, saved: &Self, shape: &Shape) -> bool {
        std::mem::discriminant(&saved.schedule) == std::mem::discriminant(&self.schedule)
            && saved.used <= self.size.slots
            && saved.dirty <= saved.used
            && (!self.is_there() || saved.schedule.fits(shape))
    }
}

/// Both pools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pools {
    /// By [`PoolKind::index`].
    pools: [Pool; 2],
    /// The pool that a slot was taken from last, if there are both.
    last: PoolKind,
}

impl Pools {
    pub(crate) fn new(config: &ScheduleConfig, shape: &Shape, sizes: &PoolSizes) -> Self {
        let pools = sizes.map(|size| Pool::new(config, shape, size));
        Self { pools, last: PoolKind::Plain }
    }

    pub(crate) fn sizes(&self) -> PoolSizes {
        [self.pools[0].size, self.pools[1].size]
    }

    #[inline]
    pub(crate) const fn has_room(&self, kind: PoolKind) -> bool {
        let pool = &self.pools[kind.index()];
        pool.used < pool.size.slots
    }

    /// Slots of a pool that are free.
    pub(crate) const fn room(&self, kind: PoolKind) -> u32 {
        let pool = &self.pools[kind.index()];
        pool.size.slots - pool.used
    }

    /// True if a pool is to be written out.
    #[inline]
    pub(crate) const fn want_writing(&self) -> bool {
        self.pools[0].wants_writing() || self.pools[1].wants_writing()
    }

    /// The data of a slot that has not been popped or taken was replaced.
    #[inline]
    pub(crate) fn overwritten(&mut self, kind: PoolKind, slot: SlotId) {
        self.pools[kind.index()].schedule.overwritten(slot);
    }

    /// A free slot has become dirty.
    #[inline(always)]
    pub(crate) fn push(&mut self, kind: PoolKind, slot: SlotId, lpn: Lpn) {
        let pool = &mut self.pools[kind.index()];
        pool.used += 1;
        pool.add_dirty(1);
        pool.schedule.push(slot, lpn);
    }

    /// Takes up to `count` slots to write next. Each is of the pool that is to be written out, because it has reached its
    /// threshold or `a_flush_waits` for the plain one; of both in turn if both are; else of the fuller one.
    #[inline]
    pub(crate) fn pop(&mut self, count: usize, a_flush_waits: bool, to: &mut Vec<SlotId>) {
        let [protected, plain] = &mut self.pools;
        if !protected.is_there() {
            plain.pop(count, to);
        } else if !plain.is_there() {
            protected.pop(count, to);
        } else {
            let end = to.len() + count;
            while to.len() < end && self.pop_in_turn(a_flush_waits, to) {}
        }
    }

    /// Takes the slot to write next of the pool whose turn it is. False if there is none in either.
    fn pop_in_turn(&mut self, a_flush_waits: bool, to: &mut Vec<SlotId>) -> bool {
        let [protected, plain] = &self.pools;
        let plain_first = match (protected.wants_writing(), plain.wants_writing() || a_flush_waits)
        {
            (true, true) => self.last == PoolKind::Protected,
            (false, false) => plain.is_fuller_than(protected),
            (_, plain_alone) => plain_alone,
        };
        let mut order = PoolKind::ALL;
        if plain_first {
            order.reverse();
        }
        let before = to.len();
        for kind in order {
            self.pools[kind.index()].pop(1, to);
            if to.len() > before {
                self.last = kind;
                return true;
            }
        }
        false
    }

    /// Calls `each` with the slots that will be popped next, about `count` of each pool, where that is known.
    #[inline]
    pub(crate) fn each_ahead(&self, count: u32, mut each: impl FnMut(SlotId)) {
        for pool in self.pools.iter().filter(|pool| pool.is_there()) {
            pool.schedule.each_ahead(count, &mut each);
        }
    }

    /// Takes a dirty slot before its turn.
    pub(crate) fn take(&mut self, kind: PoolKind, slot: SlotId) {
        self.pools[kind.index()].schedule.take(slot);
    }

    /// A dirty slot need not be written any more.
    pub(crate) fn remove(&mut self, kind: PoolKind, slot: SlotId) {
        self.pools[kind.index()].schedule.remove(slot);
    }

    /// A slot that was popped or taken is on flash, or need not be written any more.
    #[inline]
    pub(crate) fn settled(&mut self, kind: PoolKind, lpn: Lpn) {
        self.pools[kind.index()].schedule.settled(lpn);
    }

    /// A slot's program starts, or it is dropped before that.
    #[inline]
    pub(crate) const fn start(&mut self, kind: PoolKind) {
        self.pools[kind.index()].remove_dirty(1);
    }

    /// A slot's program has failed: it waits again.
    pub(crate) const fn restart(&mut self, kind: PoolKind) {
        self.pools[kind.index()].add_dirty(1);
    }

    /// A slot is free.
    #[inline]
    pub(crate) const fn release(&mut self, kind: PoolKind) {
        self.pools[kind.index()].used -= 1;
    }

    /// Moves a slot to the protected pool. `is_dirty` if its program has not started, and `is_scheduled` if
    /// it has not been popped or taken.
    pub(crate) fn protect(&mut self, slot: SlotId, lpn: Lpn, is_dirty: bool, is_scheduled: bool) {
        let [protected, plain] = &mut self.pools;
        plain.used -= 1;
        protected.used += 1;
        // Units in flight to flash make neither pool reach its threshold, nor the level to which it
        // is drained.
        if is_dirty {
            plain.remove_dirty(1);
            protected.add_dirty(1);
        }
        protected.schedule.push(slot, lpn);
        if is_scheduled {
            plain.schedule.remove(slot);
        } else {
            plain.schedule.settled(lpn);
            protected.schedule.take(slot);
        }
    }

    /// A page of the mapping table has become dirty, or clean.
    #[inline]
    pub(crate) fn note_map_page(&mut self, page: u32, is_dirty: bool) {
        for pool in self.pools.iter_mut().filter(|pool| pool.is_there()) {
            if is_dirty {
                pool.schedule.map_page_dirty(page);
            } else {
                pool.schedule.map_page_clean(page);
            }
        }
    }

    /// True if `saved` was saved from pools of these sizes and this schedule.
    pub(crate) fn fits(&self, saved: &Self, shape: &Shape) -> bool {
        self.pools.iter().zip(&saved.pools).all(|(pool, saved)| pool.fits(saved, shape))
    }

    /// The saved pools, with the sizes of these.
    pub(crate) fn resumed(&self, mut saved: Self) -> Self {
        for (saved, pool) in saved.pools.iter_mut().zip(&self.pools) {
            saved.size = pool.size;
        }
        saved
    }
}

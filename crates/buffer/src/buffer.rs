//! The life of the buffer's slots.

mod groups;
mod kept;

use groups::Groups;
use leyden_nand::{Content, Lpn};
use leyden_sim::{Level, counters, prefetch};
use serde::{Deserialize, Serialize};

use crate::barrier::{Barrier, Epoch};
use crate::index::SlotIndex;
use crate::outcome::{Discarded, Failed, Written};
use crate::pools::Pools;
use crate::schedule::Shape;
use crate::slot::{NONE, SUPERSEDED, Slot, SlotId, State};
use crate::{Config, PoolKind, PoolSizes};

/// The epoch that a FLUSH waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlushTicket(Epoch);

counters! {
    /// Counters of the buffer since it was made.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct BufferStats {
        /// Unit writes that replaced buffered data.
        pub coalesced_units: u64,
        /// Units trimmed while they were dirty.
        pub discarded_units: u64,
        /// Units that moved to the protected pool: what was written last of them asked for it.
        pub promoted_units: u64,
        /// The most slots in use at once.
        pub peak_units: Level,
    }
}

/// The buffer's state at rest, to save and load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct BufferState<C: Content> {
    slots: Vec<Slot<C>>,
    free: Vec<SlotId>,
    index: SlotIndex,
    pools: Pools,
    barrier: Barrier,
}

/// The write buffer.
#[derive(Clone, Debug)]
pub struct WriteBuffer<C: Content> {
    state: BufferState<C>,
    /// The slots that are being taken; kept to save an allocation.
    taken: Vec<SlotId>,
    shape: Shape,
    coalesces: bool,
    groups: Groups,
    stats: BufferStats,
}

impl<C: Content> WriteBuffer<C> {
    /// An empty buffer of `shape.slots`, which are those of its pools (see [`Config::slots`]). The pages of
    /// the mapping table count as clean.
    pub fn new(config: &Config, shape: Shape, pools: &PoolSizes) -> Self {
        let slots = shape.slots;
        let barrier = Barrier::default();
        let slot = Slot {
            lpn: Lpn(0),
            state: State::Free,
            pool: PoolKind::Plain,
            older: NONE,
            newer: NONE,
            epoch: barrier.current(),
            content: C::default(),
        };
        let state = BufferState {
            slots: vec![slot; slots as usize],
            free: (0..slots).rev().map(SlotId).collect(),
            index: SlotIndex::new(slots),
            pools: Pools::new(&config.schedule, &shape, pools),
            barrier,
        };
        let (taken, stats) = (Vec::new(), BufferStats::default());
        let groups = Groups::default();
        Self { state, taken, shape, coalesces: config.coalesce, groups, stats }
    }

    /// An empty buffer like this one, which `config` has made; the counters go on.
    #[must_use]
    pub fn emptied(&self, config: &Config) -> Self {
        let (groups, stats) = (self.groups.emptied(), self.stats);
        Self { groups, stats, ..Self::new(config, self.shape, &self.state.pools.sizes()) }
    }

    /// The counters.
    pub const fn stats(&self) -> &BufferStats {
        &self.stats
    }

    /// The peak counts from here on.
    pub fn forget_peak(&mut self) {
        self.stats.peak_units = Level::new(self.used().into());
    }

    /// Slots not free.
    #[inline]
    pub fn used(&self) -> u32 {
        (self.state.slots.len() - self.state.free.len()) as u32
    }

    /// True if there is enough dirty data to be written out, or a FLUSH waits for some.
    #[inline]
    pub fn wants_writing(&self) -> bool {
        self.state.pools.want_writing() || self.state.barrier.is_overdue()
    }

    /// True if a FLUSH waits for dirty data: pages cannot wait to be full.
    #[inline]
    pub fn is_forced(&self) -> bool {
        self.state.barrier.is_overdue()
    }

    /// Brings near what a read or write of `lpn` will ask.
    #[inline]
    pub fn expect(&self, lpn: Lpn) {
        self.state.index.expect(lpn);
    }

    /// The newest version of `lpn`, if it is buffered.
    #[inline]
    pub fn read(&self, lpn: Lpn) -> Option<C> {
        self.state.index.get(lpn).map(|slot| self.state.slots[slot.index()].content.clone())
    }

    /// The logical page in `slot`.
    #[inline]
    pub fn lpn(&self, slot: SlotId) -> Lpn {
        self.state.slots[slot.index()].lpn
    }

    /// The data in `slot`.
    #[inline]
    pub fn content(&self, slot: SlotId) -> C {
        self.state.slots[slot.index()].content.clone()
    }

    /// The data in all slots, those that are free included.
    pub fn contents(&self) -> impl Iterator<Item = &C> {
        self.state.slots.iter().map(|slot| &slot.content)
    }

    /// Buffers a write of `lpn` in a pool. What is protected already stays so, whoever overwrites it.
    // Always inlined, like all that each unit passes: in a program with several kinds of drive the compiler would not.
    #[inline(always)]
    pub fn write(&mut self, lpn: Lpn, content: C, pool: PoolKind) -> Written {
        let state = &mut self.state;
        let entry = state.index.entry(lpn);
        let older = entry.slot().map(SlotId);
        if let Some(id) = older {
            let slot = &mut state.slots[id.index()];
            if slot.is_dirty() && self.coalesces {
                let is_promoted = pool == PoolKind::Protected && slot.pool == PoolKind::Plain;
                if is_promoted && !state.pools.has_room(PoolKind::Protected) {
                    return Written::Full;
                }
                slot.content = content;
                if slot.state == State::Dirty {
                    state.pools.overwritten(slot.pool, id);
                }
                if is_promoted {
                    self.protect(id);
                }
                self.stats.coalesced_units += 1;
                return Written::Coalesced(id);
            }
        }
        if !state.pools.has_room(pool) {
            return Written::Full;
        }
        let id = state.free.pop().expect("the pools have no more slots than there are");
        if let Some(older) = older {
            state.slots[older.index()].newer = id.0;
        }
        state.slots[id.index()] = Slot {
            lpn,
            state: State::Dirty,
            pool,
            older: older.map_or(NONE, |older| older.0),
            newer: NONE,
            epoch: match pool {
                PoolKind::Plain => state.barrier.add(),
                PoolKind::Protected => state.barrier.current(),
            },
            content,
        };
        entry.set(id.0);
        state.pools.push(pool, id, lpn);
        self.stats.peak_units.raise_to(self.used());
        Written::Inserted(id)
    }

    /// The buffered pages in `first..end`, each once, in a fixed order.
    pub fn lpns_in(&self, first: Lpn, end: Lpn) -> Vec<Lpn> {
        if end.0.saturating_sub(first.0) as usize <= self.state.slots.len() {
            let lpns = (first.0..end.0).map(Lpn);
            return lpns.filter(|&lpn| self.state.index.get(lpn).is_some()).collect();
        }
        let slots = self.state.slots.iter().enumerate();
        slots
            .filter(|(id, slot)| {
                (first..end).contains(&slot.lpn)
                    && self.state.index.get(slot.lpn) == Some(SlotId(*id as u32))
            })
            .map(|(_, slot)| slot.lpn)
            .collect()
    }

    /// Drops the buffered data of `lpn`. Returns the freed slot, if any: a program
    /// under way goes on, in vain.
    pub fn discard(&mut self, lpn: Lpn) -> Option<Discarded> {
        let state = &mut self.state;
        let newest = state.index.get(lpn)?;
        state.index.remove(lpn);
        let Slot { state: was, pool, older, epoch, .. } = state.slots[newest.index()];
        self.make_stale_from(older);
        match was {
            State::Dirty | State::Staged => {
                self.stats.discarded_units += 1;
                if was == State::Dirty {
                    self.state.pools.remove(pool, newest);
                } else {
                    self.state.pools.settled(pool, lpn);
                }
                self.state.leave(pool, epoch);
                self.release(newest);
                Some(Discarded { slot: newest, staged: was == State::Staged })
            }
            State::InFlight => {
                self.state.slots[newest.index()].state = State::Stale;
                self.state.slots[newest.index()].older = NONE;
                None
            }
            State::Free | State::Stale => unreachable!("{newest:?} in the index is {was:?}"),
        }
    }

    /// Takes up to `count` slots to write next from the schedule. Calls `each` with them and their logical pages.
    /// Returns how many there were.
    #[inline]
    pub fn take_next(&mut self, count: usize, mut each: impl FnMut(SlotId, Lpn)) -> usize {
        let (pools, taken) = (&mut self.state.pools, &mut self.taken);
        taken.clear();
        pools.pop(count, self.state.barrier.is_overdue(), taken);
        for &id in &*taken {
            let slot = &mut self.state.slots[id.index()];
            slot.state = State::Staged;
            each(id, slot.lpn);
        }
        // The next slots are near when they are taken.
        pools.each_ahead(count as u32, |id| prefetch(&self.state.slots, id.index()));
        taken.len()
    }

    /// Takes `slot` before its turn, if it is in the schedule.
    pub fn take(&mut self, slot: SlotId) -> bool {
        let taken = &mut self.state.slots[slot.index()];
        if taken.state != State::Dirty {
            return false;
        }
        taken.state = State::Staged;
        self.state.pools.take(taken.pool, slot);
        true
    }

    /// The program of a staged slot starts: yields its logical page and its data.
    #[inline]
    pub fn start(&mut self, id: SlotId) -> (Lpn, C) {
        let slot = &mut self.state.slots[id.index()];
        debug_assert_eq!(slot.state, State::Staged, "{id:?}");
        slot.state = if slot.newer == SUPERSEDED { State::Stale } else { State::InFlight };
        let (pool, epoch, started) = (slot.pool, slot.epoch, (slot.lpn, slot.content.clone()));
        self.state.leave(pool, epoch);
        started
    }

    /// True if the program of `slot` is under way.
    pub fn is_started(&self, slot: SlotId) -> bool {
        self.state.slots[slot.index()].state == State::InFlight
    }

    /// The program of a slot has ended. The slot is free. Returns its logical page if this is the newest version
    /// on flash, and so to be mapped.
    #[inline]
    pub fn settle(&mut self, id: SlotId) -> Option<Lpn> {
        let Slot { lpn, state, older, newer, .. } = self.state.slots[id.index()];
        let wanted = state == State::InFlight;
        debug_assert!(wanted || state == State::Stale, "{id:?} is {state:?}");
        if wanted {
            if older != NONE {
                self.make_stale_from(older); // still on their way, they come too late
            }
            if newer == NONE {
                self.state.index.remove(lpn);
            } else {
                self.state.slots[newer as usize].older = NONE;
            }
        }
        self.settled(id);
        wanted.then_some(lpn)
    }

    /// The program of a slot has failed.
    pub fn fail(&mut self, id: SlotId) -> Failed {
        let Slot { lpn, state, pool, epoch, newer, .. } = self.state.slots[id.index()];
        if state == State::Stale {
            self.settled(id);
            return Failed::Unwanted;
        }
        if newer != NONE {
            self.state.pools.settled(pool, lpn);
            self.leave_to(id, SlotId(newer));
            return Failed::LeftTo(SlotId(newer));
        }
        self.state.slots[id.index()].state = State::Staged;
        self.state.pools.restart(pool);
        if pool == PoolKind::Plain {
            self.state.barrier.restart(epoch);
        }
        Failed::Again
    }

    /// A page of the mapping table has become dirty (after [`WriteBuffer::settle`], if the write of
    /// a slot has made it so), or clean. Saying so twice changes nothing.
    #[inline]
    pub fn note_map_page(&mut self, page: u32, dirty: bool) {
        self.state.pools.note_map_page(page, dirty);
    }

    /// Begins a FLUSH: `None` if everything is on flash already.
    pub fn begin_flush(&mut self) -> Option<FlushTicket> {
        self.state.barrier.begin().map(FlushTicket)
    }

    /// True if the FLUSH has nothing to wait for any more.
    #[inline]
    pub fn is_flushed(&self, ticket: FlushTicket) -> bool {
        self.state.barrier.is_settled(ticket.0)
    }

    /// The state at rest: nothing is in flight.
    pub fn state(&self) -> BufferState<C> {
        self.state.clone().with_groups(&self.groups)
    }

    /// Takes over a state that was saved from a buffer of the same configuration. False if it is
    /// not one.
    pub fn restore(&mut self, mut state: BufferState<C>) -> bool {
        let slots = self.shape.slots;
        if self.keeps_groups() {
            let Some(groups) = state.take_groups() else { return false };
            self.groups = groups;
        }
        let fits = state.slots.len() == slots as usize
            && state.index.fits(slots)
            && self.state.pools.fits(&state.pools, &self.shape)
            && state.slots.iter().all(|slot| slot.state == State::Free || slot.is_dirty());
        if fits {
            let pools = self.state.pools.resumed(state.pools);
            self.state = BufferState { pools, ..state };
        }
        fits
    }

    /// A version that failed leaves the page to the newer one. What is to be kept of it the newer one keeps: it
    /// is protected, or a FLUSH that waited for the older one waits for it.
    fn leave_to(&mut self, id: SlotId, newer: SlotId) {
        let Slot { pool, older, epoch, .. } = self.state.slots[id.index()];
        let heir = &mut self.state.slots[newer.index()];
        heir.older = older;
        let started = !heir.is_dirty();
        match (pool, heir.pool) {
            (PoolKind::Plain, PoolKind::Plain) => {
                let from = std::mem::replace(&mut heir.epoch, epoch);
                self.state.barrier.inherit(from, epoch, started);
            }
            (PoolKind::Plain, PoolKind::Protected) => self.state.barrier.settle(epoch),
            (PoolKind::Protected, _) => self.protect(newer),
        }
        if older != NONE {
            self.state.slots[older as usize].newer = newer.0;
        }
        self.state.slots[id.index()].state = State::Free;
        self.state.pools.release(pool);
        self.state.free.push(id);
    }

    /// Moves a slot to the protected pool: no FLUSH waits for it any more.
    fn protect(&mut self, id: SlotId) {
        let slot = &mut self.state.slots[id.index()];
        if slot.pool == PoolKind::Protected {
            return;
        }
        slot.pool = PoolKind::Protected;
        let (is_dirty, is_scheduled) = (slot.is_dirty(), slot.state == State::Dirty);
        if is_dirty {
            self.state.barrier.start(slot.epoch);
        }
        self.state.barrier.settle(slot.epoch);
        self.state.pools.protect(id, slot.lpn, is_dirty, is_scheduled);
        self.stats.promoted_units += 1;
    }

    /// Marks the chain of older versions as not wanted. In a buffer that does not coalesce some of them wait still.
    #[inline(never)]
    fn make_stale_from(&mut self, mut older: u32) {
        while older != NONE {
            let id = SlotId(older);
            let slot = &mut self.state.slots[id.index()];
            let was = slot.state;
            slot.newer = NONE;
            older = std::mem::replace(&mut slot.older, NONE);
            match was {
                State::Dirty => {
                    let (pool, epoch) = (slot.pool, slot.epoch);
                    self.state.pools.remove(pool, id);
                    self.state.leave(pool, epoch);
                    self.release(id);
                }
                State::Staged => slot.newer = SUPERSEDED, // a page has been put together with it
                _ => slot.state = State::Stale,
            }
        }
    }

    /// A slot that was popped or taken is on flash, or need not be any more: it is free.
    #[inline(always)]
    fn settled(&mut self, id: SlotId) {
        let slot = &mut self.state.slots[id.index()];
        slot.state = State::Free;
        let (lpn, pool, epoch) = (slot.lpn, slot.pool, slot.epoch);
        self.state.pools.settled(pool, lpn);
        self.freed(id, pool, epoch);
    }

    fn release(&mut self, id: SlotId) {
        let slot = &mut self.state.slots[id.index()];
        slot.state = State::Free;
        let (pool, epoch) = (slot.pool, slot.epoch);
        self.freed(id, pool, epoch);
    }

    /// A slot of `pool` and `epoch` has become free.
    #[inline(always)]
    fn freed(&mut self, id: SlotId, pool: PoolKind, epoch: Epoch) {
        if pool == PoolKind::Plain {
            self.state.barrier.settle(epoch);
        }
        self.state.pools.release(pool);
        self.state.free.push(id);
        if self.groups.are_kept() {
            self.groups.leave(id);
        }
    }
}

impl<C: Content> BufferState<C> {
    /// A slot's program starts, or it is dropped before that.
    #[inline]
    fn leave(&mut self, pool: PoolKind, epoch: Epoch) {
        self.pools.start(pool);
        if pool == PoolKind::Plain {
            self.barrier.start(epoch);
        }
    }
}

#[cfg(test)]
mod tests;

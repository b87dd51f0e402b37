//! Room in the buffer: counts of mapping units, protected or not.
//!
//! **Invariants**: dirty units are in use; units in use and reserved (for Zone Random Write Areas) fit. A pool is drained from its
//! threshold on until little enough is dirty.

use leyden_sim::{Level, Ratio};

/// A pool.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    slots: u32,
    used: u32,
    reserved: u32,
    dirty: u32,
    threshold: u32,
    low: u32,
    is_draining: bool,
    peak: Level,
}

impl Pool {
    pub(super) fn new(slots: u32, reserved: u32, threshold: Ratio, drain_to: Ratio) -> Self {
        let share = |of: Ratio| of.of(u64::from(slots - reserved)) as u32;
        Self {
            slots,
            used: 0,
            reserved,
            dirty: 0,
            threshold: share(threshold).max(1),
            low: share(drain_to.min(threshold)),
            is_draining: false,
            peak: Level::default(),
        }
    }

    /// Its size.
    pub const fn slots(&self) -> u32 {
        self.slots
    }
    /// Units in it.
    #[inline]
    pub const fn used(&self) -> u32 {
        self.used
    }
    /// Of those, the ones whose program has not begun.
    #[inline]
    pub const fn dirty(&self) -> u32 {
        self.dirty
    }
    /// The most that was in use at once, with what is reserved.
    pub const fn peak(&self) -> Level {
        self.peak
    }
    /// How many more units there is room for.
    #[inline]
    pub const fn room(&self) -> u32 {
        // A zone that can't be written any more keeps what its Zone Random Write Area held.
        self.slots.saturating_sub(self.used + self.reserved)
    }
    /// It is being written out.
    #[inline]
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// As it was made, with so many units in it.
    pub(super) fn holding(self, used: u32, dirty: u32, is_draining: bool) -> Self {
        let mut pool = Self { used, dirty, is_draining, ..self };
        pool.peak.raise_to(used + self.reserved);
        pool
    }

    pub(super) fn forget_peak(&mut self) {
        self.peak = Level::new((self.used + self.reserved).into());
    }

    /// As it was made, but for the peak.
    pub(super) const fn emptied(self) -> Self {
        Self { used: 0, dirty: 0, is_draining: false, ..self }
    }

    #[inline]
    pub(super) fn add(&mut self, units: u32, dirty: u32) {
        self.used += units;
        self.dirty += dirty;
        self.peak.raise_to(self.used + self.reserved);
        self.look();
    }

    #[inline]
    pub(super) fn remove(&mut self, units: u32, dirty: u32) {
        self.used -= units;
        self.dirty -= dirty;
        self.look();
    }

    /// The programs of dirty units have begun.
    #[inline]
    pub(super) fn start(&mut self, units: u32) {
        self.dirty -= units;
        self.look();
    }

    #[inline]
    fn look(&mut self) {
        if self.dirty >= self.threshold {
            self.is_draining = true;
        } else if self.dirty <= self.low {
            self.is_draining = false;
        }
    }
}

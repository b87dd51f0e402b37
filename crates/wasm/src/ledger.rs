//! The ledger: which version of each mapping unit was acknowledged, and which is promised to survive a cut.
//!
//! Versions are stamps, which grow. The host never has two writes to one unit in flight, so the newest stamp is the
//! newest version.
//!
//! **Invariants**: memory is constant per unit, and per overwrite while a FLUSH is in flight; the tests run the durability
//! model (`leyden-oracle`) beside it.

mod observer;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;

use std::ops::Range;

use leyden_device::{PowerLoss, Region, Stamp};

use observer::Observer;

#[cfg(not(test))]
type Present = observer::NoObserver;
#[cfg(test)]
type Present = twin::Twin;

/// The order of acknowledgements and flushes.
type Tick = u64;

/// A mapping unit.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    /// The newest version acknowledged, and when that was.
    acknowledged: u64,
    at: Tick,
    /// The promised version before that.
    before: u64,
    is_being_written: bool,
}

/// An acknowledged version that was overwritten while a FLUSH that covers it was in flight.
#[derive(Clone, Copy, Debug)]
struct Overwritten {
    unit: u32,
    stamp: u64,
    at: Tick,
}

/// Data that is gone, in mapping units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostUnits {
    pub(crate) acknowledged: u64,
    /// The part that was promised: flushed, forced or in a protected buffer.
    pub(crate) promised: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    units: Vec<Unit>,
    /// True if an acknowledged write is promised at once, be it forced or not.
    is_protected: bool,
    now: Tick,
    /// Acknowledgements up to this one are promised.
    flushed: Tick,
    flushes: u32,
    overwritten: Vec<Overwritten>,
    observer: Present,
}

impl Ledger {
    /// For a drive of `units` whose buffer has the protected region `region`.
    pub(crate) fn new(units: u32, region: Region) -> Self {
        Self {
            units: vec![Unit::default(); units as usize],
            is_protected: region == Region::Full,
            now: 0,
            flushed: 0,
            flushes: 0,
            overwritten: Vec::new(),
            observer: Present::new(units, region),
        }
    }

    fn of(&mut self, units: Range<u32>) -> &mut [Unit] {
        &mut self.units[units.start as usize..units.end as usize]
    }

    /// True if one of these units is being written.
    pub(crate) fn is_being_written(&self, units: &Range<u32>) -> bool {
        let units = &self.units[units.start as usize..units.end as usize];
        units.iter().any(|unit| unit.is_being_written)
    }

    /// A write of `stamp` is submitted.
    pub(crate) fn begin_write(&mut self, units: Range<u32>, stamp: u64, is_forced: bool) {
        self.observer.begin_write(&units, stamp, is_forced);
        self.of(units).iter_mut().for_each(|unit| unit.is_being_written = true);
    }

    /// A write has ended.
    pub(crate) fn end_write(
        &mut self,
        units: Range<u32>,
        stamp: u64,
        is_forced: bool,
        is_done: bool,
    ) {
        self.observer.end(stamp, is_done);
        self.of(units.clone()).iter_mut().for_each(|unit| unit.is_being_written = false);
        if !is_done {
            return;
        }
        self.now += 1;
        let (now, flushed, is_covered) = (self.now, self.flushed, self.flushes > 0);
        let is_promised = self.is_protected || is_forced;
        for (number, unit) in units.clone().zip(&mut self.units[units.start as usize..]) {
            if unit.at <= flushed {
                unit.before = unit.acknowledged;
            } else if is_covered && !is_promised {
                let (stamp, at) = (unit.acknowledged, unit.at);
                self.overwritten.push(Overwritten { unit: number, stamp, at });
            }
            unit.acknowledged = stamp;
            // Tick 0 lies before every flush.
            unit.at = if is_promised { 0 } else { now };
        }
    }

    /// A FLUSH is submitted. Returns its tick, for its end.
    pub(crate) fn begin_flush(&mut self, stamp: u64) -> Tick {
        self.observer.begin_flush(stamp);
        self.flushes += 1;
        self.now
    }

    /// A FLUSH of this tick has ended.
    pub(crate) fn end_flush(&mut self, tick: Tick, stamp: u64, is_done: bool) {
        self.observer.end(stamp, is_done);
        self.flushes -= 1;
        if is_done {
            self.flushed = self.flushed.max(tick);
            for it in self.overwritten.iter().filter(|it| it.at <= tick) {
                let unit = &mut self.units[it.unit as usize];
                unit.before = unit.before.max(it.stamp);
            }
        }
        if self.flushes == 0 {
            self.overwritten.clear();
        }
    }

    /// The power was cut: commands in flight have vanished.
    pub(crate) fn cut(&mut self) {
        self.observer.cut();
        self.units.iter_mut().for_each(|unit| unit.is_being_written = false);
        self.flushes = 0;
        self.overwritten.clear();
    }

    /// The promised version of a unit.
    const fn promised(&self, unit: &Unit) -> u64 {
        if unit.at <= self.flushed { unit.acknowledged } else { unit.before }
    }

    /// The data that is gone if `left` is what a cut leaves of every unit.
    pub(crate) fn gone(&self, left: &[Stamp]) -> LostUnits {
        let mut gone = LostUnits::default();
        for (unit, left) in self.units.iter().zip(left) {
            gone.acknowledged += u64::from(left.0 < unit.acknowledged);
            gone.promised += u64::from(left.0 < self.promised(unit));
        }
        gone
    }

    /// Takes the content that recovery has left, after a cut whose losses the drive has reported.
    pub(crate) fn settle(&mut self, left: &[Stamp], reported: &PowerLoss) {
        let gone = self.gone(left);
        self.observer.settle(left, reported, gone);
        for (unit, left) in self.units.iter_mut().zip(left) {
            *unit = Unit { acknowledged: left.0, ..Unit::default() };
        }
    }
}

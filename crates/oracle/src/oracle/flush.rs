//! Promises of a successful FLUSH of everything or of a file, and promises that a failed one gives up.

use std::ops::Range;

use super::{Oracle, Unflushed};
use crate::Op;
use crate::log::Tick;

impl Oracle {
    /// A FLUSH of `flushed` submitted at `submitted` has completed: what was known of these units before then is
    /// durable.
    pub(super) fn flushed(&mut self, submitted: Tick, flushed: &Range<u32>) {
        let Self { unflushed, log, units, .. } = self;
        let before = unflushed.partition_point(|&(tick, _)| tick < submitted);
        for &(tick, what) in unflushed.range(..before) {
            match what {
                Unflushed::Seen { unit, stamp } if flushed.contains(&unit) => {
                    let unit = &mut units[unit as usize];
                    if tick > unit.given_up {
                        unit.durable.narrow(stamp, tick);
                        unit.settle();
                    }
                }
                Unflushed::Seen { .. } => {}
                Unflushed::Acknowledged(id) => {
                    // A forgotten command is older than the known content of its units.
                    let Some(entry) = log.get(id) else { continue };
                    let effects = entry.touched.effects();
                    for (unit, effect) in effects.filter(|(unit, _)| flushed.contains(unit)) {
                        let unit = &mut units[unit as usize];
                        if entry.submitted > unit.given_up {
                            unit.flushed(entry.submitted, effect);
                        }
                    }
                }
            }
        }
        // To be flushed again changes nothing; other files' units wait for their own.
        if flushed.len() == units.len() {
            unflushed.drain(..before);
        }
    }

    /// A FLUSH of `units` has failed: it has said of those that a cache could not write out that they are lost. A FLUSH of
    /// everything still has to.
    pub(super) fn give_up(&mut self, op: Op, units: &Range<u32>) {
        for &unit in self.unwritten.iter().filter(|unit| units.contains(unit)) {
            let unit = &mut self.units[unit as usize];
            unit.given_up = unit.unwritten;
        }
        if op == Op::Flush {
            self.unwritten.clear();
        }
    }
}

//! An observer of all commands: in tests the slow twin, elsewhere none.

use std::ops::Range;

use leyden_device::{PowerLoss, Region, Stamp};

use super::LostUnits;

/// Hears what the ledger hears, and with which stamps.
pub(super) trait Observer {
    fn new(units: u32, region: Region) -> Self;
    fn begin_write(&mut self, _units: &Range<u32>, _stamp: u64, _is_forced: bool) {}
    fn begin_flush(&mut self, _stamp: u64) {}
    fn end(&mut self, _stamp: u64, _is_done: bool) {}
    fn cut(&mut self) {}
    /// Recovery has left `left`, of which the ledger counts `gone` as lost.
    fn settle(&mut self, _left: &[Stamp], _reported: &PowerLoss, _gone: LostUnits) {}
}

/// See the module.
#[cfg(not(test))]
#[derive(Clone, Copy, Debug)]
pub(super) struct NoObserver;

#[cfg(not(test))]
impl Observer for NoObserver {
    fn new(_: u32, _: Region) -> Self {
        Self
    }
}

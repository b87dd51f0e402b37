//! Who looks at the device while it is driven.

use leyden_device::Stats;
use leyden_sim::Time;

/// Reads a device's counters, and may look at it at moments of its own. Nothing it does changes what
/// happens. A function that returns the counters is one that has no such moments.
pub trait Watch<D> {
    /// The device's counters; called at the ends of the measurement and of its intervals, some thousand
    /// times in all.
    fn stats(&self, device: &D) -> Stats;
    /// The next moment at which to look.
    fn next_moment(&self) -> Time {
        Time::MAX
    }
    /// Time has come to the next moment; `device` has been told so. [`Watch::next_moment`] must lie
    /// later from now on.
    fn look(&mut self, device: &D) {
        let _ = device;
    }
}

impl<D, F: Fn(&D) -> Stats> Watch<D> for F {
    fn stats(&self, device: &D) -> Stats {
        self(device)
    }
}

//! Watchers: they look at the device while it is driven, and may cut its power.

use std::ops::Range;

use leyden_device::{Payload, Stats};
use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::zoned::ZoneLeft;

/// Reads a device's counters, may look at it at moments of its own, and may cut its power. Nothing it does
/// changes what happens, but for the cuts. A function that returns the counters is one that has no such
/// moments.
pub trait Watch<P: Payload, D> {
    /// The device's counters; called at the ends of the measurement and of its intervals, some thousand
    /// times in all.
    fn stats(&self, device: &D) -> Stats;
    /// The measurement begins, after a ramp.
    fn begin(&mut self, device: &D) {
        let _ = device;
    }
    /// The next moment at which to look.
    fn next_moment(&self) -> Time {
        Time::MAX
    }
    /// Time has come to the next moment, or is beyond it after a power cut; `device` has been told so.
    /// [`Watch::next_moment`] must grow with every look.
    fn look(&mut self, now: Time, device: &D) {
        let _ = (now, device);
    }
    /// Whether it wants to be told of commands ([`Watch::submitted`], [`Watch::gone`]); asked once.
    fn follows_commands(&self) -> bool {
        false
    }
    /// A command was submitted `now`, which the host had asked for when it `arrived`.
    fn submitted(&mut self, now: Time, slot: u32, arrived: Time, request: &Request) {
        let _ = (now, slot, arrived, request);
    }
    /// A command is no longer outstanding: it completed at `time`, or was cut off then.
    fn gone(&mut self, time: Time, slot: u32) {
        let _ = (time, slot);
    }
    /// When the power is cut next.
    fn next_cut(&self) -> Time {
        Time::MAX
    }
    /// Cuts the power of `device` at `now`, with so many commands outstanding, and lets it return. Only
    /// called if [`Watch::next_cut`] says so; which must lie later than the power's return from then on.
    fn cut(&mut self, now: Time, device: &mut D, outstanding: u64) -> Outage<P> {
        let _ = (device, outstanding);
        panic!("no cut was announced for {} ns", now.as_ns());
    }
    /// Mapping units whose data a cache above the drive could not write out, since this was last asked.
    fn take_unwritten(&mut self, device: &mut D) -> Vec<u32> {
        let _ = device;
        Vec::new()
    }
    /// The check of content has found that the last cut lost so many mapping units that were promised.
    fn found_lost(&mut self, units: u64) {
        let _ = units;
    }
}

impl<P: Payload, D, F: Fn(&D) -> Stats> Watch<P, D> for F {
    fn stats(&self, device: &D) -> Stats {
        self(device)
    }
}

/// A power cut that has happened, as the host sees it.
#[derive(Clone, Debug)]
pub struct Outage<P: Payload> {
    /// When the power failed.
    pub at: Time,
    /// When it returned: commands may be submitted, and wait until the device is ready.
    pub back_at: Time,
    /// Mapping units of which the device says that it lost what it had promised to keep.
    pub lost: Vec<u32>,
    /// Mapping units of which it says that it does not know the newest version.
    pub uncertain: Vec<Range<u32>>,
    /// The result of reading the whole device now.
    pub left: P::ReadData,
    /// The zones of a zoned device.
    pub zones: Vec<ZoneLeft>,
}

//! How to drive, apart from the workload itself.

use std::fmt;
use std::sync::atomic::AtomicBool;

use leyden_sim::Time;

use super::{Ramp, Settler};

/// The options of a run that a caller can set.
#[derive(Default)]
pub struct Options<'a> {
    /// The instant at which the workload starts: not before anything the device has seen.
    pub start: Time,
    /// The part at the beginning that is not measured.
    pub ramp: Ramp,
    /// Says when a ramp that waits for write amplification to settle is over; for jobs only.
    pub settler: Option<Settler>,
    /// Checked every few thousand completions; once true, the run ends and its results so far are
    /// returned, marked as interrupted. The device keeps what was outstanding: it (and a verifier)
    /// can be looked at, but not driven further.
    pub cancel: Option<&'a AtomicBool>,
    /// End the measurement, with commands outstanding, once so many commands have completed, or some
    /// thousand more.
    pub limit: Option<u64>,
    /// Told the fraction done, about every 2^16 completions.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// Told when measurement begins, after a ramp.
    pub begun: Option<&'a mut dyn FnMut()>,
    /// How many requests the trace has, over all loops, if known: for `progress`.
    pub expected_requests: Option<u64>,
    /// All requests pass page caches by.
    pub direct: bool,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("start", &self.start)
            .field("ramp", &self.ramp)
            .finish_non_exhaustive()
    }
}

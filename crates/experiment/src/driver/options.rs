//! How to drive, apart from the workload itself.

use std::fmt;
use std::sync::atomic::AtomicBool;

use leyden_sim::{Ratio, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a caller can ask of a run.
#[derive(Default)]
pub struct Options<'a> {
    /// The instant at which the workload starts: not before anything the device has seen.
    pub start: Time,
    /// What is left out of the measurement.
    pub ramp: Ramp,
    /// Checked every few thousand completions; once true, the run ends and its results so far are
    /// returned, marked as interrupted. The device keeps what was outstanding: it (and a verifier)
    /// can be looked at, but not driven further.
    pub cancel: Option<&'a AtomicBool>,
    /// End the measurement, with commands outstanding, once so many commands have completed, or some
    /// thousand more.
    pub limit: Option<u64>,
    /// Told the fraction done, about every 2^16 completions.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// How many requests the trace has, over all loops, if known: for `progress`.
    pub expected_requests: Option<u64>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("start", &self.start)
            .field("ramp", &self.ramp)
            .finish_non_exhaustive()
    }
}

/// The beginning of a workload, left out of the measurement (fio's `ramp_time`). With both keys,
/// both must have passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ramp {
    /// Leave out this much simulated time.
    pub time: Span,
    /// Leave out this many completions.
    pub requests: u64,
}

/// How to replay a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// When requests are submitted.
    pub pace: Pace,
    /// What to do with requests that do not fit on the device.
    pub beyond_end: BeyondEnd,
    /// Replay the trace so many times, each after the other's last arrival; at least 1.
    pub loops: u32,
    /// The drive's zones, if it has any.
    pub zones: Option<OnZones>,
}

/// What replaying on a zoned drive needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnZones {
    /// From a zone to the next.
    pub zone_sectors: u64,
    /// Logs and metadata carry the PLP flag.
    pub has_region: bool,
}

/// When a trace's requests are submitted. A flush is submitted like any other request: as on a
/// real drive it covers the writes that were acknowledged before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Open loop: when the trace says.
    Timestamps {
        /// So many times as fast: 200 % halves every gap; above 0.
        speed: Ratio,
        /// The most requests outstanding, at least 1; later arrivals wait in the host.
        max_outstanding: u32,
    },
    /// Closed loop: ignores the timestamps and keeps this many requests outstanding; at least 1.
    QueueDepth(u32),
}

impl Pace {
    /// As the trace says, with the usual bound of 65,536 requests outstanding.
    pub const RECORDED: Self = Self::Timestamps { speed: Ratio::ONE, max_outstanding: 65_536 };
}

impl Default for Replay {
    fn default() -> Self {
        Self { pace: Pace::RECORDED, beyond_end: BeyondEnd::Error, loops: 1, zones: None }
    }
}

/// What to do with a trace's requests that end beyond the device. They are counted either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BeyondEnd {
    /// Refuse the trace, naming the request.
    #[default]
    Error,
    /// Addresses start over at 0; a request that crosses the end is cut there.
    Wrap,
    /// Requests are cut at the end, and left out if they begin beyond it.
    Clip,
}

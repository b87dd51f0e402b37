//! How a workload meets a drive: what is left out of the measurement, and how a trace is replayed.

use leyden_sim::{ConfigError, Ratio, Span};
use leyden_workload::zoned::{is_protected, wants_area};
use leyden_workload::{ClassNames, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The beginning of a workload, left out of the measurement (fio's `ramp_time`). With `time` and `requests`,
/// both must have passed. A store on zones counts all of its puts and has no ramp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ramp {
    /// Leave out this much simulated time.
    pub time: Span,
    /// Leave out this many completions.
    pub requests: u64,
    /// Do not measure until write amplification has settled within this, as `precondition.tolerance`
    /// has it for `steady`, or `precondition.max_passes` has been reached. The drive is then in the steady
    /// state of this very work at its own pace: preconditioning writes without waiting hosts, and a busy
    /// drive settles elsewhere. Limits of the jobs count from the end of the ramp. For jobs, and
    /// not beside `time` and `requests`. If no key of the ramp is given, jobs that write to a drive with
    /// `precondition.kind = "steady"` have one that settles within `precondition.tolerance`, unless there is
    /// a page cache, or `run.repeat` or `run.cut` is given. `0 %` leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Ratio>,
}

impl Ramp {
    /// Whether no key of it is given.
    pub(super) fn is_open(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self, is_of_jobs: bool, is_cut: bool) -> Result<(), ConfigError> {
        let Some(settle) = self.settle else { return Ok(()) };
        if settle == Ratio::ZERO {
            return Ok(()); // none
        }
        let problem = if settle > Ratio::from_percent(50) {
            format!("{settle} is not in 0..=50 %")
        } else if !is_of_jobs {
            "only [[workload.job]] has no end of its own; leave out a part of other work with \
             run.ramp.requests"
                .to_owned()
        } else if self.time != Span::ZERO || self.requests != 0 {
            "it ends the ramp, and so do run.ramp.time and run.ramp.requests; leave one of them out"
                .to_owned()
        } else if is_cut {
            "its end is not known before the run, and run.cut names times; leave one of them out"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(ConfigError::new("run.ramp.settle", problem))
    }
}

/// How to replay a trace.
#[derive(Clone, Debug)]
pub struct Replay {
    /// When requests are submitted.
    pub pace: Pace,
    /// In closed loop, a flush or a write with FUA waits for all requests before it, and all after wait for it: the
    /// software that sent it did so, too, if one thread of it wrote.
    pub barriers: bool,
    /// The treatment of requests that do not fit on the device.
    pub beyond_end: BeyondEnd,
    /// Replay the trace so many times, each after the other's last arrival; at least 1.
    pub loops: u32,
    /// The drive's zones, if it has any.
    pub zones: Option<OnZones>,
    /// The names of the trace's classes, from whoever reads it.
    pub classes: ClassNames,
}

/// Facts of a zoned drive that replaying needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnZones {
    /// From a zone to the next.
    pub zone_sectors: u64,
    /// The protection that a host may ask for.
    pub protection: ZoneProtection,
}

/// The protection that a zoned drive gives if a host asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneProtection {
    /// It knows the PLP flag: logs and metadata carry it.
    pub has_region: bool,
    /// It has Zone Random Write Areas: logs open their zones with one.
    pub has_areas: bool,
}

impl ZoneProtection {
    /// True if `request` asks for one or the other.
    pub const fn is_asked_by(self, request: &Request) -> bool {
        self.has_region && is_protected(request) || self.has_areas && wants_area(request)
    }
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
        Self {
            pace: Pace::RECORDED,
            barriers: false,
            beyond_end: BeyondEnd::Error,
            loops: 1,
            zones: None,
            classes: ClassNames::default(),
        }
    }
}

/// Requests of a trace that end beyond the device. They are counted either way.
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

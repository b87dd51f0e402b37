//! Drives a device with a workload, and measures.
//!
//! **What lives here**: pacing (closed loop by threads and queue depth, open loop by a trace's
//! timestamps), measurement ([`Measured`]), and the check of what reads return ([`Verifier`]; with power
//! cuts, [`Promises`]).
//! **What doesn't**: building devices, preconditioning, files; wall time.
//!
//! **Invariants**
//! - Simulated time only moves to the device's next event, the workload's next arrival, or the end
//!   of an interval; observing (intervals, progress, cancellation) changes nothing of what happens.
//! - A power cut ends every command outstanding. The host goes on with what comes next, once the power
//!   is back; nothing is asked twice.
//! - No queue is ever deeper than the workload allows.
//! - A hint in a trace is passed on in its place, and is no I/O: it takes no slot and has no latency.
//! - Nothing is allocated per I/O once every queue slot has been used, but for a read's content.
//! - Latency runs from when the host asked: a trace's request that had to wait for a slot has been
//!   waiting since its arrival.

mod buckets;
mod content;
mod fill;
mod jobs;
mod loops;
mod measure;
mod options;
mod promises;
mod pump;
mod replay;
mod series;
mod settler;
mod slots;
mod tenants;
mod traffic;
mod verify;
mod watch;
mod zone_order;
mod zone_promises;
mod zones;

#[cfg(test)]
mod tests;

use std::error::Error;

use leyden_device::{BlockDevice, Payload};
use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::synth::Job;
use leyden_workload::zoned::Host;
use thiserror::Error as ThisError;

pub use content::{Content, Unchecked};
pub use fill::Units;
pub use leyden_config::{BeyondEnd, OnZones, Pace, Ramp, Replay, ZoneProtection};
pub use measure::{Measured, Slow};
pub use options::Options;
pub use promises::Promises;
pub use settler::Settler;
pub use verify::{Verifier, Violation};
pub use watch::{Outage, Watch};
pub use zone_promises::{ZonePromise, ZonePromises};

/// Why a workload did not run to its end.
#[derive(Debug, ThisError)]
pub enum DriveError {
    /// The trace could not be opened (again).
    #[error("the trace can't be opened")]
    Open(#[source] Box<dyn Error + Send + Sync>),
    /// The trace could not be read on.
    #[error("request {number} of the trace can't be read")]
    Trace {
        /// Its number, counted from 1.
        number: u64,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A request does not fit on the device, and the policy is to refuse that.
    #[error(
        "request {number} of the trace (sector {lba}, {sectors} sectors) ends beyond the device's \
         {capacity_sectors} sectors; use a larger device, or `beyond_end = \"wrap\"` or \"clip\""
    )]
    BeyondEnd {
        /// Its number, counted from 1.
        number: u64,
        /// Its first sector.
        lba: u64,
        /// Its sectors.
        sectors: u32,
        /// The device's sectors.
        capacity_sectors: u64,
    },
    /// Nothing of the trace is left to replay.
    #[error(
        "none of the trace's requests is between `from` and `until`; widen them, or name a trace that \
         holds more than hints"
    )]
    NothingToReplay,
    /// A read returned what it must not.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A read, or a look after a power cut, returned what it must not.
    #[error(transparent)]
    Promise(#[from] Box<leyden_oracle::Violation>),
    /// A zone is not what it must be.
    #[error(transparent)]
    Zone(Box<leyden_oracle::zones::ZoneViolation>),
    /// The device owes completions and has no event to come: a bug of the device.
    #[error("the device is stuck at {} ns with {in_flight} commands outstanding", now.as_ns())]
    Stuck {
        /// When.
        now: Time,
        /// Commands that were not completed.
        in_flight: u64,
    },
}

/// Runs `jobs` together until each has reached its limit and everything is completed. With a
/// [`Options::settler`] limits count from where the measurement begins.
pub fn run_jobs<P, D>(
    device: &mut D,
    jobs: Vec<Job>,
    content: &mut dyn Content<P>,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError>
where
    P: Payload,
    D: BlockDevice<P>,
{
    let source = &mut jobs::Jobs::new(jobs, options.start, options.settler.is_some());
    pump(device, content, source, watch, options)
}

/// As [`run_jobs`], in a copy of the loop for these types alone: faster by what the calls cost, and slower to build.
pub fn run_jobs_inlined<P, D, C>(
    device: &mut D,
    jobs: Vec<Job>,
    content: &mut C,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError>
where
    P: Payload,
    D: BlockDevice<P>,
    C: Content<P>,
{
    let source = &mut jobs::Jobs::new(jobs, options.start, options.settler.is_some());
    pump::Pump::new(device, content, source, watch, options).run()
}

/// Runs a host of a zoned drive until it is done and everything is completed. It may ask for `protection`.
///
/// # Errors
/// If the workload does not run to its end.
pub fn run_host<P, D>(
    device: &mut D,
    host: &mut dyn Host,
    protection: ZoneProtection,
    content: &mut dyn Content<P>,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError>
where
    P: Payload,
    D: BlockDevice<P>,
{
    pump(device, content, &mut zones::Zones::new(host, protection), watch, options)
}

/// Replays a trace. `open` yields its requests from the beginning; it is called once per loop.
///
/// # Panics
/// If `replay` asks for a queue depth, speed or bound of zero.
pub fn replay<P, D, I, E>(
    device: &mut D,
    mut open: impl FnMut() -> Result<I, E>,
    replay: &Replay,
    content: &mut dyn Content<P>,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError>
where
    P: Payload,
    D: BlockDevice<P>,
    I: Iterator<Item = Result<Request, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let mut source = replay::source(&mut open, replay, device.capacity_sectors(), &options);
    pump(device, content, &mut *source, watch, options)
}

/// As [`replay()`], in a copy of the loop for these types alone. For drives without zones.
///
/// # Panics
/// As [`replay()`].
pub fn replay_inlined<P, D, C, I, E>(
    device: &mut D,
    mut open: impl FnMut() -> Result<I, E>,
    replay: &Replay,
    content: &mut C,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError>
where
    P: Payload,
    D: BlockDevice<P>,
    C: Content<P>,
    I: Iterator<Item = Result<Request, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let trace = replay::Trace::new(&mut open, replay, device.capacity_sectors());
    let expected = options.expected_requests;
    match replay.pace {
        Pace::QueueDepth(queue_depth) => {
            let source = &mut replay::ByDepth::new(trace, queue_depth, replay.barriers, expected);
            pump::Pump::new(device, content, source, watch, options).run()
        }
        Pace::Timestamps { speed, max_outstanding } => {
            let start = options.start;
            let source = &mut replay::ByTime::new(trace, speed, max_outstanding, start, expected);
            pump::Pump::new(device, content, source, watch, options).run()
        }
    }
}

/// The one copy of the loop for a kind of device.
fn pump<P: Payload, D: BlockDevice<P>>(
    device: &mut D,
    content: &mut dyn Content<P>,
    source: &mut dyn pump::Source,
    watch: &mut dyn Watch<P, D>,
    options: Options<'_>,
) -> Result<Measured, DriveError> {
    pump::Pump::new(device, content, source, watch, options).run()
}

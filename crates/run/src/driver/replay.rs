//! Traces: by timestamp (open loop) and by queue depth (closed loop).
//!
//! Hints in a trace keep their place in its order, and take no room among the requests outstanding.

use std::error::Error;

use leyden_device::{Lba, Op};
use leyden_sim::{Ratio, Span, Time};
use leyden_workload::{ClassNames, Request};

use super::loops::{Loops, Open, Step};
use super::pump::{Next, Source};
use super::tenants::Names;
use super::zone_order::ZoneOrder;
use super::{BeyondEnd, DriveError, OnZones, Options, Pace, Replay};

/// A trace's requests, over all loops, made to fit the device.
pub(super) struct Trace<'o, I, E> {
    loops: Loops<'o, I, E>,
    beyond_end: BeyondEnd,
    capacity_sectors: u64,
    classes: ClassNames,
    /// Added to the timestamps of this loop.
    shift: Span,
    /// The latest arrival so far.
    latest: Time,
    /// Requests read so far, not counting hints.
    number: u64,
    beyond: u64,
    left_out: u64,
    backwards: u64,
}

impl<'o, I, E> Trace<'o, I, E> {
    pub(super) fn new(open: Open<'o, I, E>, replay: &Replay, capacity_sectors: u64) -> Self {
        Self {
            loops: Loops::new(open, replay.loops),
            beyond_end: replay.beyond_end,
            capacity_sectors,
            classes: replay.classes.clone(),
            shift: Span::ZERO,
            latest: Time::ZERO,
            number: 0,
            beyond: 0,
            left_out: 0,
            backwards: 0,
        }
    }

    /// Makes `request` fit; `None` if nothing of it is left.
    #[inline]
    fn fit(&mut self, request: Request) -> Result<Option<Request>, DriveError> {
        if request.op == Op::WritePrepare {
            return Ok(self.fit_hint(request));
        }
        let end = request.lba.0.saturating_add(u64::from(request.sectors));
        if end <= self.capacity_sectors {
            return Ok(Some(request));
        }
        if request.op == Op::Flush {
            return Ok(Some(self.fit_file(request)));
        }
        self.fit_beyond(request)
    }

    /// A file's flush has as much room as the trace's devices have, of which the last may lie beyond the end in part.
    /// One that does so as a whole is for everything.
    fn fit_file(&self, flush: Request) -> Request {
        let left = self.capacity_sectors.saturating_sub(flush.lba.0);
        Request { sectors: u64::from(flush.sectors).min(left) as u32, ..flush }
    }

    /// A hint goes where the write it speaks of would go. One beyond the end does no harm, and is the
    /// device's to count.
    fn fit_hint(&self, mut hint: Request) -> Option<Request> {
        let capacity = self.capacity_sectors;
        let end = hint.lba.0.saturating_add(u64::from(hint.sectors));
        if end > capacity && self.beyond_end != BeyondEnd::Error {
            if self.beyond_end == BeyondEnd::Clip && hint.lba.0 >= capacity {
                return None;
            }
            hint.lba.0 %= capacity;
            hint.sectors = u64::from(hint.sectors).min(capacity - hint.lba.0) as u32;
        }
        Some(hint)
    }

    #[cold]
    fn fit_beyond(&mut self, mut request: Request) -> Result<Option<Request>, DriveError> {
        self.beyond += 1;
        let capacity = self.capacity_sectors;
        match self.beyond_end {
            BeyondEnd::Error => Err(DriveError::BeyondEnd {
                number: self.number,
                lba: request.lba.0,
                sectors: request.sectors,
                capacity_sectors: capacity,
            }),
            BeyondEnd::Clip if request.lba.0 >= capacity => {
                self.left_out += 1;
                Ok(None)
            }
            BeyondEnd::Clip | BeyondEnd::Wrap => {
                // Clipped requests begin below the end: the remainder leaves them where they are.
                let lba = request.lba.0 % capacity;
                request.lba = Lba(lba);
                request.sectors = u64::from(request.sectors).min(capacity - lba) as u32;
                Ok(Some(request))
            }
        }
    }

    fn beyond_warning(&self) -> Option<String> {
        let what = match self.beyond_end {
            BeyondEnd::Error => "refused".to_owned(),
            BeyondEnd::Wrap => "wrapped around".to_owned(),
            BeyondEnd::Clip => format!("cut off, {} of them left out", self.left_out),
        };
        (self.beyond > 0).then(|| {
            format!(
                "{} of {} requests ended beyond the device and were {what}",
                self.beyond, self.number
            )
        })
    }

    fn order_warning(&self) -> Option<String> {
        (self.backwards > 0).then(|| {
            format!(
                "{} requests were stamped earlier than their predecessors; they were submitted \
                 right after them",
                self.backwards
            )
        })
    }

    fn fraction(&self, expected: Option<u64>) -> f64 {
        expected.map_or(0.0, |expected| (self.number as f64 / expected.max(1) as f64).min(1.0))
    }
}

impl<I, E> Trace<'_, I, E>
where
    I: Iterator<Item = Result<Request, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    /// The next request, its arrival counted from the start of the first loop and never before
    /// its predecessor's.
    #[inline]
    fn next(&mut self) -> Result<Option<Request>, DriveError> {
        loop {
            let mut request = match self.loops.next() {
                Step::Request(request) => request,
                Step::Begun => {
                    self.shift = self.latest - Time::ZERO;
                    continue;
                }
                Step::End if self.number == 0 => return Err(DriveError::NothingToReplay),
                Step::End => return Ok(None),
                Step::NotOpened(error) => return Err(DriveError::Open(error.into())),
                Step::Broken(error) => {
                    let (number, source) = (self.number + 1, error.into());
                    return Err(DriveError::Trace { number, source });
                }
            };
            let is_hint = request.op == Op::WritePrepare;
            self.number += u64::from(!is_hint);
            request.at += self.shift;
            if request.at < self.latest {
                self.backwards += u64::from(!is_hint);
                request.at = self.latest;
            }
            self.latest = request.at;
            if let Some(request) = self.fit(request)? {
                return Ok(Some(request));
            }
        }
    }
}

/// The source of a trace's requests: paced as `replay` says, and in the order of its zones if it has any. `open` yields
/// them from the beginning.
pub(super) fn source<'o, I, E>(
    open: Open<'o, I, E>,
    replay: &Replay,
    capacity_sectors: u64,
    options: &Options<'_>,
) -> Box<dyn Source + 'o>
where
    I: Iterator<Item = Result<Request, E>> + 'o,
    E: Into<Box<dyn Error + Send + Sync>> + 'o,
{
    let trace = Trace::new(open, replay, capacity_sectors);
    let expected = options.expected_requests;
    match replay.pace {
        Pace::QueueDepth(queue_depth) => {
            ordered(ByDepth::new(trace, queue_depth, replay.barriers, expected), replay.zones)
        }
        Pace::Timestamps { speed, max_outstanding } => {
            let start = options.start;
            let source = ByTime::new(trace, speed, max_outstanding, start, expected);
            ordered(source, replay.zones)
        }
    }
}

fn ordered<'o>(source: impl Source + 'o, zones: Option<OnZones>) -> Box<dyn Source + 'o> {
    match zones {
        None => Box::new(source),
        Some(zones) => Box::new(ZoneOrder::new(source, zones)),
    }
}

/// Keeps a number of requests outstanding, whatever the timestamps say.
pub(super) struct ByDepth<'o, I, E> {
    trace: Trace<'o, I, E>,
    queue_depth: u32,
    room: u32,
    barriers: bool,
    /// A barrier, which waits for what is outstanding.
    waiting: Option<Request>,
    /// A barrier is outstanding, and nothing else.
    in_barrier: bool,
    ended: bool,
    expected: Option<u64>,
}

impl<'o, I, E> ByDepth<'o, I, E> {
    pub(super) fn new(
        trace: Trace<'o, I, E>,
        queue_depth: u32,
        barriers: bool,
        expected: Option<u64>,
    ) -> Self {
        assert!(queue_depth > 0, "a replay that never submits anything");
        let (room, waiting, in_barrier) = (queue_depth, None, false);
        Self { trace, queue_depth, room, barriers, waiting, in_barrier, ended: false, expected }
    }
}

impl<I, E> Source for ByDepth<'_, I, E>
where
    I: Iterator<Item = Result<Request, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn next(&mut self, now: Time) -> Result<Next, DriveError> {
        if self.ended {
            return Ok(Next::End);
        }
        if self.room == 0 || self.in_barrier {
            return Ok(Next::Wait);
        }
        let next = match self.waiting.take() {
            None => self.trace.next()?,
            waiting => waiting,
        };
        let Some(request) = next else {
            self.ended = true;
            return Ok(Next::End);
        };
        if request.op == Op::WritePrepare {
            return Ok(Next::Announce(request));
        }
        let is_barrier = self.barriers && (request.op == Op::Flush || request.fua);
        if is_barrier && self.room < self.queue_depth {
            self.waiting = Some(request);
            return Ok(Next::Wait);
        }
        self.in_barrier = is_barrier;
        self.room -= 1;
        Ok(Next::Submit { request, owner: 0, arrived: now })
    }

    fn tenants(&self) -> Names {
        Names::Classes(self.trace.classes.clone())
    }

    #[inline]
    fn tenant(&self, _: u32, request: &Request) -> u8 {
        request.class.number()
    }

    #[inline]
    fn completed(&mut self, _: u32, _: Time) {
        self.room += 1;
        self.in_barrier = false; // if it is true, nothing but the barrier was outstanding
    }

    fn fraction(&self, _: Time) -> f64 {
        self.trace.fraction(self.expected)
    }

    fn recorded(&self) -> Option<Time> {
        Some(self.trace.latest)
    }

    fn warnings(&self) -> Vec<String> {
        // Timestamps play no part here.
        self.trace.beyond_warning().into_iter().collect()
    }
}

/// Submits requests when the trace says, as long as not too many are outstanding.
pub(super) struct ByTime<'o, I, E> {
    trace: Trace<'o, I, E>,
    start: Time,
    speed: Ratio,
    room: u32,
    max_outstanding: u32,
    /// The next request, and when it arrives.
    pending: Option<(Request, Time)>,
    ended: bool,
    /// Requests that had to wait for room.
    delayed: u64,
    /// There was no room when it was last needed.
    is_full: bool,
    /// When there was room again after that.
    full_until: Time,
    expected: Option<u64>,
}

impl<'o, I, E> ByTime<'o, I, E> {
    pub(super) fn new(
        trace: Trace<'o, I, E>,
        speed: Ratio,
        max_outstanding: u32,
        start: Time,
        expected: Option<u64>,
    ) -> Self {
        assert!(speed > Ratio::ZERO && max_outstanding > 0, "a replay that never submits anything");
        Self {
            trace,
            start,
            speed,
            room: max_outstanding,
            max_outstanding,
            pending: None,
            ended: false,
            delayed: 0,
            is_full: false,
            full_until: Time::ZERO,
            expected,
        }
    }

    #[inline]
    fn arrival(&self, at: Time) -> Time {
        let ns = at.as_ns();
        let scaled = if self.speed == Ratio::ONE {
            ns
        } else {
            let scaled = u128::from(ns) * u128::from(Ratio::ONE.as_ppm());
            u64::try_from(scaled / u128::from(self.speed.as_ppm())).unwrap_or(u64::MAX)
        };
        self.start + Span::from_ns(scaled)
    }
}

impl<I, E> Source for ByTime<'_, I, E>
where
    I: Iterator<Item = Result<Request, E>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn next(&mut self, now: Time) -> Result<Next, DriveError> {
        if self.pending.is_none() && !self.ended {
            let request = self.trace.next()?;
            self.pending = request.map(|request| (request, self.arrival(request.at)));
            self.ended = self.pending.is_none();
        }
        let Some((request, arrived)) = self.pending else {
            return Ok(Next::End);
        };
        if arrived > now {
            return Ok(Next::At(arrived));
        }
        if request.op == Op::WritePrepare {
            self.pending = None;
            return Ok(Next::Announce(request));
        }
        if self.room == 0 {
            self.is_full = true;
            return Ok(Next::Wait);
        }
        if std::mem::take(&mut self.is_full) {
            self.full_until = now;
        }
        // Requests that arrived while the power was off are late too, but not because of the
        // drive's speed.
        self.delayed += u64::from(arrived < self.full_until);
        self.room -= 1;
        self.pending = None;
        Ok(Next::Submit { request, owner: 0, arrived })
    }

    fn tenants(&self) -> Names {
        Names::Classes(self.trace.classes.clone())
    }

    #[inline]
    fn tenant(&self, _: u32, request: &Request) -> u8 {
        request.class.number()
    }

    #[inline]
    fn completed(&mut self, _: u32, _: Time) {
        self.room += 1;
    }

    fn fraction(&self, _: Time) -> f64 {
        self.trace.fraction(self.expected)
    }

    fn recorded(&self) -> Option<Time> {
        Some(self.trace.latest)
    }

    fn warnings(&self) -> Vec<String> {
        let late = (self.delayed > 0).then(|| {
            format!(
                "{} of {} requests arrived while {} were outstanding already and were submitted \
                 late (their latency counts from their arrival): the device can't keep up with \
                 the trace",
                self.delayed, self.trace.number, self.max_outstanding
            )
        });
        let others = [self.trace.beyond_warning(), self.trace.order_warning()];
        others.into_iter().chain([late]).flatten().collect()
    }
}

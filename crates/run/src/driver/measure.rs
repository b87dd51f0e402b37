//! The measurements of a run.

use leyden_device::{Op, Stats, Status};
use leyden_sim::{Digest, Span, Time};

use super::series::{Intervals, Outstanding, Snapshot};
use super::tenants::{Names, Tenants};
use super::traffic::{Sample, Traffic};
use super::{Ramp, Settler};
use leyden_record::Settling;

/// A command that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// When the host asked for it.
    pub arrived: Time,
    /// When it completed.
    pub completed: Time,
}

/// Commands that ended with an error status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// All of them.
    pub commands: u64,
    /// Writes that the drive refused because its flash has no room left.
    pub write_faults: u64,
}

/// The measurements of a run after its ramp.
#[derive(Clone, Debug)]
pub struct Measured {
    /// When the workload began.
    pub run_start: Time,
    /// When measurement began: the start of the workload, or the end of its ramp.
    pub start: Time,
    /// When the last command completed, or the run was interrupted.
    pub end: Time,
    /// The run was cancelled; everything is up to then.
    pub interrupted: bool,
    /// How write amplification settled in the ramp, if that was waited for.
    pub settling: Option<Settling>,
    /// How long the measured part of a trace took when it was recorded.
    pub recorded: Option<Span>,
    /// Commands that succeeded.
    pub traffic: Traffic,
    /// The slowest read, write and flush; the first of those that took equally long.
    pub slowest: [Option<Slow>; 3],
    /// Hints that were handed to the device.
    pub hints: u64,
    /// Commands that ended with an error status.
    pub failed: Failed,
    /// Fingerprint of every completion since the start of the workload, ramp included.
    pub digest: Digest,
    /// The device's counters at `start`.
    pub before: Stats,
    /// The device's counters at `end`.
    pub after: Stats,
    /// Warnings to read before trusting the rest.
    pub warnings: Vec<String>,
    pub(super) series: Intervals,
    pub(super) tenants: Tenants,
}

impl Measured {
    /// How long was measured.
    pub fn elapsed(&self) -> Span {
        self.end.since(self.start)
    }

    /// Commands that completed, with success or not.
    pub fn completions(&self) -> u64 {
        self.traffic.commands() + self.failed.commands
    }
}

/// The rest of the ramp.
enum Ramping {
    /// So many completions, and its time, whose end is the next boundary.
    Plain { requests: u64 },
    /// Until write amplification has settled.
    Settling {
        settler: Box<Settler>,
        /// When it last saw the drive write.
        wrote_at: Time,
    },
}

/// How soon the settling ramp looks at the drive again, at first, and at least.
const FIRST_LOOK: Span = Span::from_ms(1);
/// It looks again after such a part of the time since it last saw the drive write: chunks come sooner or later.
const LOOKS: u64 = 8;
/// It gives up if nothing is written for so long.
const QUIET: Span = Span::from_ms(60_000);

/// A measurement under way.
pub(super) struct Measure {
    ramping: Option<Ramping>,
    settling: Option<Settling>,
    run_start: Time,
    start: Time,
    /// Of a trace, the time in its recording at which measurement began.
    recorded_from: Option<Time>,
    before: Stats,
    traffic: Traffic,
    slowest: [Option<Slow>; 3],
    hints: u64,
    errors: u64,
    write_faults: u64,
    first_error: Option<(Op, Status)>,
    digest: Digest,
    series: Intervals,
    next_boundary: Time,
    tenants: Tenants,
}

impl Measure {
    pub(super) fn new(
        start: Time,
        ramp: Ramp,
        settler: Option<Settler>,
        before: Stats,
        tenants: Names,
    ) -> Self {
        let series = Intervals::new(start, Snapshot::new(&before), Outstanding::default());
        let is_settling = settler.is_some();
        let is_given = ramp.requests > 0 || ramp.time > Span::ZERO;
        let ramping = if let Some(settler) = settler {
            Some(Ramping::Settling { settler: settler.into(), wrote_at: start })
        } else {
            is_given.then_some(Ramping::Plain { requests: ramp.requests })
        };
        let next_boundary = if ramping.is_none() {
            series.next_end()
        } else if is_settling {
            start + FIRST_LOOK
        } else if ramp.time == Span::ZERO {
            Time::MAX
        } else {
            start + ramp.time
        };
        Self {
            ramping,
            settling: None,
            run_start: start,
            recorded_from: Some(Time::ZERO),
            start,
            before,
            traffic: Traffic::new(),
            slowest: [None; 3],
            hints: 0,
            errors: 0,
            write_faults: 0,
            first_error: None,
            digest: Digest::default(),
            series,
            next_boundary,
            tenants: Tenants::new(tenants),
        }
    }

    /// When [`Measure::boundary`] must be called next.
    #[inline]
    pub(super) fn next_boundary(&self) -> Time {
        self.next_boundary
    }

    /// An interval ends, or the ramp's time; true if the measurement begins with that.
    pub(super) fn boundary(&mut self, now: Time, stats: &Stats) -> bool {
        match &mut self.ramping {
            None => {
                self.series.close(Snapshot::new(stats));
                self.next_boundary = self.series.next_end();
            }
            Some(Ramping::Plain { requests: 0 }) => {
                self.begin(now, stats.clone());
                return true;
            }
            // Time is up, completions are still missing.
            Some(Ramping::Plain { .. }) => self.next_boundary = Time::MAX,
            Some(Ramping::Settling { settler, wrote_at }) => {
                let written = settler.written();
                let is_over = settler.look(stats);
                if settler.written() > written {
                    *wrote_at = now;
                }
                let quiet = now.since(*wrote_at);
                if is_over || quiet >= QUIET {
                    self.settling = Some(settler.outcome());
                    self.begin(now, stats.clone());
                    return true;
                }
                self.next_boundary = now + FIRST_LOOK.max(Span::from_ns(quiet.as_ns() / LOOKS));
            }
        }
        false
    }

    /// The ramp is over: measurement begins.
    pub(super) fn begin(&mut self, now: Time, before: Stats) {
        self.ramping = None;
        self.start = now;
        let outstanding = *self.series.outstanding();
        self.series = Intervals::new(now, Snapshot::new(&before), outstanding);
        self.next_boundary = self.series.next_end();
        self.before = before;
        self.tenants.begin();
    }

    /// A command was submitted.
    #[inline]
    pub(super) fn submitted(&mut self, now: Time) {
        self.series.outstanding().begin(now);
    }

    /// A command is no longer outstanding: it completed, or was cut off.
    #[inline]
    pub(super) fn gone(&mut self, at: Time) {
        self.series.outstanding().end(at);
    }

    /// A hint was handed to the device.
    pub(super) fn hint(&mut self) {
        self.hints += u64::from(self.ramping.is_none());
    }

    /// Takes a completion in; true if the ramp ends with it.
    #[inline]
    pub(super) fn record(&mut self, sample: &Sample) -> bool {
        let kind = sample.op.number() | u64::from(sample.status.code()) << 8;
        self.digest.add(sample.time.as_ns()).add(kind << 32 | u64::from(sample.tag));
        if self.ramping.is_some() {
            return self.ramp();
        }
        if sample.status != Status::Success {
            self.errors += 1;
            self.write_faults += u64::from(sample.status == Status::WriteFault);
            self.first_error.get_or_insert((sample.op, sample.status));
            return false;
        }
        let latency_ns = sample.time.since(sample.arrived).as_ns();
        self.tenants.record(sample, latency_ns, &self.traffic);
        let longest_ns = self.traffic.record(sample.op, sample.bytes, latency_ns);
        if latency_ns > longest_ns {
            self.note_slowest(sample);
        }
        match sample.op {
            Op::Read => self.series.reads.record(sample.bytes, latency_ns),
            Op::Write | Op::ZoneAppend => self.series.writes.record(sample.bytes, latency_ns),
            Op::Flush => self.series.flushes.record(0, latency_ns),
            _ => {}
        }
        false
    }

    #[cold]
    fn note_slowest(&mut self, sample: &Sample) {
        let kind = match sample.op {
            Op::Read => 0,
            Op::Write | Op::ZoneAppend => 1,
            Op::Flush => 2,
            Op::Trim
            | Op::WriteZeroes
            | Op::WritePrepare
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => return,
        };
        self.slowest[kind] = Some(Slow { arrived: sample.arrived, completed: sample.time });
    }

    /// Counts a completion of the ramp; true if the ramp ends with it.
    #[cold]
    fn ramp(&mut self) -> bool {
        match &mut self.ramping {
            Some(Ramping::Plain { requests }) if *requests > 0 => {
                *requests -= 1;
                // Else the ramp's time is still to come, and ends it.
                *requests == 0 && self.next_boundary == Time::MAX
            }
            _ => false,
        }
    }

    fn is_empty(&self) -> bool {
        self.errors == 0 && self.traffic.commands() == 0
    }

    /// Measurement begins at this time of a trace's recording.
    pub(super) const fn record_from(&mut self, recorded: Option<Time>) {
        self.recorded_from = recorded;
    }

    pub(super) fn finish(
        mut self,
        end: Time,
        after: Stats,
        interrupted: bool,
        recorded: Option<Time>,
    ) -> Measured {
        let mut warnings = Vec::new();
        if self.ramping.is_some() {
            warnings.push("the run ended within its ramp: nothing was measured".to_owned());
            self.begin(end, after.clone());
        } else if self.is_empty() {
            warnings
                .push("no command completed in the measured part: nothing was measured".to_owned());
        }
        if let Some(Settling { settled: false, passes, .. }) = self.settling {
            warnings.push(format!(
                "the ramp ended after {passes:.1} times the capacity, before write amplification had settled"
            ));
        }
        if let Some((op, status)) = self.first_error {
            warnings.push(format!(
                "{} commands failed, the first of them a {op:?} with {status:?}",
                self.errors
            ));
        }
        if interrupted {
            warnings.push("the run was interrupted; its results end there".to_owned());
        }
        self.series.finish(Snapshot::new(&after), end);
        Measured {
            run_start: self.run_start,
            start: self.start,
            end,
            interrupted,
            settling: self.settling,
            recorded: recorded.zip(self.recorded_from).map(|(to, from)| to.since(from)),
            traffic: self.traffic,
            slowest: self.slowest,
            hints: self.hints,
            failed: Failed { commands: self.errors, write_faults: self.write_faults },
            digest: self.digest,
            before: self.before,
            after,
            warnings,
            series: self.series,
            tenants: self.tenants,
        }
    }
}

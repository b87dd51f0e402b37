//! The drive with its clock and the callbacks of commands in flight: what a command does, whichever thread brings it.

mod control;
pub(crate) mod lies;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use leyden_device::{Lba, SECTOR_BYTES, Status, ZoneReport};
use leyden_image::{Done, Drive, ImageError};
use leyden_sim::Time;
use leyden_wire::programs::ZoneLine;
use tracing::{debug, error, warn};

use crate::about;
use crate::ask::{Answer, Ask, Failure};
use crate::clock::{Clock, Pace};
use crate::cuts::Cuts;
use crate::direct::Counts;
use crate::faults::Faults;
use crate::latencies::{Kind, Latencies};
use crate::owner::Reply;
use crate::switch::{self, Served};

use lies::Lies;

/// A command in flight.
struct Waiting {
    reply: Reply,
    /// From when it had come in until the drive was asked.
    waited: Duration,
    asked: Time,
    kind: Option<Kind>,
}

/// The parts that can be looked at.
pub(crate) struct Seen<'a> {
    pub(crate) drive: &'a Drive,
    pub(crate) counts: Counts,
    pub(crate) served: &'a Served,
    pub(crate) latencies: &'a Latencies,
    /// Commands under way.
    pub(crate) pending: u64,
    pub(crate) cuts: &'a Cuts,
}

/// Closer than this, an event is waited for awake: sleeping takes longer than it says.
const SPIN: Duration = Duration::from_micros(60);

/// How long a drive has nothing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// It has something to do now, or in a moment.
    None,
    /// Until an event of a command in flight.
    For(Duration),
    /// Until it is asked.
    Idle,
}

/// See the module.
pub(crate) struct Engine {
    drive: Drive,
    clock: Clock,
    /// By tag: the command in flight.
    waiting: Vec<Option<Waiting>>,
    free_tags: Vec<u32>,
    pending: usize,
    served: Served,
    counts: Counts,
    latencies: Latencies,
    cuts: Cuts,
    /// Throws of its switch, for [`crate::Handle`].
    power: Arc<AtomicU32>,
    lies: Lies,
    faults: Faults,
    stop: Option<Sender<switch::Answer>>,
    /// Kept to save an allocation.
    done: Vec<Done>,
}

impl Engine {
    /// `power` is told to whoever has a handle.
    pub(crate) fn new(drive: Drive, pace: Pace, lies: Lies, power: Arc<AtomicU32>) -> Self {
        Self {
            clock: Clock::new(pace, drive.now()),
            drive,
            waiting: Vec::new(),
            free_tags: Vec::new(),
            pending: 0,
            served: Served::default(),
            counts: Counts::default(),
            latencies: Latencies::default(),
            cuts: Cuts::default(),
            power,
            lies,
            faults: Faults::default(),
            stop: None,
            done: Vec::new(),
        }
    }

    /// True if it was told to stop: nothing new begins.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// True if nothing is under way.
    pub(crate) const fn is_at_rest(&self) -> bool {
        self.pending == 0
    }

    /// Requests so far: if there are none between two looks, the drive is idle.
    pub(crate) const fn requests(&self) -> u64 {
        let Served { reads, writes, flushes, trims, .. } = self.served;
        reads + writes + flushes + trims
    }

    /// How long there is nothing to do.
    pub(crate) fn rest(&self) -> Rest {
        let Some(next) = self.drive.next_event().filter(|_| self.pending > 0) else {
            return Rest::Idle;
        };
        let span = self.clock.until(next, self.drive.now());
        if span < SPIN { Rest::None } else { Rest::For(span.saturating_sub(SPIN)) }
    }

    /// The drive is asked all of this, in order.
    pub(crate) fn commands(
        &mut self,
        asks: Vec<(Ask, Reply)>,
        ready: Instant,
    ) -> Result<(), ImageError> {
        asks.into_iter().try_for_each(|(ask, reply)| self.command(ask, reply, ready))
    }

    /// The parts that can be looked at.
    pub(crate) fn seen(&self) -> Seen<'_> {
        let (drive, counts, pending) = (&self.drive, self.counts, self.pending as u64);
        let (served, latencies, cuts) = (&self.served, &self.latencies, &self.cuts);
        Seen { drive, counts, served, latencies, pending, cuts }
    }

    /// Lets the drive come to `now`, and answers those whose commands have ended.
    fn advance(&mut self, now: Time) -> Result<(), ImageError> {
        let mut ended = std::mem::take(&mut self.done);
        self.drive.advance(now, &mut ended)?;
        for done in ended.drain(..) {
            self.answer(done);
        }
        self.done = ended;
        Ok(())
    }

    /// Lets the drive come to now, and answers those whose commands have ended.
    pub(crate) fn go_on(&mut self) -> Result<(), ImageError> {
        if self.clock.is_untimed() {
            self.drive.finish(self.pending)?;
        }
        self.advance(self.clock.now(self.drive.now()))
    }

    /// Called when the drive is idle: a long log is replaced by a checkpoint.
    pub(crate) fn look_after(&mut self) -> Result<(), ImageError> {
        self.drive.settle_recording();
        if self.drive.wants_checkpoint(false) && self.drive.is_idle() {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Takes a checkpoint. On a full file system the log goes on instead, as long as it has space.
    fn checkpoint(&mut self) -> Result<(), ImageError> {
        match self.drive.checkpoint(false) {
            Err(error) if failure_of(&error) == Failure::NoSpace => warn!(%error, "no checkpoint"),
            made => {
                made?;
                debug!("checkpoint");
            }
        }
        Ok(())
    }

    fn command(&mut self, ask: Ask, reply: Reply, ready: Instant) -> Result<(), ImageError> {
        if self.stop.is_some() {
            return Ok(()); // dropping the reply says that the drive is gone
        }
        if self.drive.wants_checkpoint(true) {
            self.quiesce()?;
        }
        if !self.drive.is_off()
            && let Some(status) = self.faults.fails(&ask)
        {
            self.fail(reply, Failure::Drive(status));
            return Ok(());
        }
        match ask {
            Ask::Extents(lba, sectors) => reply.send(self.extents(lba, sectors)),
            Ask::Mark(text) => {
                self.go_on()?; // behind all that the host has been told of
                self.drive.mark(&text);
                reply.send(Answer::Done);
            }
            Ask::Flush if self.lies.flushes => reply.send(Answer::Done),
            Ask::Write(lba, ref data, flags) if self.lies.atomic => {
                self.tear(lba, data, flags, reply, ready);
            }
            ask => self.submit(&ask, reply, ready),
        }
        Ok(())
    }

    /// Waits for all commands in flight, and takes a checkpoint.
    fn quiesce(&mut self) -> Result<(), ImageError> {
        while !self.drive.is_idle() && !self.drive.is_off() {
            let Some(next) = self.drive.next_event() else { return Ok(()) };
            std::thread::sleep(self.clock.until(next, self.drive.now()));
            self.advance(next)?;
        }
        if self.drive.is_off() { Ok(()) } else { self.checkpoint() }
    }

    fn extents(&self, lba: Lba, sectors: u32) -> Answer {
        let end = lba.0.checked_add(u64::from(sectors));
        let is_in = sectors > 0 && end.is_some_and(|end| end <= self.drive.capacity_sectors());
        match (self.drive.is_off(), is_in) {
            (true, _) => Answer::Failed(Failure::Drive(Status::NotReady)),
            (_, false) => Answer::Failed(Failure::Drive(Status::LbaOutOfRange)),
            _ => Answer::Extents(self.drive.extents(lba, sectors)),
        }
    }

    fn submit(&mut self, ask: &Ask, reply: Reply, ready: Instant) {
        let tag = self.free_tags.pop().unwrap_or(self.waiting.len() as u32);
        let now = self.clock.now(self.drive.now());
        let drive = &mut self.drive;
        let asked = match *ask {
            Ask::Read(lba, sectors) => drive.read(now, tag, lba, sectors),
            Ask::Write(lba, ref data, flags) => {
                drive.write(now, tag, lba, data, flags.but_fua(self.lies.flushes))
            }
            Ask::Append(lba, ref data, flags) => {
                drive.append(now, tag, lba, data, flags.but_fua(self.lies.flushes))
            }
            Ask::Zone(ask) => drive.zone(now, tag, ask),
            Ask::Zones(lba, most) => drive.zone_report(now, tag, lba, most),
            Ask::Flush => drive.flush(now, tag),
            Ask::Trim(lba, sectors) => drive.trim(now, tag, lba, sectors),
            Ask::WritePrepare(ref ranges) => drive.write_prepare(now, tag, ranges.clone()),
            Ask::WriteZeroes(lba, sectors, fua) => {
                drive.write_zeroes(now, tag, lba, sectors, fua && !self.lies.flushes)
            }
            Ask::Extents(..) | Ask::Mark(_) => unreachable!("answered without the device"),
        };
        if self.waiting.len() as u32 == tag {
            self.waiting.push(None);
        }
        if let Err(error) = asked {
            self.free_tags.push(tag);
            error!(%error, "the image cannot be written");
            return self.fail(reply, failure_of(&error));
        }
        self.count(ask);
        let waited = self.clock.wait_since(ready);
        let kind = Kind::of(ask);
        self.waiting[tag as usize] = Some(Waiting { reply, waited, asked: now, kind });
        self.pending += 1;
    }

    const fn count(&mut self, ask: &Ask) {
        let (served, counts) = (&mut self.served, &mut self.counts);
        match ask {
            Ask::Read(_, sectors) => {
                served.reads += 1;
                counts.reads += 1;
                counts.read_bytes += *sectors as u64 * SECTOR_BYTES;
            }
            Ask::Write(_, data, _) | Ask::Append(_, data, _) => {
                served.writes += 1;
                counts.writes += 1;
                counts.written_bytes += data.len() as u64;
            }
            Ask::WriteZeroes(..) => served.writes += 1,
            Ask::Flush => {
                served.flushes += 1;
                counts.flushes += 1;
            }
            Ask::Trim(..) => served.trims += 1,
            Ask::WritePrepare(_)
            | Ask::Zone(_)
            | Ask::Zones(..)
            | Ask::Extents(..)
            | Ask::Mark(_) => {}
        }
    }

    fn answer(&mut self, done: Done) {
        let Some(waiting) = self.waiting[done.tag as usize].take() else {
            unreachable!("nobody waits for what has ended");
        };
        let Waiting { reply, waited, asked, kind } = waiting;
        self.free_tags.push(done.tag);
        self.pending -= 1;
        let late = waited + self.clock.late(done.time, self.drive.now());
        self.served.answered(late, self.clock.between(asked, done.time));
        if let Some(kind) = kind.filter(|_| done.status == Status::Success) {
            self.latencies.record(kind, done.time.since(asked));
        }
        let answer = match done {
            Done { status: Status::Success, appended: Some(lba), .. } => Answer::Appended(lba),
            Done { status: Status::Success, zones: Some(report), .. } => {
                Answer::Zones(self.described(&report))
            }
            Done { status: Status::Success, data, .. } if data.is_empty() => Answer::Done,
            Done { status: Status::Success, data, .. } => Answer::Data(data),
            Done { no_memory: true, .. } => return self.fail(reply, Failure::NoMemory),
            Done { status, .. } => return self.fail(reply, Failure::Drive(status)),
        };
        reply.send(answer);
    }

    fn fail(&mut self, reply: Reply, failure: Failure) {
        self.served.failed += 1;
        self.served.no_space += u64::from(failure == Failure::NoSpace);
        self.counts.failures += 1;
        reply.send(Answer::Failed(failure));
    }

    /// The zones of a report, with what they hold.
    fn described(&self, report: &ZoneReport) -> Vec<ZoneLine> {
        let Some(first) = report.zones.first() else { return Vec::new() };
        let size = about::Identity::of(&self.drive).zone_size_bytes / SECTOR_BYTES;
        about::zones(&self.drive, (first.start.0 / size) as u32, report.zones.len() as u32)
    }

    /// Lets the drive come to rest, however long that would take it, and closes the image.
    pub(crate) fn close(mut self) -> Result<(), ImageError> {
        self.drive.rest()?;
        self.drive.close()?;
        if let Some(to) = self.stop {
            let _ = to.send(switch::Answer::Stopped);
        }
        Ok(())
    }
}

fn failure_of(error: &ImageError) -> Failure {
    match error {
        error if error.is_full() => Failure::NoSpace,
        _ => Failure::Image,
    }
}

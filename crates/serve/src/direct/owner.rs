//! The owner of the drive during a call.

use std::thread::Thread;

use std::time::Duration;

use leyden_device::{SECTOR_BYTES, Status};
use leyden_image::{Done, Drive, ImageError};
use leyden_sim::Time;

use super::call::{Call, Counts, DirectError};
use crate::clock::{Clock, Pace};
use crate::switch::{CutReport, Served};

/// A command under way, and who waits for it.
#[derive(Debug)]
struct Waiting {
    thread: Thread,
    outcome: Option<Result<Done, DirectError>>,
}

/// The owner of the drive.
#[derive(Debug)]
pub(super) struct DirectOwner {
    pub(super) drive: Drive,
    pub(super) clock: Clock,
    /// By tag.
    waiting: Vec<Option<Waiting>>,
    /// Of these, the ones that have no outcome yet.
    pub(super) pending: usize,
    pub(super) counts: Counts,
    /// By how much commands were answered late.
    pub(super) served: Served,
    pub(super) last_cut: Option<CutReport>,
    /// Why the drive has stopped.
    pub(super) stopped: Option<String>,
    /// Kept to save an allocation.
    done: Vec<Done>,
}

impl DirectOwner {
    pub(super) fn new(drive: Drive, pace: Pace) -> Self {
        Self {
            clock: Clock::new(pace, drive.now()),
            drive,
            waiting: Vec::new(),
            pending: 0,
            counts: Counts::default(),
            served: Served::default(),
            last_cut: None,
            stopped: None,
            done: Vec::new(),
        }
    }

    pub(super) fn check_stopped(&self) -> Result<(), DirectError> {
        self.stopped.as_ref().map_or(Ok(()), |why| Err(DirectError::Stopped(why.clone())))
    }

    /// Stops the drive if an event cannot be noted in the image.
    pub(super) fn believe<T>(&mut self, done: Result<T, ImageError>) -> Result<T, DirectError> {
        done.map_err(|error| {
            self.stopped.get_or_insert_with(|| error.to_string());
            self.interrupt();
            DirectError::Image(error)
        })
    }

    /// Tells all who wait that their command never ends. Returns how many.
    pub(super) fn interrupt(&mut self) -> u64 {
        let mut count = 0;
        for waiting in self.waiting.iter_mut().flatten().filter(|it| it.outcome.is_none()) {
            waiting.outcome = Some(Err(DirectError::PowerLost));
            waiting.thread.unpark();
            count += 1;
        }
        self.pending = 0;
        count
    }

    /// Asks the drive. Returns the command's tag.
    pub(super) fn submit(&mut self, call: Call<'_>) -> Result<u32, DirectError> {
        let free = self.waiting.iter().position(Option::is_none);
        let tag = free.unwrap_or(self.waiting.len()) as u32;
        let now = self.clock.now(self.drive.now());
        let drive = &mut self.drive;
        match call {
            Call::Write(lba, data, flags) => drive.write(now, tag, lba, data, flags),
            Call::Append(lba, data, flags) => drive.append(now, tag, lba, data, flags),
            Call::Flush => drive.flush(now, tag),
            Call::Trim(lba, sectors) => drive.trim(now, tag, lba, sectors),
            Call::Zone(ask) => drive.zone(now, tag, ask),
            Call::ZoneReport(lba, most) => drive.zone_report(now, tag, lba, most),
            Call::Read(lba, sectors) => drive.read(now, tag, lba, sectors),
        }?;
        self.count(call);
        if free.is_none() {
            self.waiting.push(None);
        }
        let waiting = Waiting { thread: std::thread::current(), outcome: None };
        self.waiting[tag as usize] = Some(waiting);
        self.pending += 1;
        Ok(tag)
    }

    const fn count(&mut self, call: Call<'_>) {
        let counts = &mut self.counts;
        match call {
            Call::Write(_, data, _) | Call::Append(_, data, _) => {
                counts.writes += 1;
                counts.written_bytes += data.len() as u64;
            }
            Call::Read(_, sectors) => {
                counts.reads += 1;
                counts.read_bytes += sectors as u64 * SECTOR_BYTES;
            }
            Call::Flush => counts.flushes += 1,
            Call::Trim(..) | Call::Zone(_) | Call::ZoneReport(..) => {}
        }
    }

    pub(super) fn take_outcome(&mut self, tag: u32) -> Option<Result<Done, DirectError>> {
        let place = &mut self.waiting[tag as usize];
        let outcome = place.as_mut()?.outcome.take()?;
        *place = None;
        Some(outcome)
    }

    /// Lets the drive come to now; untimed, to the end of what is under way.
    pub(super) fn go_on(&mut self) -> Result<(), DirectError> {
        if self.clock.is_untimed() && self.pending > 0 {
            let finished = self.drive.finish(self.pending);
            self.believe(finished)?;
        }
        self.advance(self.clock.now(self.drive.now()))
    }

    /// Lets the drive come to `now`, and answers those whose commands have ended.
    pub(super) fn advance(&mut self, now: Time) -> Result<(), DirectError> {
        let mut ended = std::mem::take(&mut self.done);
        let advanced = self.drive.advance(now, &mut ended);
        for done in ended.drain(..) {
            if !self.clock.is_untimed() {
                let late = self.clock.late(done.time, self.drive.now());
                self.served.answered(late, Duration::ZERO);
            }
            self.counts.failures += u64::from(done.status != Status::Success);
            let waiting = self.waiting[done.tag as usize].as_mut();
            let waiting = waiting.expect("somebody waits for what has ended");
            waiting.outcome = Some(match done.status {
                Status::Success => Ok(done),
                status => Err(DirectError::Drive(status)),
            });
            waiting.thread.unpark();
            self.pending -= 1;
        }
        self.done = ended;
        self.believe(advanced)
    }

    /// Before a command: a log that must not get longer is replaced by a checkpoint, at once if that holds nobody up.
    pub(super) fn shorten_log(&mut self) -> Result<(), DirectError> {
        let urgent = !(self.clock.is_untimed() && self.pending == 0);
        if !self.drive.wants_checkpoint(urgent) || self.drive.is_off() {
            return Ok(());
        }
        while !self.drive.is_idle() && !self.drive.is_off() {
            let Some(next) = self.drive.next_event() else { return Ok(()) };
            if !self.clock.is_untimed() {
                std::thread::sleep(self.clock.until(next, self.drive.now()));
            }
            self.advance(next)?;
        }
        self.checkpoint()
    }

    /// After the last command under way: the recording gets out, and a long log is replaced if the drive is idle.
    pub(super) fn look_after(&mut self) {
        if self.drive.wants_checkpoint(false) && !self.drive.is_off() && self.drive.is_idle() {
            // If it fails, the next command meets the failure.
            let _ = self.checkpoint();
        }
    }

    /// Takes a checkpoint. On a full file system the log goes on instead, as long as it has space.
    fn checkpoint(&mut self) -> Result<(), DirectError> {
        self.drive.settle_recording();
        match self.drive.checkpoint(false) {
            Err(error) if error.is_full() => Ok(()),
            made => self.believe(made),
        }
    }
}

//! The thread that has the drive.

mod batch;
mod control;
pub(crate) mod lies;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use leyden_device::{Lba, SECTOR_BYTES, Status, ZoneReport};
use leyden_image::{Done, Drive, ImageError};
use leyden_sim::Time;
use leyden_wire::programs::ZoneLine;
use tracing::{debug, error, warn};

use crate::about;
use crate::ask::{Answer, Ask, Failure};
use crate::clock::{Clock, Pace, wall};
use crate::cuts::Cuts;
use crate::direct::Counts;
use crate::faults::Faults;
use crate::latencies::{Kind, Latencies};
use crate::switch::{self, Served};

pub(crate) use batch::Batch;
use batch::Reply;
use lies::Lies;

/// A command in flight.
struct Waiting {
    reply: Reply,
    /// From when it had come in until the drive was asked.
    waited: Duration,
    asked: Time,
    kind: Option<Kind>,
}

pub(crate) enum Message {
    /// In the order in which the client asked, and when they had come in.
    Commands(Vec<(Ask, Reply)>, Instant),
    Control(switch::Ask, Sender<switch::Answer>),
    /// Looks at what is there when everything before it has been handled.
    Look(Box<dyn FnOnce(&Seen<'_>) + Send>),
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

/// The way to the drive.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: Sender<Message>,
    capacity_sectors: u64,
    unit_bytes: u32,
    is_recorded: bool,
    power: Arc<AtomicU32>,
}

impl Handle {
    /// Asks the drive; `reply` is called once with the answer, as a rule by the drive's thread, and must
    /// not wait for anything.
    pub fn ask(&self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        let mut batch = Batch::default();
        batch.push(ask, reply);
        self.ask_all(&mut batch);
    }

    /// Asks for all of `batch`, as [`Handle::ask`] for one, and empties it.
    pub(crate) fn ask_all(&self, batch: &mut Batch) {
        let (asks, ready) = std::mem::take(batch).into_parts();
        if !asks.is_empty() {
            let ready = ready.unwrap_or_else(wall);
            // If the drive's thread is gone, the batch is dropped, which answers it.
            let _ = self.inbox.send(Message::Commands(asks, ready));
        }
    }

    /// Asks the server, and waits for the answer; `None` if the drive is gone.
    pub fn control(&self, ask: switch::Ask) -> Option<switch::Answer> {
        let (to, answer) = std::sync::mpsc::channel();
        self.inbox.send(Message::Control(ask, to)).ok()?;
        answer.recv().ok()
    }

    /// The result of `look`; `None` if the drive is gone.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Seen<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (to, found) = std::sync::mpsc::channel();
        let look = move |seen: &Seen<'_>| drop(to.send(look(seen))); // who asks waits for it
        self.inbox.send(Message::Look(Box::new(look))).ok()?;
        found.recv().ok()
    }

    /// Sectors that can be addressed.
    pub const fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// Bytes of a mapping unit.
    pub const fn unit_bytes(&self) -> u32 {
        self.unit_bytes
    }

    /// True if its power is off, without asking the drive's thread.
    pub(crate) fn is_off(&self) -> bool {
        self.switched() % 2 == 1
    }

    /// How often its switch was thrown: odd, if its power is off.
    pub(crate) fn switched(&self) -> u32 {
        self.power.load(Ordering::Acquire)
    }

    /// True if what the drive is asked is recorded: notes of the host are, too.
    pub const fn is_recorded(&self) -> bool {
        self.is_recorded
    }
}

/// Closer than this, an event is waited for awake: sleeping takes longer than it says.
const SPIN: Duration = Duration::from_micros(60);
/// An idle drive looks after its image so often.
const IDLE: Duration = Duration::from_secs(1);

/// The drive, its clock, and the callbacks of commands in flight.
pub(crate) struct Owner {
    drive: Drive,
    clock: Clock,
    inbox: Receiver<Message>,
    /// By tag: the command in flight.
    waiting: Vec<Option<Waiting>>,
    free_tags: Vec<u32>,
    pending: usize,
    served: Served,
    counts: Counts,
    latencies: Latencies,
    cuts: Cuts,
    /// Told to whoever has a handle: see [`Handle::switched`].
    power: Arc<AtomicU32>,
    lies: Lies,
    faults: Faults,
    stop: Option<Sender<switch::Answer>>,
    /// Kept to save an allocation.
    done: Vec<Done>,
}

/// How the drive's thread has ended: the image is closed, or could not be.
pub(crate) type Ended = Result<(), ImageError>;

impl Owner {
    /// A drive's owner, and the way to it.
    pub(crate) fn new(drive: Drive, pace: Pace, lies: Lies) -> (Self, Handle) {
        let (to, inbox) = std::sync::mpsc::channel();
        let handle = Handle {
            inbox: to,
            capacity_sectors: drive.capacity_sectors(),
            unit_bytes: drive.unit_bytes(),
            is_recorded: drive.is_recorded(),
            power: Arc::new(AtomicU32::new(drive.is_off().into())),
        };
        let power = Arc::clone(&handle.power);
        let owner = Self {
            clock: Clock::new(pace, drive.now()),
            drive,
            inbox,
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
        };
        (owner, handle)
    }

    /// Serves until it is told to stop, or all handles are gone; then closes the image. What is under way when it
    /// is told ends before that, and nothing new begins: clients that never pause would keep it going.
    pub(crate) fn run(mut self) -> Ended {
        loop {
            let is_open = self.take_all()?;
            self.go_on()?;
            if self.pending == 0 && (self.stop.is_some() || !is_open) {
                return self.close();
            }
            self.wait()?;
        }
    }

    /// Handles what has come. False if nothing can come any more.
    fn take_all(&mut self) -> Result<bool, ImageError> {
        loop {
            match self.inbox.try_recv() {
                Ok(message) => self.handle(message)?,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
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
    fn go_on(&mut self) -> Result<(), ImageError> {
        if self.clock.is_untimed() {
            self.drive.finish(self.pending)?;
        }
        self.advance(self.clock.now(self.drive.now()))
    }

    /// Waits until there is something to do.
    fn wait(&mut self) -> Result<(), ImageError> {
        let next = self.drive.next_event().filter(|_| self.pending > 0);
        let span = match next {
            Some(next) => self.clock.until(next, self.drive.now()),
            None => IDLE,
        };
        if span < SPIN {
            std::hint::spin_loop();
            return Ok(());
        }
        match self.inbox.recv_timeout(span.saturating_sub(SPIN)) {
            Ok(message) => self.handle(message),
            Err(RecvTimeoutError::Timeout) if next.is_none() => self.look_after(),
            Err(_) => Ok(()),
        }
    }

    /// Called when the drive is idle: a long log is replaced by a checkpoint.
    fn look_after(&mut self) -> Result<(), ImageError> {
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

    fn handle(&mut self, message: Message) -> Result<(), ImageError> {
        match message {
            Message::Commands(batch, ready) => {
                batch.into_iter().try_for_each(|(ask, reply)| self.command(ask, reply, ready))
            }
            Message::Control(ask, to) => self.control(ask, to),
            Message::Look(look) => {
                let (drive, counts, pending) = (&self.drive, self.counts, self.pending as u64);
                let (served, latencies, cuts) = (&self.served, &self.latencies, &self.cuts);
                look(&Seen { drive, counts, served, latencies, pending, cuts });
                Ok(())
            }
        }
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
                self.tear((lba, data, flags), reply, ready);
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
            Ask::Zone(_) | Ask::Zones(..) | Ask::Extents(..) | Ask::Mark(_) => {}
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
    fn close(mut self) -> Ended {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_a_drive_that_is_gone_is_told() {
        let (inbox, drive) = std::sync::mpsc::channel();
        let (unit_bytes, power) = (4_096, Arc::default());
        let handle = Handle { inbox, capacity_sectors: 8, unit_bytes, is_recorded: false, power };
        let (to, answers) = std::sync::mpsc::channel();
        let ask =
            |to: Sender<Answer>| handle.ask(Ask::Flush, move |answer| to.send(answer).unwrap());
        ask(to.clone());
        drop(drive); // with a command that it never took
        ask(to);
        let all: Vec<_> = answers.iter().collect();
        assert_eq!(all, vec![Answer::Failed(Failure::Gone); 2]);
    }

    /// A drive of 16 MiB that is served by a thread of `scope`.
    fn served<'s>(
        folder: &std::path::Path,
        pace: Pace,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> Handle {
        let mut device = leyden_device::Config::default();
        (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
        device.ftl.over_provisioning = leyden_sim::Ratio::from_percent(60);
        device.buffer.size = leyden_sim::Bytes::new(128 << 10);
        device.power = Some(leyden_power::Config::default());
        let (name, made_by) = ("disk".to_owned(), "test".to_owned());
        let config = leyden_image::ImageConfig { name, seed: 1, device, stack: None, made_by };
        let drive = Drive::create(&folder.join("disk.leyden"), config).unwrap();
        let (owner, handle) = Owner::new(drive, pace, Lies::default());
        scope.spawn(move || owner.run().unwrap());
        handle
    }

    /// Commands are late from when they were there, not from when the server came to look at them.
    #[test]
    fn a_server_that_is_held_up_says_how_late_it_was() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let handle = served(folder.path(), Pace::Times(1.0), scope);
            let (told, ended) = std::sync::mpsc::channel();
            let (arrived, is_in) = std::sync::mpsc::channel();
            let (asked, all) = std::sync::mpsc::channel::<()>();
            let stall = handle.clone();
            scope.spawn(move || {
                stall.look(move |_| {
                    arrived.send(()).unwrap();
                    all.recv().unwrap();
                    std::thread::sleep(Duration::from_millis(200));
                })
            });
            // The reads come while it is away.
            is_in.recv().unwrap();
            for _ in 0..1_200 {
                let told = told.clone();
                handle.ask(Ask::Read(Lba(0), 8), move |_| told.send(()).unwrap());
            }
            asked.send(()).unwrap();
            drop(told);
            assert_eq!(ended.iter().count(), 1_200);
            let status = match handle.control(switch::Ask::Status).unwrap() {
                switch::Answer::Status(status) => status,
                other => panic!("{other:?}"),
            };
            assert!(status.late_p50_ns > 100_000_000, "{} ns", status.late_p50_ns);
            let share = status.host_share.unwrap();
            assert!(share > switch::HOST_SHARE_MOST && share <= 1.0, "{share}");
        });
    }
}

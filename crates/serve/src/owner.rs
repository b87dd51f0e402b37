//! The thread that has the drive when nobody else does.
//!
//! Over time, at its switch, and for commands of a drive with latencies, a drive needs a thread of its own. Commands of a
//! drive without latencies are carried out by the thread that brings them, if the drive is free: nobody has to be woken.
//!
//! **Invariants**
//! - Nobody goes past a message that waits for the owner: what one client asks is done in its order.
//! - However the owner ends, all that waits is answered: the drive goes with it.

mod batch;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leyden_image::{Drive, ImageError};

use crate::ask::{Answer, Ask};
use crate::clock::{Pace, wall};
use crate::engine::lies::Lies;
use crate::engine::{Engine, Rest, Seen};
use crate::switch;

pub(crate) use batch::{Batch, Reply};

enum Message {
    /// In the order in which the client asked, and when they had come in.
    Commands(Vec<(Ask, Reply)>, Instant),
    Control(switch::Ask, Sender<switch::Answer>),
    /// Looks at what is there when everything before it has been handled.
    Look(Box<dyn FnOnce(&Seen<'_>) + Send>),
    /// The drive has failed under another thread.
    Failed,
}

/// The place of the drive, and who may have it.
#[derive(Default)]
struct Seat {
    state: Mutex<State>,
    /// Messages not handled by the owner yet.
    queued: AtomicUsize,
    /// True of a drive without latencies: whoever asks carries it out, if it is free.
    is_untimed: bool,
}

#[derive(Default)]
enum State {
    Works(Box<Engine>),
    /// Failure under another thread than the owner.
    Failed(ImageError),
    /// End of the owner.
    #[default]
    Gone,
}

impl Seat {
    /// Carries it out here and now, if that is possible. What is left to the owner.
    fn carry_out(&self, asks: Vec<(Ask, Reply)>, ready: Instant) -> Option<Message> {
        let is_next = self.is_untimed && self.queued.load(Ordering::Acquire) == 0;
        if is_next
            && let Ok(mut state) = self.state.try_lock()
            && let State::Works(engine) = &mut *state
        {
            let carried_out = engine.commands(asks, ready).and_then(|()| engine.go_on());
            *state = State::Failed(carried_out.err()?);
            return Some(Message::Failed);
        }
        Some(Message::Commands(asks, ready))
    }

    /// # Panics
    /// If another thread has panicked with the drive: it is in an unknown state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread has panicked with the drive")
    }
}

/// Takes the drive away when this is dropped, which answers all that waits for it.
struct Leaving(Arc<Seat>);

impl Drop for Leaving {
    fn drop(&mut self) {
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Gone;
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").field("queued", &self.queued).finish_non_exhaustive()
    }
}

/// The way to the drive.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: Sender<Message>,
    seat: Arc<Seat>,
    capacity_sectors: u64,
    unit_bytes: u32,
    is_recorded: bool,
    power: Arc<AtomicU32>,
}

impl Handle {
    /// Asks the drive; `reply` is called once with the answer, by whichever thread has the drive then, and must not wait for
    /// anything.
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
            if let Some(message) = self.seat.carry_out(asks, ready) {
                let _ = self.send(message); // if the drive is gone, the batch is dropped, which answers it
            }
        }
    }

    /// Leaves it to the owner. `None` if that is gone.
    fn send(&self, message: Message) -> Option<()> {
        self.seat.queued.fetch_add(1, Ordering::AcqRel);
        self.inbox.send(message).ok()
    }

    /// Asks the server, and waits for the answer; `None` if the drive is gone.
    pub fn control(&self, ask: switch::Ask) -> Option<switch::Answer> {
        let (to, answer) = std::sync::mpsc::channel();
        self.send(Message::Control(ask, to))?;
        answer.recv().ok()
    }

    /// The result of `look`; `None` if the drive is gone.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Seen<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (to, found) = std::sync::mpsc::channel();
        let look = move |seen: &Seen<'_>| drop(to.send(look(seen))); // who asks waits for it
        self.send(Message::Look(Box::new(look)))?;
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

/// An idle drive looks after its image so often.
const IDLE: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Owner {
    inbox: Receiver<Message>,
    seat: Arc<Seat>,
}

/// How the drive's thread has ended: the image is closed, or could not be.
pub(crate) type Ended = Result<(), ImageError>;

impl Owner {
    /// A drive's owner, and the way to it.
    pub(crate) fn new(drive: Drive, pace: Pace, lies: Lies) -> (Self, Handle) {
        let (to, inbox) = std::sync::mpsc::channel();
        let (capacity_sectors, unit_bytes) = (drive.capacity_sectors(), drive.unit_bytes());
        let (is_recorded, is_untimed) = (drive.is_recorded(), pace == Pace::Untimed);
        let power = Arc::new(AtomicU32::new(drive.is_off().into()));
        let engine = Box::new(Engine::new(drive, pace, lies, Arc::clone(&power)));
        let state = Mutex::new(State::Works(engine));
        let seat = Arc::new(Seat { state, queued: AtomicUsize::new(0), is_untimed });
        let owner = Self { inbox, seat: Arc::clone(&seat) };
        (owner, Handle { inbox: to, seat, capacity_sectors, unit_bytes, is_recorded, power })
    }

    /// Serves until it is told to stop, or all handles are gone; then closes the image. What is under way when it
    /// is told ends before that, and nothing new begins: clients that never pause would keep it going.
    pub(crate) fn run(self) -> Ended {
        let _leaving = Leaving(Arc::clone(&self.seat));
        let mut next = None;
        loop {
            let mut state = self.seat.lock();
            let engine = match &mut *state {
                State::Works(engine) => engine,
                other => return failure_of(std::mem::take(other)),
            };
            if let Some(message) = next.take() {
                self.handle(engine, message)?;
            }
            let is_open = self.take_all(engine)?;
            engine.go_on()?;
            if engine.is_at_rest() && (engine.is_stopping() || !is_open) {
                let State::Works(engine) = std::mem::take(&mut *state) else { unreachable!() };
                drop(state);
                return engine.close();
            }
            let (rest, requests) = (engine.rest(), engine.requests());
            drop(state);
            next = match rest {
                Rest::None => {
                    std::hint::spin_loop();
                    None
                }
                Rest::For(span) => self.inbox.recv_timeout(span).ok(),
                Rest::Idle => match self.inbox.recv_timeout(IDLE) {
                    Err(RecvTimeoutError::Timeout) => {
                        self.look_after(requests)?;
                        None
                    }
                    came => came.ok(),
                },
            }
        }
    }

    /// Handles what has come. False if nothing can come any more.
    fn take_all(&self, engine: &mut Engine) -> Result<bool, ImageError> {
        loop {
            match self.inbox.try_recv() {
                Ok(message) => self.handle(engine, message)?,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    fn handle(&self, engine: &mut Engine, message: Message) -> Result<(), ImageError> {
        let handled = match message {
            Message::Commands(asks, ready) => engine.commands(asks, ready),
            Message::Control(ask, to) => engine.control(ask, to),
            Message::Look(look) => {
                look(&engine.seen());
                Ok(())
            }
            Message::Failed => Ok(()), // the next look at the drive says why
        };
        self.seat.queued.fetch_sub(1, Ordering::Release);
        handled
    }

    /// Looks after a drive that nobody has asked for anything since it had answered so many requests.
    fn look_after(&self, requests: u64) -> Result<(), ImageError> {
        match &mut *self.seat.lock() {
            State::Works(engine) if engine.requests() == requests => engine.look_after(),
            _ => Ok(()),
        }
    }
}

/// The end of an owner whose drive is not there any more.
fn failure_of(state: State) -> Ended {
    match state {
        State::Failed(error) => Err(error),
        State::Works(_) | State::Gone => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use leyden_device::Lba;

    use super::*;
    use crate::ask::Failure;

    #[test]
    fn who_asks_a_drive_that_is_gone_is_told() {
        let (inbox, drive) = std::sync::mpsc::channel();
        let (unit_bytes, power, seat) = (4_096, Arc::default(), Arc::default());
        let (capacity_sectors, is_recorded) = (8, false);
        let handle = Handle { inbox, seat, capacity_sectors, unit_bytes, is_recorded, power };
        let (to, answers) = std::sync::mpsc::channel();
        let ask =
            |to: Sender<Answer>| handle.ask(Ask::Flush, move |answer| to.send(answer).unwrap());
        ask(to.clone());
        drop(drive); // with a command that it never took
        ask(to);
        let all: Vec<_> = answers.iter().collect();
        assert_eq!(all, vec![Answer::Failed(Failure::Gone); 2]);
    }

    /// A drive of 16 MiB, served by a thread of `scope`.
    fn served<'s>(
        folder: &std::path::Path,
        pace: Pace,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> Handle {
        let (owner, handle) = owner(folder, pace);
        scope.spawn(move || owner.run().unwrap());
        handle
    }

    fn owner(folder: &std::path::Path, pace: Pace) -> (Owner, Handle) {
        let mut device = leyden_device::Config::default();
        (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
        device.ftl.over_provisioning = leyden_sim::Ratio::from_percent(60);
        device.buffer.size = leyden_sim::Bytes::new(128 << 10);
        device.power = Some(leyden_power::Config::default());
        let (name, made_by) = ("disk".to_owned(), "test".to_owned());
        let config = leyden_image::ImageConfig { name, seed: 1, device, stack: None, made_by };
        let drive = Drive::create(&folder.join("disk.leyden"), config).unwrap();
        Owner::new(drive, pace, Lies::default())
    }

    /// A drive without latencies that is free is asked by whoever comes, and one that is not in the order of who came.
    #[test]
    fn a_free_drive_answers_at_once_and_nobody_goes_past_what_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (owner, handle) = owner(folder.path(), Pace::Untimed);
        let (told, answers) = std::sync::mpsc::channel();
        let ask = |number: u32| {
            let told = told.clone();
            handle.ask(Ask::Read(Lba(0), 8), move |_| {
                told.send((number, std::thread::current().id())).unwrap();
            });
        };
        ask(0);
        let here = std::thread::current().id();
        assert_eq!(answers.try_recv(), Ok((0, here)), "answered before `ask` returned");
        let busy = handle.seat.state.lock().unwrap();
        ask(1);
        drop(busy);
        ask(2);
        assert!(answers.try_recv().is_err(), "the first is left to the owner, and the second");
        std::thread::scope(|scope| {
            scope.spawn(move || owner.run().unwrap());
            let mut done = answers.iter().map(|(number, thread)| (number, thread == here));
            assert_eq!([done.next(), done.next()], [Some((1, false)), Some((2, false))]);
            drop(handle);
        });
    }

    #[test]
    fn a_drive_with_latencies_is_left_to_the_thread_that_sees_time_pass() {
        let folder = tempfile::tempdir().unwrap();
        let (_owner, handle) = owner(folder.path(), Pace::Times(1.0));
        handle.ask(Ask::Read(Lba(0), 8), |answer| {
            assert_eq!(answer, Answer::Failed(Failure::Gone), "the owner never ran");
        });
        assert_eq!(handle.seat.queued.load(Ordering::Acquire), 1);
    }

    #[test]
    fn what_is_in_flight_is_answered_however_the_owner_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (owner, handle) = owner(folder.path(), Pace::Times(1e-6));
        let (to, answers) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let running = scope.spawn(move || owner.run());
            handle.ask(Ask::Trim(Lba(0), 8), move |answer| to.send(answer).unwrap());
            assert_eq!(handle.look(|seen| assert_eq!(seen.pending, 0, "the test's panic")), None);
            assert!(running.join().is_err());
        });
        let answer = answers.recv_timeout(Duration::from_secs(30));
        assert_eq!(answer, Ok(Answer::Failed(Failure::Gone)));
        assert_eq!(handle.control(switch::Ask::Status), None);
    }

    /// Requests of a callback are done after it, by the owner.
    #[test]
    fn an_answer_may_ask_again() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let handle = served(folder.path(), Pace::Untimed, scope);
            let (told, answers) = std::sync::mpsc::channel();
            let again = handle.clone();
            handle.ask(Ask::Read(Lba(0), 8), move |_| {
                again.ask(Ask::Flush, move |answer| told.send(answer).unwrap());
            });
            assert_eq!(answers.recv(), Ok(Answer::Done));
        });
    }

    #[test]
    fn a_drive_that_fails_under_another_thread_ends_its_owner_and_answers_all() {
        let folder = tempfile::tempdir().unwrap();
        let (owner, handle) = owner(folder.path(), Pace::Times(1.0));
        let (to, answers) = std::sync::mpsc::channel();
        handle.ask(Ask::Trim(Lba(0), 8), move |answer| to.send(answer).unwrap());
        let error = ImageError::Io(std::io::ErrorKind::NotSeekable.into());
        *handle.seat.state.lock().unwrap() = State::Failed(error);
        handle.send(Message::Failed).unwrap();
        assert!(matches!(owner.run(), Err(ImageError::Io(_))));
        assert_eq!(answers.recv(), Ok(Answer::Failed(Failure::Gone)));
        assert_eq!(handle.control(switch::Ask::Status), None);
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

//! The processes that try states, and who has which of them.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::answers::Answers;
use crate::clock::wall;
use crate::error::CrashError;
use crate::known::{Guess, Known};
use crate::launcher::Launcher;
use crate::loop_cleanup::LoopCleanup;
use crate::runner::{Runner, run_one};
use crate::session::{Plan, RecordPlan, Session};
use crate::state::State;
use crate::test_bed::Access;
use crate::timeline::Timeline;
use crate::verdict::{Outcome, Verdict};
use crate::worker::{Answer, Ask, Kind};

/// How often it is looked whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// Beside the check: mounting, unmounting, ending what hangs on.
const GRACE: Duration = Duration::from_mins(1);
/// For a worker to end by itself.
const FAREWELL: Duration = Duration::from_secs(30);
/// For one that was ended by force.
const GONE: Duration = Duration::from_secs(10);
/// A state that ends its process is tried so often.
const DEATHS_MOST: u32 = 2;

/// A process in namespaces of its own.
#[derive(Debug)]
struct Worker {
    /// No other process, before or after it, has this number.
    id: usize,
    child: Child,
    answers: Answers,
    stdin: Option<ChildStdin>,
    busy: Option<Task>,
}

#[derive(Clone, Debug)]
struct Task {
    number: usize,
    state: State,
    /// The expected outcome.
    guess: Option<Outcome>,
    deaths: u32,
    since: std::time::Instant,
}

/// States given out so far.
struct Given {
    states: usize,
    /// Whether more states are wanted.
    goes_on: bool,
}

/// Workers, ended with everything that they have mounted and started when this is dropped.
#[derive(Debug)]
pub struct Pool<'a> {
    session: Session,
    launcher: Launcher,
    cancel: &'a AtomicBool,
    atom_bytes: Option<u32>,
    access: Access,
    /// How long a state may take.
    most: Duration,
    workers: Vec<Worker>,
    /// Processes so far.
    started: usize,
    /// Outcomes that need no try; nothing if all states are tried.
    known: Option<Known<'a>>,
    guessed: u64,
    /// States are cut again while they recover: so often, by this seed.
    again: Option<(u32, u64)>,
    /// Second cuts that were tried.
    second_cuts: u64,
    to: Sender<(usize, Option<Answer>)>,
    answers: Receiver<(usize, Option<Answer>)>,
    janitor: LoopCleanup,
}

impl<'a> Pool<'a> {
    /// `jobs` workers for what was recorded in `session`; `cancel` is set by Ctrl-C.
    ///
    /// # Errors
    /// If the machine lacks something, or the recording cannot be used.
    pub fn new(
        session: &Session,
        launcher: &Launcher,
        atom_bytes: Option<u32>,
        access: Access,
        jobs: usize,
        cancel: &'a AtomicBool,
    ) -> Result<Self, CrashError> {
        let most = Duration::from_millis(session.plan()?.timeout_ms) + GRACE;
        let mut pool = Self::empty(session, launcher, atom_bytes, access, most, cancel)?;
        for _ in 0..jobs.max(1) {
            let child = pool.spawn()?;
            pool.workers.push(child);
        }
        for worker in 0..pool.workers.len() {
            pool.send(worker, &Ask::Open { atom_bytes, core: worker, access });
        }
        for _ in 0..pool.workers.len() {
            pool.await_ready()?;
        }
        Ok(pool)
    }

    fn empty(
        session: &Session,
        launcher: &Launcher,
        atom_bytes: Option<u32>,
        access: Access,
        most: Duration,
        cancel: &'a AtomicBool,
    ) -> Result<Self, CrashError> {
        let (to, answers) = channel();
        Ok(Self {
            session: session.clone(),
            launcher: launcher.clone(),
            cancel,
            atom_bytes,
            access,
            most,
            workers: Vec::new(),
            started: 0,
            known: None,
            guessed: 0,
            again: None,
            second_cuts: 0,
            to,
            answers,
            janitor: LoopCleanup::new(&session.room().view().join("disk"))?,
        })
    }

    /// Has a run recorded, in a process of its own.
    ///
    /// # Errors
    /// If a script fails, or the drive, the file system or the recording cannot be made.
    pub fn record(
        session: &Session,
        launcher: &Launcher,
        plan: &RecordPlan,
        access: Access,
        cancel: &'a AtomicBool,
    ) -> Result<u64, CrashError> {
        let mut pool = Self::empty(session, launcher, None, access, GRACE, cancel)?;
        let child = pool.spawn()?;
        pool.workers.push(child);
        match pool.ask(&Ask::Record(Box::new(plan.clone()), access))? {
            Answer::Recorded(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        }
    }

    /// Has a run of software on files recorded, in a process of its own.
    ///
    /// # Errors
    /// If a script fails, or the recording cannot be made.
    pub fn record_files(
        session: &Session,
        launcher: &Launcher,
        plan: &Plan,
        cancel: &'a AtomicBool,
    ) -> Result<u64, CrashError> {
        let mut pool = Self::empty(session, launcher, None, Access::Folder, GRACE, cancel)?;
        let child = pool.spawn()?;
        pool.workers.push(child);
        match pool.ask(&Ask::RecordFiles(Box::new(plan.clone())))? {
            Answer::Recorded(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        }
    }

    fn spawn(&mut self) -> Result<Worker, CrashError> {
        self.started += 1;
        let id = self.started;
        let (mut command, program) = self.launcher.command(&self.session, self.access)?;
        // Ctrl-C is for this process: it ends the workers in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            CrashError::Lacking(format!("cannot run unshare: {error}\n  help: install util-linux"))
        })?;
        drop(program);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("it was asked for"));
        let to = self.to.clone();
        let answers = Answers::listen(child.id(), stdout, move |answer| {
            let _ = to.send((id, answer)); // nobody may be interested
        })?;
        Ok(Worker { id, child, answers, stdin, busy: None })
    }

    fn send(&mut self, worker: usize, ask: &Ask) {
        let mut line = serde_json::to_string(ask).expect("plain data");
        line.push('\n');
        if let Some(stdin) = &mut self.workers[worker].stdin {
            let _ = stdin.write_all(line.as_bytes()); // that it has ended is heard from its output
        }
    }

    /// The next answer; nothing for a worker that has ended.
    fn receive(&self) -> Result<Option<(usize, Option<Answer>)>, CrashError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(CrashError::Interrupted);
        }
        match self.answers.recv_timeout(LOOK) {
            Ok((_, Some(Answer::Failed { kind, what }))) => Err(match kind {
                Kind::Io => CrashError::Machine(what),
                Kind::Input => CrashError::Command(what),
                Kind::Internal => CrashError::Worker(what),
            }),
            // Ignore answers from replaced workers.
            Ok((id, answer)) => {
                let worker = self.workers.iter().position(|worker| worker.id == id);
                Ok(worker.map(|worker| (worker, answer)))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => unreachable!("there is always a sender here"),
        }
    }

    fn await_ready(&mut self) -> Result<(), CrashError> {
        loop {
            match self.receive()? {
                Some((_, Some(Answer::Ready { device }))) => {
                    self.janitor.note(device.as_ref());
                    return Ok(());
                }
                Some((_, None)) => {
                    return Err(CrashError::Worker("it has ended at once".to_owned()));
                }
                Some((_, Some(other))) => return Err(unexpected(&other)),
                None => {}
            }
        }
    }

    /// Asks the first worker, which must be idle, and waits for the answer.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Answer, CrashError> {
        self.send_first(ask);
        self.next_answer()
    }

    pub(crate) fn send_first(&mut self, ask: &Ask) {
        self.send(0, ask);
    }

    /// The next answer of the first worker.
    pub(crate) fn next_answer(&mut self) -> Result<Answer, CrashError> {
        loop {
            match self.receive()? {
                Some((_, Some(Answer::Ready { device }))) => self.janitor.note(device.as_ref()),
                Some((_, Some(answer))) => return Ok(answer),
                Some((_, None)) => return Err(CrashError::Worker("it has ended".to_owned())),
                None => {}
            }
        }
    }

    /// Replaces a worker that has ended, or must.
    fn renew(&mut self, worker: usize) -> Result<(), CrashError> {
        end(&mut self.workers[worker], Duration::ZERO);
        self.workers[worker] = self.spawn()?;
        self.send(
            worker,
            &Ask::Open { atom_bytes: self.atom_bytes, core: worker, access: self.access },
        );
        self.await_ready_of(worker)
    }

    /// Other workers' answers are kept for later.
    fn await_ready_of(&mut self, worker: usize) -> Result<(), CrashError> {
        let mut others = Vec::new();
        let ready = loop {
            match self.receive() {
                Ok(Some((from, Some(Answer::Ready { device })))) if from == worker => {
                    self.janitor.note(device.as_ref());
                    break Ok(());
                }
                Ok(Some((from, None))) if from == worker => {
                    break Err(CrashError::Worker("it has ended at once".to_owned()));
                }
                Ok(Some((from, answer))) => others.push((self.workers[from].id, answer)),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        for other in others {
            let _ = self.to.send(other); // the receiver is here
        }
        ready
    }

    /// From now on a state of `timeline` is not tried in which everything that was read in an earlier one is the same.
    pub fn learn(&mut self, timeline: &'a Timeline) {
        self.known = Some(Known::new(timeline));
    }

    /// From now on states are cut again while they recover, or not any more. Returns how many second cuts were tried.
    pub(crate) fn cut_again(&mut self, again: Option<(u32, u64)>) -> u64 {
        self.again = again;
        // The outcome of a first cut does not predict that of a second.
        self.known = None;
        self.second_cuts
    }

    /// The next state that is to be tried; `done` is told of those whose outcome is known.
    fn next_task(
        &mut self,
        given: &mut Given,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Option<Task> {
        while given.goes_on && !self.cancel.load(Ordering::Relaxed) {
            let state = next()?;
            let number = given.states;
            given.states += 1;
            let guess = self.known.as_mut().map_or(Guess::Unknown, |known| known.guess(&state));
            let guess = match guess {
                Guess::Unknown => None,
                Guess::Sampled(outcome) => Some(outcome),
                Guess::Known(outcome) => {
                    self.guessed += 1;
                    given.goes_on = done(number, state, outcome);
                    continue;
                }
            };
            return Some(Task { number, state, guess, deaths: 0, since: wall() });
        }
        None
    }

    /// A task came out so; the atoms of its state that were read are `reads`.
    fn note(&mut self, task: &Task, outcome: &Outcome, reads: Option<&[u32]>) {
        let Some(known) = &mut self.known else { return };
        match &task.guess {
            Some(guess) => known.compare(guess, outcome),
            None => {
                if let Some(reads) = reads {
                    known.note(&task.state, reads, outcome);
                }
            }
        }
    }

    fn give(&mut self, worker: usize, task: Task) {
        let ask = match self.again {
            Some((most, seed)) => Ask::Again(task.state.clone(), most, seed),
            None => Ask::Try(task.state.clone()),
        };
        self.send(worker, &ask);
        self.workers[worker].busy = Some(Task { since: wall(), ..task });
    }
}

impl Runner for Pool<'_> {
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        let mut given = Given { states: 0, goes_on: true };
        let mut again: VecDeque<Task> = VecDeque::new();
        loop {
            for worker in 0..self.workers.len() {
                if self.workers[worker].busy.is_some() || !given.goes_on {
                    continue;
                }
                let task = again.pop_front().or_else(|| self.next_task(&mut given, next, done));
                let Some(task) = task else { continue };
                self.give(worker, task);
            }
            if self.workers.iter().all(|worker| worker.busy.is_none()) {
                // Cancelled trials are no result: the last answer may have come in while it was interrupted.
                let is_whole = !self.cancel.load(Ordering::Relaxed);
                return if is_whole { Ok(()) } else { Err(CrashError::Interrupted) };
            }
            match self.receive()? {
                Some((worker, Some(Answer::Tried(outcome, reads)))) => {
                    if let Some(task) = self.workers[worker].busy.take() {
                        self.note(&task, &outcome, reads.as_deref());
                        given.goes_on &= done(task.number, task.state, outcome);
                    }
                }
                Some((worker, Some(Answer::TriedAgain(tried, found)))) => {
                    self.second_cuts += u64::from(tried);
                    if let Some(task) = self.workers[worker].busy.take() {
                        let held = (task.state, Outcome::new(Verdict::Held, ""));
                        let (state, outcome) = found.unwrap_or(held);
                        given.goes_on &= done(task.number, state, outcome);
                    }
                }
                Some((_, Some(other))) => return Err(unexpected(&other)),
                Some((worker, None)) => {
                    let task = self.workers[worker].busy.take();
                    self.renew(worker)?;
                    let Some(mut task) = task else { continue };
                    task.deaths += 1;
                    if task.deaths == DEATHS_MOST {
                        let problem = format!("it ends twice at state {:?}", task.state);
                        return Err(CrashError::Worker(problem));
                    }
                    again.push_back(task);
                }
                None => {}
            }
            for worker in 0..self.workers.len() {
                let states = 1 + self.again.map_or(0, |(most, _)| most);
                let is_late = |task: &Task| task.since.elapsed() > self.most * states;
                if self.workers[worker].busy.as_ref().is_some_and(is_late) {
                    let task = self.workers[worker].busy.take().expect("it is late");
                    self.renew(worker)?;
                    let outcome = Outcome::new(Verdict::Hung, "the file system hangs");
                    given.goes_on &= done(task.number, task.state, outcome);
                }
            }
        }
    }

    fn run_one(&mut self, state: &State) -> Result<Outcome, CrashError> {
        let known = self.known.take();
        let tried = run_one(self, state);
        self.known = known;
        tried
    }

    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
        self.check_promised(state, acks)
    }

    fn guessed(&self) -> (u64, bool) {
        (self.guessed, self.known.as_ref().is_some_and(Known::is_refuted))
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        for worker in 0..self.workers.len() {
            // One that is interrupted ends its scripts first.
            let is_idle = self.workers[worker].busy.is_none();
            if is_idle && !self.cancel.load(Ordering::Relaxed) {
                self.send(worker, &Ask::End);
            } else {
                self.workers[worker].stdin = None;
            }
        }
        for worker in &mut self.workers {
            end(worker, FAREWELL);
        }
    }
}

/// Waits for the end of a worker; ends it by force if it does not come.
fn end(worker: &mut Worker, patience: Duration) {
    if !matches!(crate::check::wait(&mut worker.child, patience), Ok(Some(_))) {
        let _ = worker.child.kill(); // `unshare` takes the first process of the namespace with it
        let _ = worker.child.wait();
    }
    worker.answers.wait(GONE);
}

pub(crate) fn unexpected(answer: &Answer) -> CrashError {
    CrashError::Worker(format!("it sent an unexpected answer: {answer:?}"))
}

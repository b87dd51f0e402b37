//! The processes that try states, and who has which of them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::clock::wall;
use crate::error::CrashError;
use crate::locate::Place;
use crate::session::{RecordPlan, Session};
use crate::state::State;
use crate::verdict::{Outcome, Verdict};
use crate::worker::{Answer, Ask, Kind};

/// How often it is looked whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// Beside the check: mounting, unmounting, ending what hangs on.
const GRACE: Duration = Duration::from_mins(1);
/// For a worker to end by itself.
const FAREWELL: Duration = Duration::from_secs(30);
/// A state that ends its process is tried so often.
const DEATHS_MOST: u32 = 2;

/// How workers are started: this program, with these arguments, a folder, and nothing else.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// What makes it call [`crate::work`] with the argument that follows.
    pub args: Vec<String>,
}

/// Who tries states. What is told is in the order in which states end; `tag` says which.
pub trait Runner {
    /// Tries what `next` yields until that is nothing, and tells `done`. `done` says whether to go on.
    ///
    /// # Errors
    /// If a state cannot be tried at all.
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError>;

    /// Tries one state.
    ///
    /// # Errors
    /// As [`Runner::run`].
    fn run_one(&mut self, state: &State) -> Result<Outcome, CrashError> {
        let mut states = Some(state.clone());
        let mut found = None;
        self.run(&mut || states.take(), &mut |_, _, outcome| {
            found = Some(outcome);
            true
        })?;
        found.ok_or(CrashError::Interrupted)
    }
}

/// A process in namespaces of its own.
#[derive(Debug)]
struct Worker {
    /// No other process, before or after it, has this number.
    id: usize,
    child: Child,
    stdin: Option<ChildStdin>,
    busy: Option<Task>,
}

#[derive(Clone, Debug)]
struct Task {
    number: usize,
    state: State,
    deaths: u32,
    since: std::time::Instant,
}

/// Workers, ended with everything that they have mounted and started when this is dropped.
#[derive(Debug)]
pub struct Pool<'a> {
    session: Session,
    launcher: Launcher,
    cancel: &'a AtomicBool,
    atom_bytes: Option<u32>,
    /// How long a state may take.
    most: Duration,
    workers: Vec<Worker>,
    /// Processes so far.
    started: usize,
    to: Sender<(usize, Option<Answer>)>,
    answers: Receiver<(usize, Option<Answer>)>,
    janitor: Janitor,
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
        jobs: usize,
        cancel: &'a AtomicBool,
    ) -> Result<Self, CrashError> {
        let most = Duration::from_millis(session.plan()?.timeout_ms) + GRACE;
        let mut pool = Self::empty(session, launcher, atom_bytes, most, cancel)?;
        for _ in 0..jobs.max(1) {
            let child = pool.spawn()?;
            pool.workers.push(child);
        }
        for worker in 0..pool.workers.len() {
            pool.send(worker, &Ask::Open { atom_bytes });
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
        most: Duration,
        cancel: &'a AtomicBool,
    ) -> Result<Self, CrashError> {
        let (to, answers) = channel();
        Ok(Self {
            session: session.clone(),
            launcher: launcher.clone(),
            cancel,
            atom_bytes,
            most,
            workers: Vec::new(),
            started: 0,
            to,
            answers,
            janitor: Janitor::new(&session.room().view().join("disk"))?,
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
        cancel: &'a AtomicBool,
    ) -> Result<u64, CrashError> {
        let mut pool = Self::empty(session, launcher, None, GRACE, cancel)?;
        let child = pool.spawn()?;
        pool.workers.push(child);
        match pool.ask(&Ask::Record(Box::new(plan.clone())))? {
            Answer::Recorded(bytes) => Ok(bytes),
            other => Err(unexpected(&other)),
        }
    }

    fn spawn(&mut self) -> Result<Worker, CrashError> {
        self.started += 1;
        let id = self.started;
        let mut command = Command::new("unshare");
        // What is mounted and started in there ends with its first process, however that ends.
        command.args(["--mount", "--propagation", "private"]);
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.arg(&self.launcher.program).args(&self.launcher.args).arg(self.session.folder());
        // Ctrl-C is for this process: it ends the workers in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            CrashError::Lacking(format!("cannot run unshare: {error}\n  help: install util-linux"))
        })?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("it was asked for"));
        let to = self.to.clone();
        let read = move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Ok(answer) = serde_json::from_str(&line) else { break };
                if to.send((id, Some(answer))).is_err() {
                    return;
                }
            }
            let _ = to.send((id, None)); // nobody may be interested
        };
        std::thread::Builder::new()
            .name("answers".to_owned())
            .spawn(read)
            .map_err(CrashError::io("a thread"))?;
        Ok(Worker { id, child, stdin, busy: None })
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
                Kind::Io => CrashError::Io(PathBuf::from(what), std::io::ErrorKind::Other.into()),
                Kind::Input => CrashError::Command(what),
            }),
            // What has been replaced has nothing more to say.
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
                    self.janitor.note(&device);
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
    fn ask(&mut self, ask: &Ask) -> Result<Answer, CrashError> {
        self.send(0, ask);
        loop {
            match self.receive()? {
                Some((_, Some(answer))) => return Ok(answer),
                Some((_, None)) => return Err(CrashError::Worker("it has ended".to_owned())),
                None => {}
            }
        }
    }

    /// What lies in these atoms, when nothing is lost.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn locate(&mut self, at: usize, atoms: &[u32]) -> Result<Vec<Place>, CrashError> {
        match self.ask(&Ask::Locate { at, atoms: atoms.to_vec() })? {
            Answer::Located(places) => Ok(places),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives the user a shell in a state.
    ///
    /// # Errors
    /// If there is no terminal, or the state does not mount.
    pub fn shell(&mut self, state: &State) -> Result<(), CrashError> {
        match self.ask(&Ask::Shell(state.clone()))? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Replaces a worker that has ended, or must.
    fn renew(&mut self, worker: usize) -> Result<(), CrashError> {
        end(&mut self.workers[worker], Duration::ZERO);
        self.workers[worker] = self.spawn()?;
        self.send(worker, &Ask::Open { atom_bytes: self.atom_bytes });
        self.await_ready_of(worker)
    }

    /// Other workers' answers are kept for later.
    fn await_ready_of(&mut self, worker: usize) -> Result<(), CrashError> {
        let mut others = Vec::new();
        let ready = loop {
            match self.receive() {
                Ok(Some((from, Some(Answer::Ready { device })))) if from == worker => {
                    self.janitor.note(&device);
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

    fn give(&mut self, worker: usize, task: Task) {
        self.send(worker, &Ask::Try(task.state.clone()));
        self.workers[worker].busy = Some(Task { since: wall(), ..task });
    }
}

impl Runner for Pool<'_> {
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        let (mut number, mut goes_on) = (0, true);
        let mut again: VecDeque<Task> = VecDeque::new();
        loop {
            for worker in 0..self.workers.len() {
                if self.workers[worker].busy.is_some() || !goes_on {
                    continue;
                }
                let fresh = |state| Task { number, state, deaths: 0, since: wall() };
                let task = match again.pop_front() {
                    Some(task) => Some(task),
                    None => next().map(fresh),
                };
                let Some(task) = task else { continue };
                number = number.max(task.number + 1);
                self.give(worker, task);
            }
            if self.workers.iter().all(|worker| worker.busy.is_none()) {
                return Ok(());
            }
            match self.receive()? {
                Some((worker, Some(Answer::Tried(outcome)))) => {
                    if let Some(task) = self.workers[worker].busy.take() {
                        goes_on &= done(task.number, task.state, outcome);
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
                let is_late = |task: &Task| task.since.elapsed() > self.most;
                if self.workers[worker].busy.as_ref().is_some_and(is_late) {
                    let task = self.workers[worker].busy.take().expect("it is late");
                    self.renew(worker)?;
                    let outcome = Outcome::new(Verdict::Hung, "the file system hangs");
                    goes_on &= done(task.number, task.state, outcome);
                }
            }
        }
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
}

fn unexpected(answer: &Answer) -> CrashError {
    CrashError::Worker(format!("it answers something else: {answer:?}"))
}

/// A shell that outlives this process, however it is killed, and detaches the loop devices that are left.
#[derive(Debug)]
struct Janitor {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Janitor {
    /// For loop devices on `disk`, a path in the workers' namespaces.
    fn new(disk: &Path) -> Result<Self, CrashError> {
        // A device that was given to somebody else meanwhile is left alone.
        let script = "trap '' HUP INT TERM; \
                      while read -r device; do all=\"$all $device\"; done; \
                      for device in $all; do i=0; while [ $i -lt 100 ]; do i=$((i + 1)); \
                      file=$(losetup -n -O BACK-FILE \"$device\" 2>/dev/null) || break; \
                      case \"$file\" in \"$0\"*|/disk*) losetup -d \"$device\" 2>/dev/null; sleep 0.1;; \
                      *) break;; esac; done; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(disk).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(CrashError::io("sh"))?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    fn note(&mut self, device: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{device}"); // without it, the workers detach their devices themselves
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

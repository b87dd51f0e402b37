//! The process that runs states, in namespaces of its own: it is told what to do by lines of JSON, and answers
//! with lines. With it everything ends that it has mounted and started.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use leyden_image::ImageError;
use nix::mount::{MsFlags, mount};
use serde::{Deserialize, Serialize};

use crate::attach::Attachment;
use crate::error::CrashError;
use crate::files::record_files;
use crate::files_view::FileDifference;
use crate::lab::Lab;
use crate::locate::Place;
use crate::processes::{self, Processes};
use crate::record;
use crate::session::{Plan, RecordPlan, Session};
use crate::state::State;
use crate::test_bed::Access;
use crate::verdict::Outcome;
use crate::{network, own_program, pinned};

/// Between two looks whether everything is being taken down.
const LOOK: Duration = Duration::from_millis(50);

/// Requests to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Record a run.
    Record(Box<RecordPlan>, Access),
    /// Record calls on files.
    RecordFiles(Box<Plan>),
    /// Be ready for states, on the core with this number; atoms have so many bytes.
    Open { atom_bytes: Option<u32>, core: usize, access: Access },
    /// Check a state.
    Try(State),
    /// Say what lies in these atoms when nothing is lost.
    Locate { at: usize, atoms: Vec<u32> },
    /// Check a state in which only so many promises had been made.
    Promised(State, usize),
    /// Check a state, and then up to so many that a second cut leaves while it recovers, by this seed.
    Again(State, u32, u64),
    /// Say which files of a state are others in another one.
    Compare(State, State),
    /// Mount a state, and give the user a shell in it.
    Shell(State),
    /// Mount a state, and run a command in it.
    Run(State, String),
    /// Mount a state, and copy its files to this folder.
    Copy(State, PathBuf),
    /// Take everything down, and end.
    End,
}

/// Answers of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It was recorded; so many bytes of it.
    Recorded(u64),
    /// Ready, or, while a run is recorded, at work; the loop device that goes with the process, or is to be detached.
    Ready { device: Option<Attachment> },
    /// A state was checked; the atoms of it that were read, in that order, if they are known.
    Tried(Outcome, Option<Vec<u32>>),
    /// The files there.
    Located(Vec<Place>),
    /// So many second cuts were tried, and this is the first that broke.
    TriedAgain(u32, Option<(State, Outcome)>),
    /// These files differ.
    Compared(Vec<FileDifference>),
    /// A command has said this line.
    Said(String),
    /// A command has ended with this code.
    Ran(u8),
    /// It is done.
    Done,
    /// It cannot be done, or not any more: the user's fault, a file's, or the machine's.
    Failed { kind: Kind, what: String },
}

/// Whose fault it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    Input,
    Io,
    Internal,
}

impl Answer {
    fn failed(error: &CrashError) -> Self {
        let kind = match error {
            CrashError::Io(..) | CrashError::Write(_) | CrashError::Image(ImageError::Io(_)) => {
                Kind::Io
            }
            CrashError::Worker(_) => Kind::Internal,
            _ => Kind::Input,
        };
        let mut what = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            what = format!("{what}: {cause}");
            source = cause.source();
        }
        Self::Failed { kind, what }
    }
}

/// Does what standard input says, until it ends.
///
/// # Errors
/// If this process has no namespaces of its own, or standard output is closed.
pub fn work(folder: &Path) -> Result<(), CrashError> {
    own_program::close_inherited();
    let processes = Processes::new()?;
    let session = Session::open(folder)?;
    give_up_mounts(&session);
    let room = session.room();
    mount(Some("leyden"), &room.0, Some("tmpfs"), MsFlags::MS_NODEV, None::<&str>)
        .map_err(|error| CrashError::Io(room.0.clone(), error.into()))?;
    for folder in [room.view(), room.mnt(), room.scratch()] {
        std::fs::create_dir(&folder).map_err(CrashError::io(&folder))?;
    }
    let is_ending = Arc::new(AtomicBool::new(false));
    let asks = listen(processes, &is_ending)?;
    let mut lab = None;
    let served = serve(&asks, &session, processes, &mut lab);
    // From here on the programs that take everything down are left alone.
    is_ending.store(true, Ordering::Release);
    drop(lab);
    served
}

/// Keeps no device of others in use; what scripts may be started from stays.
fn give_up_mounts(session: &Session) {
    let variable = |name: &str| std::env::var_os(name);
    let mut needed = vec![session.folder().to_owned()];
    needed.extend(session.plan().map(|plan| plan.cwd));
    needed.extend(std::env::current_dir());
    needed.extend(["HOME", "TMPDIR"].into_iter().filter_map(variable).map(PathBuf::from));
    let path = variable("PATH").unwrap_or_default();
    needed.extend(std::env::split_paths(&path));
    let needed: Vec<&Path> = needed.iter().map(PathBuf::as_path).collect();
    pinned::give_up(&needed);
}

/// Does what it is asked until that ends, or something fails.
fn serve(
    asks: &Receiver<Ask>,
    session: &Session,
    processes: Processes,
    lab: &mut Option<Lab>,
) -> Result<(), CrashError> {
    for ask in asks {
        if matches!(ask, Ask::End) {
            break;
        }
        let answer = match do_it(ask, session, processes, lab) {
            Ok(answer) => answer,
            Err(error) => Answer::failed(&error),
        };
        say(&answer)?;
        if matches!(answer, Answer::Failed { .. }) {
            break;
        }
    }
    Ok(())
}

fn say(answer: &Answer) -> Result<(), CrashError> {
    let mut line = serde_json::to_string(answer).expect("plain data");
    line.push('\n');
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CrashError::io("standard output"))
}

fn do_it(
    ask: Ask,
    session: &Session,
    processes: Processes,
    lab: &mut Option<Lab>,
) -> Result<Answer, CrashError> {
    if let Ask::Record(plan, access) = ask {
        let attached = |device: &Attachment| say(&Answer::Ready { device: Some(device.clone()) });
        return record::record(session, &plan, access, processes, &attached).map(Answer::Recorded);
    }
    if let Ask::RecordFiles(plan) = ask {
        if plan.drives > 1 {
            network::have_own()?;
        }
        return record_files(session, &plan, processes).map(Answer::Recorded);
    }
    if let Ask::Open { atom_bytes, core, access } = ask {
        processes::stay_on(core);
        if session.plan()?.drives > 1 {
            network::have_own()?;
        }
        let made = Lab::new(session, atom_bytes, access, processes)?;
        let device = made.attachment().cloned();
        *lab = Some(made);
        return Ok(Answer::Ready { device });
    }
    let Some(lab) = lab else {
        return Err(CrashError::Worker("it got a request before it was opened".to_owned()));
    };
    match ask {
        Ask::Try(state) => {
            let outcome = lab.run(&state)?;
            Ok(Answer::Tried(outcome, lab.take_reads()))
        }
        Ask::Locate { at, atoms } => lab.locate(at, &atoms).map(Answer::Located),
        Ask::Promised(state, acks) => {
            let outcome = lab.run_promised(&state, acks)?;
            Ok(Answer::Tried(outcome, None))
        }
        Ask::Again(state, most, seed) => {
            let (tried, found) = lab.run_again(&state, most, seed)?;
            Ok(Answer::TriedAgain(tried, found))
        }
        Ask::Compare(state, other) => lab.compare(&state, &other).map(Answer::Compared),
        Ask::Shell(state) => lab.shell(&state).map(|()| Answer::Done),
        Ask::Run(state, command) => {
            lab.run_in(&state, &command, |line| say(&Answer::Said(line))).map(Answer::Ran)
        }
        Ask::Copy(state, to) => lab.copy(&state, &to).map(|()| Answer::Done),
        Ask::Record(..) | Ask::RecordFiles(_) | Ask::Open { .. } | Ask::End => {
            unreachable!("done above")
        }
    }
}

/// Reads standard input in a thread of its own. When it ends without [`Ask::End`], who has started this process is
/// gone: scripts are ended, so that what is being done ends soon, and then everything is taken down in order. To
/// exit at once would not do: a thread that waits in mount(2) for the view, which is served by this process, would
/// wait for ever.
fn listen(processes: Processes, is_ending: &Arc<AtomicBool>) -> Result<Receiver<Ask>, CrashError> {
    let (to, asks) = channel();
    let is_ending = Arc::clone(is_ending);
    let read = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Ask::End) => return drop(to.send(Ask::End)),
                Ok(ask) => match to.send(ask) {
                    Ok(()) => {}
                    Err(_) => return,
                },
                Err(_) => return,
            }
        }
        drop(to);
        while !is_ending.load(Ordering::Acquire) {
            processes.end_others(None);
            std::thread::sleep(LOOK);
        }
    };
    Builder::new().name("orders".to_owned()).spawn(read).map_err(CrashError::io("a thread"))?;
    Ok(asks)
}

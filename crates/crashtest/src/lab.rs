//! Where states are tried: set up, mounted or taken out, checked, and taken down, again and again.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::attach::Attachment;
use crate::check::{self, CheckServer, Environment};
use crate::error::{CrashError, output};
use crate::extracts::InFile;
use crate::files::InFolder;
use crate::mounts::OnLoop;
use crate::processes::Processes;
use crate::session::{Plan, Session, SessionPaths};
use crate::state::State;
use crate::test_bed::{Access, TestBed};
use crate::verdict::{Outcome, Verdict};

/// One device, and everything on it.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) plan: Plan,
    pub(crate) room: SessionPaths,
    pub(crate) processes: Processes,
    pub(crate) environment: Environment,
    server: Option<CheckServer>,
    /// Whether writes to states are noted.
    pub(crate) notes_writes: bool,
    pub(crate) ground: Box<dyn TestBed>,
}

impl Lab {
    pub(crate) fn new(
        session: &Session,
        atom_bytes: Option<u32>,
        access: Access,
        processes: Processes,
    ) -> Result<Self, CrashError> {
        let plan = session.plan()?;
        if !plan.cwd.is_dir() {
            let problem = format!(
                "{}: the folder in which the run was recorded is not there",
                plan.cwd.display()
            );
            return Err(CrashError::Input(problem));
        }
        let room = session.room();
        let timeline = || session.timeline(atom_bytes).map(Arc::new);
        let ground: Box<dyn TestBed> = match access {
            Access::Mounts => Box::new(OnLoop::new(&plan, &room, timeline()?)?),
            Access::Extracts => Box::new(InFile::new(&plan, &room, timeline()?)?),
            Access::Folder => Box::new(InFolder::new(session.recorded_files(atom_bytes)?, &room)?),
        };
        let environment = environment(&plan, &room, ground.device());
        Ok(Self { plan, room, processes, environment, server: None, notes_writes: false, ground })
    }

    /// The loop device, which outlives this process if that is killed.
    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.ground.attachment()
    }

    /// Tries a state.
    pub(crate) fn run(&mut self, state: &State) -> Result<Outcome, CrashError> {
        self.run_promised(state, self.promised(state))
    }

    /// Tries a state in which only the first `acks` promises had been made.
    pub(crate) fn run_promised(
        &mut self,
        state: &State,
        acks: usize,
    ) -> Result<Outcome, CrashError> {
        self.show(state, acks)?;
        let entered = match self.ground.enter(self.processes)? {
            Ok(entered) => entered,
            Err(said) => return Ok(Outcome::new(Verdict::Unmountable, said)),
        };
        let outcome = self.check();
        self.processes.end_others(self.server.as_ref().map(CheckServer::group));
        entered.end(self.processes)?;
        let outcome = outcome?;
        if self.plan.fsck && outcome.verdict == Verdict::Held {
            return self.fsck();
        }
        Ok(outcome)
    }

    /// How much had been promised when a state was left.
    pub(crate) fn promised(&self, state: &State) -> usize {
        let history = self.ground.history();
        history.acks_before(state.at.min(history.closed()))
    }

    /// The atoms of the last state that were read, in the order of their first reading; `None` if nobody knows.
    pub(crate) fn take_reads(&mut self) -> Option<Vec<u32>> {
        self.ground.take_reads()
    }

    /// Sets the state, and tells what had been acknowledged.
    pub(crate) fn show(&mut self, state: &State, acks: usize) -> Result<(), CrashError> {
        self.ground.history().check(state).map_err(CrashError::Input)?;
        self.ground.show(state)?;
        if self.notes_writes {
            self.ground.note_writes();
        }
        let all = self.ground.history().acks();
        let acks = &all[..acks.min(all.len())];
        let text: String = acks.iter().flat_map(|line| [line, "\n"]).collect();
        fs::write(self.room.acks(), text).map_err(CrashError::io(self.room.acks()))
    }

    fn check(&mut self) -> Result<Outcome, CrashError> {
        if !self.plan.is_check_server {
            return check::once(&self.plan, &self.room, &self.environment);
        }
        let mut server = match self.server.take() {
            Some(server) => server,
            None => CheckServer::start(&self.plan, &self.room, &self.environment)?,
        };
        let (outcome, is_alive) = server.ask(&self.plan, &self.room.output());
        if is_alive {
            self.server = Some(server);
        }
        Ok(outcome)
    }

    /// The file system's own check, after it has played its journal back.
    fn fsck(&self) -> Result<Outcome, CrashError> {
        let (program, args): (&str, &[&str]) = match self.plan.fs.as_str() {
            "ext2" | "ext3" | "ext4" => ("e2fsck", &["-fn"]),
            "xfs" => ("xfs_repair", &["-n"]),
            "btrfs" => ("btrfs", &["check", "--readonly"]),
            _ => return Ok(Outcome::new(Verdict::Held, "")),
        };
        let output = output(Command::new(program).args(args).arg(self.ground.device()))?;
        if output.status.success() {
            return Ok(Outcome::new(Verdict::Held, ""));
        }
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        Ok(Outcome::new(Verdict::Fsck, String::from_utf8_lossy(&said).trim()))
    }
}

/// The environment of checks.
fn environment(plan: &Plan, room: &SessionPaths, device: &Path) -> Environment {
    let mut all: Environment = vec![
        ("LEYDEN_ACKS", room.acks().into_os_string()),
        ("LEYDEN_TMP", room.scratch().into_os_string()),
    ];
    if plan.files.is_none() {
        all.push(("LEYDEN_DEV", device.as_os_str().to_owned()));
    } else {
        all.push(("LEYDEN_DRIVES", plan.drives.to_string().into()));
    }
    if plan.has_folder() {
        all.push(("LEYDEN_MOUNT", room.mnt().into_os_string()));
    }
    all.push(("LEYDEN_PHASE", OsString::from("check")));
    all
}

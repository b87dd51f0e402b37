//! Where states are tried: a view on a loop device, mounted, checked and unmounted, again and again.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use leyden_serve::Mount;
use nix::errno::Errno;

use crate::attach::{Loop, Mounted};
use crate::check::{self, CheckServer, Environment};
use crate::error::CrashError;
use crate::locate::{self, Place};
use crate::processes::Processes;
use crate::session::{Plan, Room, Session};
use crate::state::State;
use crate::verdict::{Outcome, Verdict};
use crate::view::View;

/// How often a mount that found another state in a cache is tried again.
const MOUNTS_MOST: u32 = 40;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// One device, and everything on it.
#[derive(Debug)]
pub(crate) struct Lab {
    plan: Plan,
    room: Room,
    processes: Processes,
    environment: Environment,
    server: Option<CheckServer>,
    // In this order they are dropped.
    device: Loop,
    view: View,
    #[expect(dead_code, reason = "what it does, it does when it is dropped")]
    mount: Mount,
}

impl Lab {
    pub(crate) fn new(
        session: &Session,
        atom_bytes: Option<u32>,
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
        let view = View::new(Arc::new(session.timeline(atom_bytes)?), plan.superblock());
        let mount = Mount::new(&room.view(), view.clone()).map_err(CrashError::io(room.view()))?;
        let device = Loop::new(&room.view().join("disk"), plan.size_bytes, plan.sector_bytes)?;
        let environment = environment(&plan, &room, device.device());
        Ok(Self { plan, room, processes, environment, server: None, device, view, mount })
    }

    pub(crate) fn device(&self) -> &Path {
        self.device.device()
    }

    /// Tries a state.
    pub(crate) fn run(&mut self, state: &State) -> Result<Outcome, CrashError> {
        self.show(state)?;
        let mounted = match self.mounted()? {
            Ok(mounted) => mounted,
            Err(said) => return Ok(Outcome::new(Verdict::Unmountable, said)),
        };
        let outcome = self.check();
        self.processes.end_others(self.server.as_ref().map(CheckServer::group));
        if let Some(mounted) = mounted {
            mounted.end(self.processes)?;
        }
        let outcome = outcome?;
        if self.plan.fsck && outcome.verdict == Verdict::Held {
            return self.fsck();
        }
        Ok(outcome)
    }

    /// Sets the view, and tells what had been acknowledged.
    fn show(&self, state: &State) -> Result<(), CrashError> {
        let timeline = self.view.timeline();
        state.check(timeline).map_err(CrashError::Input)?;
        self.view.show(state);
        let acks = &timeline.acks()[..timeline.acks_before(state.at)];
        let text: String = acks.iter().flat_map(|line| [line, "\n"]).collect();
        fs::write(self.room.acks(), text).map_err(CrashError::io(self.room.acks()))
    }

    /// The mounted file system, or why it does not mount; nothing if there is none.
    fn mounted(&self) -> Result<Result<Option<Mounted>, String>, CrashError> {
        if !self.plan.has_fs() {
            return Ok(Ok(None));
        }
        let options = self.plan.mount_options();
        for _ in 0..MOUNTS_MOST {
            let mount =
                Mounted::new(self.device(), &self.room.mnt(), &self.plan.fs, options.as_deref());
            // Another program may have had the device open since the last state, and with it the kernel's
            // cache of it: what was mounted then was not this state.
            let is_this = self.view.is_begun();
            match mount {
                Ok(mounted) if is_this => return Ok(Ok(Some(mounted))),
                Err(error) if is_this => {
                    return Ok(Err(std::io::Error::from(error).to_string()));
                }
                Err(Errno::ENODEV) => {
                    let problem = format!("the kernel knows no file system {}", self.plan.fs);
                    return Err(CrashError::Lacking(problem));
                }
                Ok(mounted) => mounted.end(self.processes)?,
                Err(_) => {}
            }
            std::thread::sleep(PAUSE);
        }
        let problem = format!(
            "{}: the kernel shows an earlier state; something holds the device open",
            self.device().display()
        );
        Err(CrashError::Lacking(problem))
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
        let output = Command::new(program).args(args).arg(self.device()).output();
        let output = output.map_err(|error| {
            CrashError::Lacking(format!("cannot run {program}: {error}\n  help: install it"))
        })?;
        if output.status.success() {
            return Ok(Outcome::new(Verdict::Held, ""));
        }
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        Ok(Outcome::new(Verdict::Fsck, String::from_utf8_lossy(&said).trim()))
    }

    /// What lies in these atoms, if nothing is lost.
    pub(crate) fn locate(&mut self, at: usize, atoms: &[u32]) -> Result<Vec<Place>, CrashError> {
        self.show(&State { at, lost: Vec::new() })?;
        let atom_bytes = u64::from(self.view.timeline().atom_bytes());
        let Ok(Some(mounted)) = self.mounted()? else { return Ok(Vec::new()) };
        let found = locate::files(&self.room.mnt(), atoms, atom_bytes);
        mounted.end(self.processes)?;
        Ok(locate::with_metadata(found, atoms, atom_bytes, &self.plan.fs, self.device()))
    }

    /// Gives the user a shell on the terminal, in a state.
    pub(crate) fn shell(&mut self, state: &State) -> Result<(), CrashError> {
        self.show(state)?;
        let mounted = match self.mounted()? {
            Ok(mounted) => mounted,
            Err(said) => {
                return Err(CrashError::Command(format!("the state does not mount: {said}")));
            }
        };
        let terminal = File::options().read(true).write(true).open("/dev/tty");
        let terminal = terminal.map_err(CrashError::io("/dev/tty"))?;
        let duplicate = || terminal.try_clone().map_err(CrashError::io("/dev/tty"));
        let folder = if mounted.is_some() { self.room.mnt() } else { self.plan.cwd.clone() };
        let mut shell = Command::new("sh");
        shell.arg("-i").current_dir(folder).envs(self.environment.iter().cloned());
        shell.stdin(duplicate()?).stdout(duplicate()?).stderr(duplicate()?);
        let ended = shell.status().map_err(CrashError::io("sh"));
        self.processes.end_others(None);
        if let Some(mounted) = mounted {
            mounted.end(self.processes)?;
        }
        ended.map(drop)
    }
}

/// What checks find in their environment.
fn environment(plan: &Plan, room: &Room, device: &Path) -> Environment {
    let mut all: Environment = vec![
        ("LEYDEN_ACKS", room.acks().into_os_string()),
        ("LEYDEN_TMP", room.scratch().into_os_string()),
        ("LEYDEN_DEV", device.as_os_str().to_owned()),
    ];
    if plan.has_fs() {
        all.push(("LEYDEN_MOUNT", room.mnt().into_os_string()));
    }
    all.push(("LEYDEN_PHASE", OsString::from("check")));
    all
}

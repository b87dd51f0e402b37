//! Recording a run: a served drive with a file system on it, the user's scripts, and serve's own recorder.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use leyden_image::{Drive, raw};
use leyden_serve::{Ask, ControlAnswer, ControlAsk, Handle, Pace, Server, ServerOptions};

use crate::attach::{Attachment, Loop, Mounted};
use crate::check::Environment;
use crate::error::{CrashError, said};
use crate::processes::Processes;
use crate::recorded::{BEGIN, END};
use crate::scripts::{Promised, Scripts, with_faults};
use crate::session::{Plan, RecordPlan, Session, SessionPaths};
use crate::test_bed::Access;

/// How often it is tried to have the folder alone, and how long between two tries.
const LOCKS_MOST: u32 = 300;
const PAUSE: Duration = Duration::from_millis(50);

/// Records a run into the session's folder. Returns the bytes of the recording. `attached` is told of each loop device.
pub(crate) fn record(
    session: &Session,
    plan: &RecordPlan,
    access: Access,
    processes: Processes,
    attached: &dyn Fn(&Attachment) -> Result<(), CrashError>,
) -> Result<u64, CrashError> {
    let image = session.drive();
    let _alone = alone(session)?;
    // The image of an earlier process that was killed; the folder is this crash test's own.
    let _ = std::fs::remove_file(&image);
    let recorded = record_on(&image, session, plan, access, processes, attached);
    let _ = std::fs::remove_file(&image);
    if recorded.is_err() {
        let _ = std::fs::remove_file(session.recording());
    }
    recorded?;
    let length = session.recording().metadata().map_err(CrashError::io(session.recording()))?.len();
    session.set_plan(&plan.plan)?;
    Ok(length)
}

/// A lock on the folder, which no other process records into while it is held. The worker of a
/// process that was killed holds it for a moment: it takes down its mounts and devices.
pub(crate) fn alone(session: &Session) -> Result<File, CrashError> {
    let path = session.folder().join(".recording");
    let file = File::create(&path).map_err(CrashError::io(&path))?;
    for _ in 0..LOCKS_MOST {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(CrashError::Io(path, error)),
        }
    }
    let folder = session.folder().display();
    Err(CrashError::Input(format!("another process records into {folder}")))
}

fn record_on(
    image: &Path,
    session: &Session,
    record: &RecordPlan,
    access: Access,
    processes: Processes,
    attached: &dyn Fn(&Attachment) -> Result<(), CrashError>,
) -> Result<(), CrashError> {
    let plan = &record.plan;
    let scripts = Scripts::new(session, plan)?;
    let (room, has_base) = (session.room(), record.base.is_some());
    let bench = Bench { plan, room, scripts, access, processes, has_base, attached };
    let mut drive = Drive::create(image, record.drive.clone())?;
    if let Some(base) = &record.base {
        let file = File::open(base).map_err(CrashError::io(base))?;
        raw::import(&mut drive, &file)?;
        drive.rest()?;
    }
    let makes_fs = plan.has_fs() && record.base.is_none();
    if makes_fs || plan.setup.is_some() {
        // Set-up is not what is tested: it takes no time, and is all there when the recording begins.
        bench.serve(drive, Pace::Untimed, |device, _| {
            if makes_fs {
                make_fs(plan, device)?;
            }
            let Some(setup) = &plan.setup else { return Ok(()) };
            bench.with_fs(device, || bench.script("setup", setup, device, None))
        })?;
        drive = Drive::open(image)?.0;
    }
    // Data from before the run is not tested: no bank is too small for it.
    drive.write_out()?;
    drive.record(&session.recording())?;
    session.share()?;
    let pace = record.speed.map_or(Pace::Untimed, Pace::Times);
    bench.serve(drive, pace, |device, handle| {
        bench.with_fs(device, || {
            // A cut while the file system is mounted is no matter of the software's.
            tell(handle, BEGIN.to_vec());
            for &rule in &plan.faults {
                handle.control(ControlAsk::Fault { rule: Some(rule), clear: false });
            }
            let worked = bench.script("work", &plan.work, device, Some(handle));
            let failed = handle.control(ControlAsk::Fault { rule: None, clear: false });
            // Operations after the work must not fail: the drive is looked at as it is.
            handle.control(ControlAsk::Fault { rule: None, clear: true });
            let failed = match failed {
                Some(ControlAnswer::Faults { rules }) => rules,
                _ => Vec::new(),
            };
            let worked = with_faults(plan, worked, &failed);
            // Later operations, like unmounting, are not part of the run.
            tell(handle, END.to_vec());
            worked
        })
    })
}

/// The device and folders on which the scripts run.
struct Bench<'a> {
    plan: &'a Plan,
    room: SessionPaths,
    scripts: Scripts<'a>,
    access: Access,
    processes: Processes,
    has_base: bool,
    /// The function that is called with each loop device.
    attached: &'a dyn Fn(&Attachment) -> Result<(), CrashError>,
}

impl Bench<'_> {
    /// Serves `drive` on a loop device while `run` runs.
    fn serve(
        &self,
        drive: Drive,
        pace: Pace,
        run: impl FnOnce(&Path, &Handle) -> Result<(), CrashError>,
    ) -> Result<(), CrashError> {
        let fuse = Some(self.room.view());
        let options = ServerOptions { fuse, ..ServerOptions::new(pace) };
        let server = Server::start(drive, &options)?;
        let disk = self.room.view().join("disk");
        let ran = match self.access {
            Access::Mounts => Loop::new(&disk, self.plan.size_bytes, self.plan.sector_bytes)
                .and_then(|device| {
                    (self.attached)(device.attachment())?;
                    run(device.device(), server.handle())
                }),
            Access::Extracts | Access::Folder => run(&disk, server.handle()),
        };
        let status = server.handle().control(ControlAsk::Status);
        server.handle().control(ControlAsk::Stop);
        let ended = server.join();
        // Commands that found no room are the machine's fault, and not the script's, whether it minds or not.
        if let Some(ControlAnswer::Status(status)) = status
            && status.no_space > 0
        {
            let full =
                std::io::Error::new(std::io::ErrorKind::StorageFull, "the file system is full");
            return Err(CrashError::Io(self.room.0.clone(), full));
        }
        ran?;
        ended.map_err(CrashError::from)
    }

    /// Mounts the file system while `run` runs, if there is one.
    fn with_fs(
        &self,
        device: &Path,
        run: impl FnOnce() -> Result<(), CrashError>,
    ) -> Result<(), CrashError> {
        if !self.plan.has_fs() {
            return run();
        }
        let (fs, options) = (&self.plan.fs, self.plan.mount_options());
        let mounted =
            Mounted::new(device, &self.room.mnt(), fs, options.as_deref()).map_err(|error| {
                let why = std::io::Error::from(error);
                let sector = self.plan.sector_bytes;
                CrashError::Command(if self.has_base {
                    format!(
                        "the file system of --base cannot be mounted as {fs}: {why}\n  help: name it with --fs; if its \
                         blocks are smaller than the device's sectors of {sector} bytes, --sector 512"
                    )
                } else {
                    format!("a new {fs} cannot be mounted: {why}")
                })
            })?;
        let ran = run();
        self.processes.end_others(None);
        let ended = mounted.end(self.processes);
        ran.and(ended)
    }

    /// Runs a script to its end. With a recorded drive, what it acknowledges is noted among the commands.
    fn script(
        &self,
        name: &str,
        text: &str,
        device: &Path,
        recorded: Option<&Handle>,
    ) -> Result<(), CrashError> {
        let environment = self.environment(name, device, recorded);
        let promised = recorded.cloned().map(|handle| -> Promised {
            Box::new(move |line| tell(&handle, format!("ack {line}\n").into_bytes()))
        });
        self.scripts.run(name, text, &environment, promised)
    }

    fn environment(&self, phase: &str, device: &Path, recorded: Option<&Handle>) -> Environment {
        let mut all: Environment = vec![
            ("LEYDEN_PHASE", phase.into()),
            ("LEYDEN_DEV", device.as_os_str().to_owned()),
            ("LEYDEN_TMP", self.room.scratch().into_os_string()),
        ];
        if self.plan.has_fs() {
            all.push(("LEYDEN_MOUNT", self.room.mnt().into_os_string()));
        }
        if recorded.is_some() {
            all.push(("LEYDEN_ACK", self.room.view().join("marks").into_os_string()));
        }
        all
    }
}

/// Notes a mark, and waits until it stands among the commands.
fn tell(handle: &Handle, mark: Vec<u8>) {
    let (to, done) = std::sync::mpsc::channel();
    handle.ask(Ask::Mark(mark), move |_| {
        let _ = to.send(()); // who asked may be gone
    });
    let _ = done.recv(); // a drive that is gone says so when it is joined
}

/// The program that makes a file system without deferred work.
fn make_fs(plan: &Plan, device: &Path) -> Result<(), CrashError> {
    let args: &[&str] = match plan.fs.as_str() {
        "ext2" | "ext3" | "ext4" => {
            &["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
        }
        "xfs" | "btrfs" => &["-q", "-f"],
        _ => &[],
    };
    let program = format!("mkfs.{}", plan.fs);
    said(Command::new(program).args(args).args(&plan.mkfs).arg(device)).map(drop)
}

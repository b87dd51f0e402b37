//! Runs that are recorded, taken from others and given to others.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use leyden_crashtest::{
    Access, History as _, Imported, Kit, NO_FS, Persistence, Plan, Pool, RecordPlan, Session, fit,
};
use leyden_report::format::count;
use leyden_serve::Pace;
use leyden_sim::Bytes;

use super::doctor::{self, Purpose};
use super::kept::{failure, unrecorded};
use super::kits::{self, Scripts};
use super::{launcher, tell};
use crate::args::crashtest::{CheckArgs, ImportArgs, RecordArgs};
use crate::commands::image::drive_of;
use crate::commands::{Cancel, warn};
use crate::failure::Failure;
use crate::output::progress;

/// Of work that promises nothing.
const SILENT: &str = "the work acknowledged nothing: only that its data is consistent can be checked\n  \
    help: let it write a line to the file $LEYDEN_ACK for each promise, or use --ack-lines";
/// For work that bypasses the folder.
const ELSEWHERE: &str = "the work changed no file in $LEYDEN_MOUNT: nothing can be lost\n  help: \
     let it write there; calls on other paths and other mounts are not recorded";

/// Records a run.
pub(super) fn record(args: &RecordArgs, cancel: &Cancel) -> Result<Session, Failure> {
    let kit = kits::wanted(args)?;
    if let Some(rules) = args.rules() {
        return record_files(args, kit, rules, cancel);
    }
    let access = Access::of_drive(false);
    doctor::check(&args.checked.fs, access, Purpose::Record)?;
    let (mut drive, _) = drive_of(args.drive(), &args.set, None, args.drive().to_owned())?;
    let size_bytes = kits::size_bytes(args, kit);
    fit(&mut drive.device, size_bytes).map_err(failure)?;
    let speed = match args.pace.pace() {
        Pace::Times(speed) => Some(speed),
        Pace::Untimed => None,
    };
    let was_there = args.out().exists();
    let session = Session::create_new(args.out()).map_err(failure)?;
    let scripts = kits::scripts(args, kit, &session)?;
    let plan = Plan {
        mkfs: args.mkfs.clone(),
        faults: args.fault.clone(),
        ack_prefix: args.ack_lines.clone(),
        ..plan(&args.checked, scripts, size_bytes, args.sector)
    };
    let base = args.base.as_deref().map(|base| base_of(base, size_bytes)).transpose()?;
    let plan = RecordPlan { drive, speed, base, plan };
    let bytes = Pool::record(&session, &launcher(), &plan, access, cancel).map_err(|error| {
        let failed = unrecorded(error);
        if !was_there && failed.is_io() {
            let _ = std::fs::remove_dir_all(session.folder()); // it has room for nothing
        }
        failed
    })?;
    let timeline = session.timeline(None).map_err(failure)?;
    if timeline.acks().is_empty() {
        warn(SILENT);
    }
    progress::note(&tell::recorded(&timeline, bytes));
    if let Some(note) = tell::unwritten(&timeline) {
        progress::note(&note);
    }
    Ok(session)
}

/// Records calls on files.
fn record_files(
    args: &RecordArgs,
    kit: Option<&Kit>,
    rules: Persistence,
    cancel: &Cancel,
) -> Result<Session, Failure> {
    doctor::check(NO_FS, Access::Folder, Purpose::Record)?;
    let session = Session::create_new(args.out()).map_err(failure)?;
    let scripts = kits::scripts(args, kit, &session)?;
    let plan = Plan {
        fs: NO_FS.to_owned(),
        files: Some(rules),
        drives: scripts.drives,
        faults: args.fault.clone(),
        ack_prefix: args.ack_lines.clone(),
        ..plan(&args.checked, scripts, 0, 0)
    };
    let bytes = Pool::record_files(&session, &launcher(), &plan, cancel).map_err(unrecorded)?;
    let history = session.files(None).map_err(failure)?;
    if history.is_unchanged() {
        warn(ELSEWHERE);
    }
    if history.acks().is_empty() {
        warn(SILENT);
    }
    progress::note(&tell::recorded_files(&history, bytes));
    Ok(session)
}

/// A raw file that fits on the device.
fn base_of(path: &Path, size_bytes: u64) -> Result<PathBuf, Failure> {
    let named =
        |error| Failure::usage(anyhow::Error::from(error).context(path.display().to_string()));
    let length = path.metadata().map_err(named)?.len();
    if length > size_bytes {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} has {} bytes, and the device {}\n  help: name its size with --size",
            path.display(),
            count(length),
            count(size_bytes)
        )));
    }
    path.canonicalize().map_err(named)
}

/// `leyden crashtest import`.
pub(super) fn import(args: &ImportArgs) -> Result<(), Failure> {
    let open = |path: &Path| {
        File::open(path).map_err(|error| {
            Failure::usage(anyhow::Error::from(error).context(path.display().to_string()))
        })
    };
    let (log, base) = (open(&args.log)?, args.base.as_deref().map(open).transpose()?);
    let length = base.as_ref().map(File::metadata).transpose()?.map_or(0, |of| of.len());
    let size_bytes = args.size.map_or(length, Bytes::get);
    if size_bytes < length || size_bytes == 0 || !size_bytes.is_multiple_of(1 << 16) {
        return Err(Failure::usage(anyhow::anyhow!(
            "a device of {} bytes with {} bytes on it\n  help: name its size with --size, in steps of 64 KiB",
            count(size_bytes),
            count(length)
        )));
    }
    let (mut drive, _) = drive_of(&args.drive, &args.set, None, args.drive.clone())?;
    fit(&mut drive.device, size_bytes).map_err(failure)?;
    let scripts = Scripts {
        setup: None,
        work: format!("imported from {}", args.log.display()),
        check: args.check.clone(),
        is_server: args.checked.check_server,
        cwd: std::env::current_dir().map_err(Failure::io)?,
        drives: 1,
    };
    // The sectors are the log's; 512 bytes are no more than any has.
    let plan = Plan {
        ack_prefix: args.ack_lines.clone(),
        ..plan(&args.checked, scripts, size_bytes, 512)
    };
    let session = Session::create_new(&args.out).map_err(failure)?;
    let begin = args.begin.as_deref();
    let imported = Imported { drive, plan, log: &log, base: base.as_ref(), begin };
    let moved = leyden_crashtest::import(&session, &imported).map_err(failure)?;
    writeln!(
        anstream::stdout(),
        "{}: {} entries, {} marks of them promises or the beginning",
        args.out.display(),
        count(moved.entries),
        count(moved.marks)
    )?;
    let timeline = session.timeline(None).map_err(failure)?;
    if timeline.acks().is_empty() {
        warn(
            "no mark of the log is a promise: only that its data is consistent can be checked\n  \
             help: marks are promises that begin with `ack `, or as --ack-lines says",
        );
    }
    Ok(())
}

/// `leyden crashtest export`.
pub(super) fn export(session: &Session, log: &Path, base: Option<&Path>) -> Result<(), Failure> {
    let entries = leyden_crashtest::export(session, log, base).map_err(failure)?;
    writeln!(anstream::stdout(), "{}: {} entries", log.display(), count(entries))?;
    Ok(())
}

/// The plan that all runs share.
fn plan(checked: &CheckArgs, scripts: Scripts, size_bytes: u64, sector_bytes: u32) -> Plan {
    Plan {
        fs: checked.fs.clone(),
        mkfs: Vec::new(),
        mount_options: checked.options.clone(),
        size_bytes,
        sector_bytes,
        setup: scripts.setup,
        work: scripts.work,
        ack_prefix: None,
        check: scripts.check,
        is_check_server: scripts.is_server,
        fsck: checked.fsck,
        timeout_ms: checked.timeout.as_ns() / 1_000_000,
        cwd: scripts.cwd,
        faults: Vec::new(),
        files: None,
        drives: 1,
    }
}

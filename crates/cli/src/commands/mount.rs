//! `leyden mount`: the file system on a drive, with all that lies between.

mod folder;
mod holders;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use leyden_serve::{ControlAnswer, ControlAsk, Server, ServerOptions};

use super::image::failure;
use super::serve::{open, record};
use crate::args::served::MountArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use folder::MountFolder;
use holders::Device;

/// How often it looks whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// The sectors of the loop device: what the kernel then writes at once is kept or lost as a whole.
const SECTOR: &str = "4096";
/// The restrictions of a mount whose file system may be a stranger's.
const SAFE: &str = "nosuid,nodev";
/// How often it is looked whether the loop device is free, before it is said who holds it.
const FREE_LOOKS: u32 = 200;

pub(crate) fn main(args: &MountArgs, signals: &Signals) -> Result<(), Failure> {
    if !args.folder.is_dir() {
        return Err(Failure::usage(anyhow!("{} is no folder", args.folder.display())));
    }
    let mut drive = open(&args.file, false)?;
    if let Some(path) = &args.record {
        record(&mut drive, path)?;
    }
    let room = MountFolder::new(&args.file).map_err(Failure::io)?;
    let fuse = Some(room.path().to_owned());
    let options = ServerOptions { fuse, ..ServerOptions::new(args.pace.pace()) };
    let cancel = signals.watched();
    let server = Server::start(drive, &options).map_err(Failure::io)?;
    let mounted = Mounted::new(&room.path().join("disk"), args);
    if mounted.is_ok() {
        writeln!(anstream::stderr(), "{} on {}", args.file.display(), args.folder.display())?;
        while !server.has_ended() && !cancel.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
    // Data that was not synchronised before a power cut is gone.
    let status = server.handle().control(ControlAsk::Status);
    let is_on = matches!(status, Some(ControlAnswer::Status(report)) if report.is_on);
    let undone = mounted.and_then(|mounted| mounted.undo(is_on));
    server.handle().control(ControlAsk::Stop);
    server.join().map_err(|error| failure(&args.file, None, error))?;
    undone.map_err(Failure::failed)
}

/// A loop device on a served disk, and its file system.
struct Mounted {
    device: String,
    folder: Option<PathBuf>,
}

impl Mounted {
    fn new(disk: &Path, args: &MountArgs) -> anyhow::Result<Self> {
        let disk = disk.to_string_lossy();
        let device = said("losetup", &["--show", "-f", "--direct-io=on", "-b", SECTOR, &disk])?;
        let mut mounted = Self { device, folder: None };
        let device = mounted.device.clone();
        match mounted.holds()?.as_deref() {
            None => drop(said(&format!("mkfs.{}", args.fs), &[&device])?),
            Some(fs) if fs == args.fs => {}
            // Which of the kernel's file systems reads an image is not the image's choice.
            Some(fs) => {
                bail!("the drive holds {fs}, not {}\n  help: --fs {fs}, if you trust it", args.fs)
            }
        }
        let folder = args.folder.to_string_lossy();
        let options = args.options.as_deref().map(|more| format!("{SAFE},{more}"));
        let options = options.as_deref().unwrap_or(SAFE);
        said("mount", &["-t", &args.fs, "-o", options, &device, &folder])?;
        mounted.folder = Some(args.folder.clone());
        Ok(mounted)
    }

    /// The file system, or what else is on it; `None` if it is blank.
    fn holds(&self) -> anyhow::Result<Option<String>> {
        let probe = Command::new("blkid").args(["-p", "-o", "export", &self.device]).output();
        let probe = probe.context("cannot run blkid")?;
        match probe.status.code() {
            Some(0) => {
                let said = String::from_utf8_lossy(&probe.stdout);
                let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
                let found = value("TYPE=").or_else(|| value("PTTYPE=")).unwrap_or("something else");
                Ok(Some(found.to_owned()))
            }
            Some(2) => Ok(None),
            _ => bail!("blkid {}: {}", self.device, String::from_utf8_lossy(&probe.stderr).trim()),
        }
    }

    /// Unmounts it. An error leaves all that was written until now on the drive, unless its power is off.
    fn undo(mut self, is_on: bool) -> anyhow::Result<()> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let device = Device::new(&self.device)?;
        let synced = File::open(&folder).and_then(|root| Ok(rustix::fs::syncfs(&root)?));
        let path = folder.to_string_lossy();
        let unmounted = said("umount", &[&path]);
        if unmounted.is_err() {
            // The mount is busy, or the drive is dead: it is detached when its last user is gone.
            said("umount", &["-l", &path])?;
        }
        if !is_on {
            return Ok(());
        }
        for _ in 0..FREE_LOOKS {
            if device.is_free() {
                return synced
                    .with_context(|| format!("{} could not be synchronised", folder.display()));
            }
            std::thread::sleep(LOOK);
        }
        // It lives on elsewhere, where only this reaches it.
        rustix::fs::sync();
        bail!(
            "the file system of {} is still in use: {}\n  all data written until now is on the drive, but it was not \
             unmounted: later writes are lost\n  help: end these, or unmount it there, before \
             `leyden mount` ends",
            folder.display(),
            device.holders()
        )
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = said("umount", &["-l", &folder.to_string_lossy()]);
        }
        let _ = said("losetup", &["-d", &self.device]); // or it goes with its last user
    }
}

/// The output of a program; its error output, if it fails.
fn said(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", args.join(" "), complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

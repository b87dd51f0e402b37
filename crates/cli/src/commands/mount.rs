//! `leyden mount`: the file system on a drive, with all that lies between.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use leyden_serve::{ControlAsk, Server, ServerOptions};

use super::Cancel;
use super::image::failure;
use super::serve::{open, record};
use crate::args::served::MountArgs;
use crate::failure::Failure;

/// How often it looks whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// The sectors of the loop device: what the kernel then writes at once is kept or lost as a whole.
const SECTOR: &str = "4096";

pub(crate) fn main(args: &MountArgs, cancel: &Cancel) -> Result<(), Failure> {
    if !args.folder.is_dir() {
        return Err(Failure::usage(anyhow!("{} is no folder", args.folder.display())));
    }
    let mut drive = open(&args.file, false)?;
    if let Some(path) = &args.record {
        record(&mut drive, path)?;
    }
    let room = Room::new(&args.file)?;
    let fuse = Some(room.0.clone());
    let options = ServerOptions {
        pace: args.pace.pace(),
        nbd: Vec::new(),
        programs: Vec::new(),
        tls: None,
        fuse,
        lies: false,
    };
    let server = Server::start(drive, &options).map_err(Failure::io)?;
    let mounted = Mounted::new(&room.0.join("disk"), args);
    if mounted.is_ok() {
        writeln!(anstream::stderr(), "{} on {}", args.file.display(), args.folder.display())?;
        while !server.has_ended() && !cancel.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
    let undone = mounted.and_then(Mounted::undo);
    server.handle().control(ControlAsk::Stop);
    server.join().map_err(|error| failure(&args.file, None, error))?;
    undone.map_err(Failure::failed)
}

/// The folder in which the drive is a file: beside the image, so that what a killed process has left there is
/// found.
struct Room(PathBuf);

impl Room {
    fn new(image: &Path) -> Result<Self, Failure> {
        let mut name = image.as_os_str().to_owned();
        name.push(".mnt");
        let room = Self(PathBuf::from(name));
        let stale = said(
            "losetup",
            &["-n", "-l", "-O", "NAME", "-j", &room.0.join("disk").to_string_lossy()],
        );
        for device in stale.unwrap_or_default().lines() {
            let _ = said("losetup", &["-d", device.trim()]); // or it goes with its last user
        }
        match std::fs::create_dir(&room.0) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Failure::io(anyhow::Error::from(error).context(room.0.display().to_string())))
            }
            _ => Ok(room),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0); // what is still mounted there stays
    }
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
        if mounted.is_blank()? {
            said(&format!("mkfs.{}", args.fs), &[&device])?;
        }
        let folder = args.folder.to_string_lossy();
        let options = args.options.as_deref().unwrap_or("defaults");
        said("mount", &["-o", options, &device, &folder])?;
        mounted.folder = Some(args.folder.clone());
        Ok(mounted)
    }

    /// True if no file system and no table of partitions is on it.
    fn is_blank(&self) -> anyhow::Result<bool> {
        let probe = Command::new("blkid").args(["-p", &self.device]).output();
        let probe = probe.context("cannot run blkid")?;
        match probe.status.code() {
            Some(0) => Ok(false),
            Some(2) => Ok(true),
            _ => bail!("blkid {}: {}", self.device, String::from_utf8_lossy(&probe.stderr).trim()),
        }
    }

    fn undo(mut self) -> anyhow::Result<()> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        let folder = folder.to_string_lossy();
        let unmounted = said("umount", &[&folder]);
        if unmounted.is_err() {
            // The mount is busy, or the drive is dead: it is detached when its last user is gone.
            said("umount", &["-l", &folder])?;
        }
        unmounted.map(drop)
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

/// What a program has to say; what it complains of, if it fails.
fn said(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", args.join(" "), complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

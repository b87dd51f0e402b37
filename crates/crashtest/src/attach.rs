//! Loop devices and mounted file systems, taken down on every way out.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde::{Deserialize, Serialize};

use crate::error::{CrashError, said};
use crate::processes::Processes;

/// How often a file system that is still used is unmounted again.
const UNMOUNTS_MOST: u32 = 1_000;
/// How often a loop device is detached again.
const DETACHES_MOST: u32 = 100;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// One attachment of a loop device. When it has been detached, the next process may get the same device: of another
/// crash test, with the same name of the file in its own namespace. It is told by its sequence number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Attachment {
    device: PathBuf,
    /// As the kernel numbers attachments; empty before Linux 5.15, which has no numbers.
    sequence: String,
}

impl Attachment {
    /// Of a device that is attached.
    pub(crate) fn of(device: PathBuf) -> Self {
        let sequence = sequence(&device);
        Self { device, sequence }
    }

    pub(crate) fn device(&self) -> &Path {
        &self.device
    }

    pub(crate) fn sequence(&self) -> &str {
        &self.sequence
    }

    /// Detaches the device; false if that did not go and is to be tried again.
    fn detach(&self) -> bool {
        if !self.is_current() {
            return true;
        }
        // While it is held open, it is detached only when it is closed, and nobody else gets it between the look and
        // the command.
        let _held = File::open(&self.device);
        !self.is_current() || said(Command::new("losetup").arg("-d").arg(&self.device)).is_ok()
    }

    /// True if the device was not detached since.
    fn is_current(&self) -> bool {
        sequence(&self.device) == self.sequence
    }
}

/// The number of the last change between attached and detached.
fn sequence(device: &Path) -> String {
    let name = device.file_name().unwrap_or_default();
    let text = std::fs::read_to_string(Path::new("/sys/block").join(name).join("diskseq"));
    text.unwrap_or_default().trim().to_owned()
}

/// A loop device with direct I/O; detached when this is dropped.
#[derive(Debug)]
pub(crate) struct Loop {
    attachment: Attachment,
}

impl Loop {
    /// On the first `bytes` of a served disk, with sectors of `sector_bytes`.
    pub(crate) fn new(disk: &Path, bytes: u64, sector_bytes: u32) -> Result<Self, CrashError> {
        let (bytes, sector) = (bytes.to_string(), sector_bytes.to_string());
        let device = said(
            Command::new("losetup")
                .args(["--show", "-f", "--direct-io=on", "-b", &sector, "--sizelimit", &bytes])
                .arg(disk),
        )?;
        Ok(Self { attachment: Attachment::of(PathBuf::from(device)) })
    }

    pub(crate) fn device(&self) -> &Path {
        self.attachment.device()
    }

    pub(crate) fn attachment(&self) -> &Attachment {
        &self.attachment
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // While everything is taken down, a program that was just started may be ended with the scripts.
        for _ in 0..DETACHES_MOST {
            if self.attachment.detach() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A mounted file system; unmounted when this is dropped, however busy it is.
#[derive(Debug)]
pub(crate) struct Mounted {
    folder: Option<PathBuf>,
}

impl Mounted {
    /// Mounts what is on `device`: the kernel plays its journal back.
    pub(crate) fn new(
        device: &Path,
        folder: &Path,
        fs: &str,
        options: Option<&str>,
    ) -> Result<Self, Errno> {
        let options = options.filter(|options| !options.is_empty());
        let flags = MsFlags::MS_NOATIME | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some(device), folder, Some(fs), flags, options)?;
        Ok(Self { folder: Some(folder.to_owned()) })
    }

    /// Unmounts it; whoever still uses it is waited for, and then ended.
    ///
    /// # Errors
    /// If it is used all the same: then it is detached, and goes with its last user.
    pub(crate) fn end(mut self, processes: Processes) -> Result<(), CrashError> {
        for attempt in 0..UNMOUNTS_MOST {
            let Some(folder) = &self.folder else { return Ok(()) };
            if umount2(folder.as_path(), MntFlags::empty()).is_ok() {
                self.folder = None;
                return Ok(());
            }
            if attempt == UNMOUNTS_MOST / 2 {
                processes.end_others(None);
            }
            std::thread::sleep(PAUSE);
        }
        Err(CrashError::Command("the file system cannot be unmounted: it is still used".to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = umount2(folder.as_path(), MntFlags::MNT_DETACH);
        }
    }
}

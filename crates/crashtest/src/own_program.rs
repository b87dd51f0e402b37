//! The program that runs, for a child that executes it: also after its file was replaced or removed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::error::CrashError;

/// proc_pid_exe(5): what this process executes, whatever became of its name.
const SELF: &str = "/proc/self/exe";
/// proc_pid_fd(5).
const DESCRIPTORS: &str = "/proc/self/fd";

/// This program's file, open for children while this is held.
///
/// A child of a child, in other namespaces, reaches it by its descriptor: its process number and its path mean something
/// else there.
#[derive(Debug)]
pub(crate) struct OwnProgram(File);

impl OwnProgram {
    pub(crate) fn open() -> Result<Self, CrashError> {
        let file = File::open(SELF).map_err(CrashError::io(SELF))?;
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))
            .map_err(|error| CrashError::Io(SELF.into(), error.into()))?;
        Ok(Self(file))
    }

    /// Where a child finds it.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(DESCRIPTORS).join(self.0.as_raw_fd().to_string())
    }
}

/// Closes the descriptor by which this process was started: scripts do not inherit it.
pub(crate) fn close_inherited() {
    let name = std::env::args_os().next().unwrap_or_default();
    let number = Path::new(&name).strip_prefix(DESCRIPTORS).ok().and_then(Path::to_str);
    if let Some(number) = number.and_then(|number| number.parse::<i32>().ok()) {
        let _ = nix::unistd::close(number); // without it, scripts have one descriptor more
    }
}

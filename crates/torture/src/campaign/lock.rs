//! One campaign at a time on a state file.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::StateError;

/// Holds a state file until dropped. The system lets go of it if the program dies.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the file beside `state` that stands for it.
    pub(super) fn take(state: &Path) -> Result<Self, StateError> {
        let mut path = state.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let failed = |error| StateError::Write(path.clone(), error);
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, _file: file }),
            Err(TryLockError::WouldBlock) => Err(StateError::Busy(state.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Nobody needs it any more; that it stays is no harm.
        drop(std::fs::remove_file(&self.path));
    }
}

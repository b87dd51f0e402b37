//! One campaign at a time on a state file.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::StateError;

/// Holds a state file until dropped. The system lets go of it if the program dies.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the file beside `state` that stands for it: the state itself is replaced at each saving.
    pub(super) fn take(state: &Path) -> Result<Self, StateError> {
        let mut path = state.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let failed = |error| StateError::Write(path.clone(), error);
        loop {
            let file = File::create(&path).map_err(failed)?;
            match file.try_lock() {
                // The last holder may have removed it since it was opened: then it locks nothing.
                Ok(()) if !is_at(&file, &path).map_err(failed)? => {}
                Ok(()) => return Ok(Self { path, _file: file }),
                Err(TryLockError::WouldBlock) => return Err(StateError::Busy(state.to_owned())),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

/// True if `path` is a name of `file`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It is obsolete, and harmless if it stays.
        drop(std::fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_file_is_one_campaign_s_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        let first = Lock::take(&state).unwrap();
        let refused = Lock::take(&state).unwrap_err();
        assert!(matches!(&refused, StateError::Busy(path) if *path == state), "{refused}");
        assert!(Lock::take(&folder.path().join("other.json")).is_ok());
        drop(first);
        drop(Lock::take(&state).unwrap());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left behind");
    }

    /// A lock on a file that its last holder removed keeps nobody out, and must not be taken for one.
    #[test]
    fn a_removed_file_stands_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json.lock");
        let opened = File::create(&path).unwrap();
        assert!(is_at(&opened, &path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&opened, &path).unwrap());
        File::create(&path).unwrap();
        assert!(!is_at(&opened, &path).unwrap());
    }
}

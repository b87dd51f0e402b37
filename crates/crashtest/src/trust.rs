//! Whose folder it is: `plan.json` holds shell commands, and only its recorder's run without a word.
//!
//! A process that records into a folder, or runs with `--trust`, leaves a mark in it: a digest of
//! the user's own key and of the plan. A plan that was changed has another digest, and a folder
//! that came from elsewhere another key.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::CrashError;
use crate::session::Session;

const MARK: &str = ".trust";
const KEY_BYTES: usize = 32;

impl Session {
    /// True if this user has recorded it, or has trusted it as it is.
    pub fn is_trusted(&self) -> bool {
        let Some(home) = home() else { return false };
        self.is_trusted_in(&home)
    }

    /// Notes that this user trusts it as it is. Without a home there is nowhere to note it: nothing is trusted then.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn trust(&self) -> Result<(), CrashError> {
        match home() {
            Some(home) => self.trust_in(&home),
            None => Ok(()),
        }
    }

    fn is_trusted_in(&self, home: &Path) -> bool {
        let mark = std::fs::read_to_string(self.folder().join(MARK));
        let found = key(home, false).and_then(|key| self.digest(&key));
        mark.ok().zip(found).is_some_and(|(mark, found)| mark.trim() == found)
    }

    fn trust_in(&self, home: &Path) -> Result<(), CrashError> {
        match key(home, true).and_then(|key| self.digest(&key)) {
            Some(digest) => self.write(MARK, &(digest + "\n")).map(drop),
            None => Ok(()),
        }
    }

    fn digest(&self, key: &[u8; KEY_BYTES]) -> Option<String> {
        let plan = std::fs::read(self.folder().join("plan.json")).ok()?;
        let digest = Sha256::new().chain_update(key).chain_update(Sha256::digest(plan)).finalize();
        Some(digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
    }
}

/// Where this user's state lies.
fn home() -> Option<PathBuf> {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    from("XDG_STATE_HOME").or_else(|| Some(from("HOME")?.join(".local/state")))
}

/// This user's key; made if `make`, and there is none.
fn key(home: &Path, make: bool) -> Option<[u8; KEY_BYTES]> {
    let path = home.join("leyden").join("key");
    let mut key = [0; KEY_BYTES];
    let read = |key: &mut [u8; KEY_BYTES]| std::fs::File::open(&path)?.read_exact(key);
    if read(&mut key).is_ok() {
        return Some(key);
    }
    if !make {
        return None;
    }
    std::fs::create_dir_all(path.parent()?).ok()?;
    std::fs::File::open("/dev/urandom").ok()?.read_exact(&mut key).ok()?;
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match new {
        Ok(mut file) => file.write_all(&key).ok()?,
        Err(_) => read(&mut key).ok()?, // another process was faster
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_recorders_until_its_plan_changes() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name);
        let session = Session::create(&at("crash")).unwrap();
        session.write("plan.json", "{\"check\": \"true\"}").unwrap();
        assert!(!session.is_trusted_in(&at("mine")));
        session.trust_in(&at("mine")).unwrap();
        assert!(session.is_trusted_in(&at("mine")));
        // A stranger has another key, or none.
        assert!(!session.is_trusted_in(&at("theirs")));
        assert!(key(&at("theirs"), true).is_some());
        assert!(!session.is_trusted_in(&at("theirs")));
        session.write("plan.json", "{\"check\": \"rm -r .\"}").unwrap();
        assert!(!session.is_trusted_in(&at("mine")));
        // The key stays.
        session.trust_in(&at("mine")).unwrap();
        assert_eq!(key(&at("mine"), false), key(&at("mine"), true));
        assert!(session.is_trusted_in(&at("mine")));
    }
}

//! Preconditioned drives that outlive a command: a folder of snapshots, by content.
//!
//! **Invariants**
//! - A run gives the same results with and without the cache: a drive in it is what preconditioning would have made, by the
//!   same build.
//! - Files appear whole or not at all, and one that cannot be read is made again: processes share the folder, and may be
//!   killed at any moment.
//! - The folder stays within its bound; what was not used for the longest time goes first.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use leyden_config::{PreconditionKind, Scenario};
use leyden_device::{Controller, Namespace, Payload};
use sha2::{Digest, Sha256};

use super::RunError;
use super::machine::Stopwatch;
use super::precondition::Past;
use super::snapshot::{self, Found};

/// Drives that are made faster are not kept.
const WORTH_KEEPING_S: f64 = if cfg!(test) { 0.0 } else { 0.5 };
/// The ending of a drive's file.
const ENDING: &str = "drive";
/// Unfinished files older than this were left by killed processes.
const ABANDONED: Duration = Duration::from_hours(24);

/// A folder of preconditioned drives, shared by commands and processes.
#[derive(Clone, Debug)]
pub struct DriveCache {
    folder: PathBuf,
    build: String,
    most_bytes: u64,
}

/// The content of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Drives.
    pub drives: u64,
    /// Bytes of their files.
    pub bytes: u64,
}

impl DriveCache {
    /// The cache in `folder`, of at most so many bytes, for drives of the program that is a build of `build`.
    pub fn new(folder: PathBuf, build: &str, most_bytes: u64) -> Self {
        Self { folder, build: build.to_owned(), most_bytes }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The bytes that it may hold.
    pub const fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Its content, of all builds.
    pub fn used(&self) -> CacheUse {
        let entries = self.entries();
        CacheUse {
            drives: entries.len() as u64,
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
        }
    }

    /// Removes all drives, and returns what there was.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn clear(&self) -> io::Result<CacheUse> {
        let mut removed = CacheUse::default();
        for entry in self.entries() {
            match fs::remove_file(&entry.path) {
                Ok(()) => {
                    removed.drives += 1;
                    removed.bytes += entry.bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// The drive that `scenario` begins with: from the cache, or made by `make` and kept if that took long. A cache that
    /// cannot be written or read changes nothing but the time; `note` is told.
    pub(super) fn prepare<P: Payload, N: Namespace<P>>(
        &self,
        scenario: &Scenario,
        make: impl FnOnce() -> Result<(Controller<P, N>, Past), RunError>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Controller<P, N>, Past), RunError> {
        if scenario.precondition.kind == PreconditionKind::None {
            return make();
        }
        let path = self.path(&snapshot::fingerprint::<P>(scenario));
        match snapshot::load::<P, N>(&path, scenario) {
            Ok(Found::Drive(drive, past)) => {
                touch(&path);
                return Ok((*drive, past));
            }
            Ok(Found::Nothing) => {}
            Ok(Found::Other(_)) | Err(_) => drop(fs::remove_file(&path)),
        }
        let watch = Stopwatch::start();
        let (drive, past) = make()?;
        if watch.seconds() >= WORTH_KEEPING_S
            && let Err(error) = self.keep(&path, scenario, &drive, &past)
        {
            note(&format!("the drive is not kept in {}: {error}", self.folder.display()));
        }
        Ok((drive, past))
    }

    fn keep<P: Payload, N: Namespace<P>>(
        &self,
        path: &Path,
        scenario: &Scenario,
        drive: &Controller<P, N>,
        past: &Past,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        snapshot::save(path, scenario, drive, past).map_err(|error| match error {
            RunError::Snapshot(_, source) => source,
            error => io::Error::other(error.to_string()),
        })?;
        self.trim()
    }

    /// The file of a drive with this fingerprint, made by this build.
    fn path(&self, fingerprint: &str) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(self.build.as_bytes());
        hash.update([0]);
        hash.update(fingerprint.as_bytes());
        let all = hash.finalize();
        let name = u128::from_be_bytes(all[..16].try_into().expect("16 bytes"));
        self.folder.join(format!("{name:032x}.{ENDING}"))
    }

    /// Brings the folder within its bound.
    fn trim(&self) -> io::Result<()> {
        let mut entries = self.entries();
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        entries.sort_by_key(|entry| entry.used);
        for entry in entries {
            if bytes <= self.most_bytes {
                break;
            }
            match fs::remove_file(&entry.path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            bytes -= entry.bytes;
        }
        Ok(())
    }

    /// Its drives; what killed processes left unfinished is removed.
    fn entries(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension().is_some_and(|ending| ending == ENDING) {
                found.push(Entry { path, bytes: metadata.len(), used });
            } else if entry.file_name().to_string_lossy().starts_with(".leyden-")
                && used.elapsed().is_ok_and(|age| age > ABANDONED)
            {
                drop(fs::remove_file(&path));
            }
        }
        found
    }
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Notes that a drive was used; one that cannot be noted goes earlier.
#[expect(clippy::disallowed_methods, reason = "which drive is removed first decides no result")]
fn touch(path: &Path) {
    drop(
        File::options()
            .append(true)
            .open(path)
            .and_then(|file| file.set_modified(SystemTime::now())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(cache: &DriveCache, name: &str, bytes: u64, used_s: u64) -> PathBuf {
        let path = cache.folder.join(name);
        let file = File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(used_s)).unwrap();
        path
    }

    #[test]
    fn the_folder_stays_within_its_bound_and_the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DriveCache::new(folder.path().to_owned(), "b", 250);
        let old = file(&cache, "a.drive", 100, 1);
        let (new, newer) = (file(&cache, "b.drive", 100, 9), file(&cache, "c.drive", 100, 20));
        let left = file(&cache, ".leyden-1", 100, 1);
        let other = file(&cache, "notes.txt", 1000, 0);
        cache.trim().unwrap();
        assert!(!old.exists() && new.exists() && newer.exists(), "the oldest goes");
        assert!(!left.exists() && other.exists(), "only what is the cache's own");
        assert_eq!(cache.used(), CacheUse { drives: 2, bytes: 200 });
        assert_eq!(cache.clear().unwrap(), CacheUse { drives: 2, bytes: 200 });
        assert!(other.exists());
    }

    #[test]
    fn another_build_has_other_drives() {
        let cache = |build| DriveCache::new(PathBuf::from("x"), build, 0).path("f");
        assert_ne!(cache("a"), cache("b"));
    }
}

//! Finished runs, kept in a folder so that they need not be made twice.
//!
//! A file holds a line of JSON that says what it is, and the run record. Its name is a digest of
//! everything that decides the record: the resolved configuration (the seed is part of it), the
//! record's format, and the build that ran it. **Invariants**: a file appears whole or not at all; a
//! file that is damaged or is of another run is never believed: the run is made again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use leyden_files::WriteError;
use leyden_sim::Digest;
use serde::{Deserialize, Serialize};

use leyden_config::Scenario;
use leyden_record::{RECORD_VERSION, RunRecord};

/// The first line of an entry.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    /// Format of this file.
    leyden_cached_run: u32,
    /// Digest of what decided the record; the file's name.
    key: String,
    /// Digest of the record's bytes.
    record: String,
}

const FORMAT: u32 = 1;

/// A folder of finished runs.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    build: String,
}

/// The result of a look into the cache.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The run's record.
    Record(Box<RunRecord>),
    /// Nothing.
    Nothing,
    /// A file that is of no use, and why.
    Useless(String),
}

impl Cache {
    /// The cache in `folder`, made if it is not there. `build` tells one program from another:
    /// results of other builds are not used.
    pub fn open(folder: impl Into<PathBuf>, build: impl Into<String>) -> io::Result<Self> {
        let (folder, build) = (folder.into(), build.into());
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder, build })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of `scenario`'s run.
    pub fn path(&self, scenario: &Scenario) -> PathBuf {
        self.folder.join(format!("{}.run", self.key(scenario)))
    }

    /// The record of `scenario`, if it was kept.
    pub fn look_up(&self, scenario: &Scenario) -> Found {
        let path = self.path(scenario);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Useless(format!("{}: {error}", path.display())),
        };
        match read(&bytes, &self.key(scenario), scenario) {
            Ok(record) => Found::Record(Box::new(record)),
            Err(problem) => Found::Useless(format!("{} {problem}", path.display())),
        }
    }

    /// Keeps `record` as that of `scenario`.
    pub fn keep(&self, scenario: &Scenario, record: &RunRecord) -> io::Result<()> {
        let json = serde_json::to_vec(record).map_err(io::Error::other)?;
        let header = Header {
            leyden_cached_run: FORMAT,
            key: self.key(scenario),
            record: digest_of(&json).to_string(),
        };
        leyden_files::write_with(&self.path(scenario), |file| {
            let mut line = serde_json::to_vec(&header)?;
            line.push(b'\n');
            file.write_all(&line)?;
            file.write_all(&json)
        })
        .map_err(WriteError::into_io)
    }

    fn key(&self, scenario: &Scenario) -> String {
        let all = (RECORD_VERSION, env!("CARGO_PKG_VERSION"), &self.build, scenario);
        digest_of(&serde_json::to_vec(&all).unwrap_or_default()).to_string()
    }
}

fn read(bytes: &[u8], key: &str, scenario: &Scenario) -> Result<RunRecord, &'static str> {
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or("is no kept run")?;
    let (line, json) = (&bytes[..end], &bytes[end + 1..]);
    let header: Header = serde_json::from_slice(line).map_err(|_| "is no kept run")?;
    if (header.leyden_cached_run, header.key.as_str()) != (FORMAT, key) {
        return Err("is another run's");
    }
    if header.record != digest_of(json).to_string() {
        return Err("is damaged");
    }
    let json = std::str::from_utf8(json).map_err(|_| "is damaged")?;
    let record = leyden_report::read_record(json).map_err(|_| "is damaged")?;
    // A digest of 64 bits may lie once in a great while; the configuration does not.
    if record.config != serde_json::to_value(scenario).unwrap_or_default() {
        return Err("is another run's");
    }
    Ok(record)
}

/// A digest of `bytes`, length included.
pub fn digest_of(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    digest.add(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        digest.add(u64::from_le_bytes(word));
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(scenario: &Scenario) -> RunRecord {
        RunRecord {
            record_version: RECORD_VERSION,
            config: serde_json::to_value(scenario).unwrap(),
            name: "x".into(),
            ..RunRecord::default()
        }
    }

    #[test]
    fn kept_runs_are_found_by_the_same_build_and_scenario_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path().join("new"), "one").unwrap();
        let scenario = Scenario::default();
        assert_eq!(cache.look_up(&scenario), Found::Nothing);
        let record = record_of(&scenario);
        cache.keep(&scenario, &record).unwrap();
        assert_eq!(cache.look_up(&scenario), Found::Record(Box::new(record)));
        let other = Scenario { seed: 2, ..Scenario::default() };
        assert_eq!(cache.look_up(&other), Found::Nothing);
        let newer = Cache::open(cache.folder(), "two").unwrap();
        assert_eq!(newer.look_up(&scenario), Found::Nothing);
        let files = std::fs::read_dir(cache.folder()).unwrap().count();
        assert_eq!(files, 1, "nothing else is left behind");
    }

    #[test]
    fn damaged_and_foreign_files_are_useless() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), "one").unwrap();
        let scenario = Scenario::default();
        cache.keep(&scenario, &record_of(&scenario)).unwrap();
        let path = cache.path(&scenario);
        let good = std::fs::read(&path).unwrap();
        let expect = |bytes: &[u8], expected: &str| {
            std::fs::write(&path, bytes).unwrap();
            match cache.look_up(&scenario) {
                Found::Useless(problem) => assert!(problem.contains(expected), "{problem}"),
                other => panic!("{other:?}"),
            }
        };
        expect(&good[..good.len() - 1], "damaged");
        expect(b"", "no kept run");
        expect(b"thesis\nof somebody", "no kept run");
        let mut flipped = good.clone();
        let last = flipped.len() - 3;
        flipped[last] ^= 1;
        expect(&flipped, "damaged");
        // The file of another run under this one's name.
        let other = Scenario { seed: 2, ..Scenario::default() };
        cache.keep(&other, &record_of(&other)).unwrap();
        expect(&std::fs::read(cache.path(&other)).unwrap(), "another run's");
        // A record of something else, well formed.
        cache.keep(&scenario, &record_of(&other)).unwrap();
        expect(&std::fs::read(&path).unwrap(), "another run's");
    }
}

//! Facts of the drive and of a workload's files that a record repeats, so that a reader need not
//! have them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use leyden_device::{BlockDevice, Controller, Namespace, Payload, SECTOR_BYTES};
use sha2::{Digest, Sha256};

use super::RunError;
use crate::driver::DriveError;
use leyden_config::{Scenario, TraceSource, WorkloadConfig};
use leyden_record::{Drive, Input};

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// A drive in numbers.
pub(super) fn drive<P: Payload, N: Namespace<P>>(drive: &Controller<P, N>) -> Drive {
    let geometry = drive.geometry();
    let blocks = u64::from(geometry.blocks());
    let block_bytes = u64::from(geometry.pages_per_block()) * u64::from(geometry.page_bytes());
    Drive {
        capacity_bytes: drive.capacity_sectors() * SECTOR_BYTES,
        flash_bytes: blocks * block_bytes,
        channels: geometry.channels(),
        dies: geometry.dies(),
        page_bytes: geometry.page_bytes(),
        block_bytes,
        unit_bytes: geometry.unit_bytes(),
    }
}

/// The files of a workload. What cannot be read twice (a pipe) is left out: nothing is known of it.
pub fn inputs(workload: &WorkloadConfig) -> Vec<Input> {
    let Some(trace) = &workload.trace else { return Vec::new() };
    trace.files().filter_map(|(path, source)| input(path, source)).collect()
}

/// Refuses a workload whose files are not those that a record names.
pub fn check_same_inputs(workload: &WorkloadConfig, recorded: &[Input]) -> Result<(), RunError> {
    let now = inputs(workload);
    let other = recorded.iter().find(|then| {
        let same = now.iter().find(|now| now.path == then.path);
        same.is_some_and(|now| now.sha256 != then.sha256)
    });
    let Some(then) = other else { return Ok(()) };
    let problem = format!(
        "{} is not the file that was recorded, whose SHA-256 is {}; find that one, or name it with --set \
         workload.trace.path",
        then.path, then.sha256
    );
    Err(RunError::config("workload.trace.path", problem))
}

/// Checks that the files of a scenario can be read, as far as their beginnings tell.
pub fn check_inputs(scenario: &Scenario) -> Result<(), RunError> {
    let Some(trace) = &scenario.workload.trace else { return Ok(()) };
    let mut requests = trace.open().map_err(|error| DriveError::Open(error.into()))?;
    match requests.next() {
        None => Err(DriveError::NothingToReplay.into()),
        Some(first) => {
            first.map_err(|source| DriveError::Trace { number: 1, source: source.into() })?;
            Ok(())
        }
    }
}

fn input(path: &str, source: &TraceSource) -> Option<Input> {
    let (sha256, bytes) = match source {
        TraceSource::Bundled { origin: Some(origin), .. } => {
            let (bytes, sha256) = origin.split_once(' ')?;
            (sha256.to_owned(), bytes.parse().ok()?)
        }
        TraceSource::Bundled { bytes, .. } => sum(*bytes).ok()?,
        TraceSource::Disk(file) => of_file(file)?,
    };
    Some(Input { path: path.to_owned(), bytes, sha256 })
}

/// Checksums of files, by their place, length and time of change: a sweep asks for the same file for each of its points.
type Known = BTreeMap<(PathBuf, u64, Option<SystemTime>), (String, u64)>;
static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());

/// The SHA-256 of a file's content, as `sha256sum` prints it, and its length; none of what is no file or cannot be read.
pub fn of_file(path: &Path) -> Option<(String, u64)> {
    // The run reports an error of opening the trace.
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let key = (path.to_owned(), metadata.len(), metadata.modified().ok());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&key) {
        return Some(found.clone());
    }
    let found = sum(file).ok()?;
    known().insert(key, found.clone());
    Some(found)
}

fn sum(mut from: impl Read) -> io::Result<(String, u64)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        bytes += read as u64;
    }
    let hash = hash.finalize();
    let hex = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Ok((hex.filter_map(|digit| char::from_digit(digit.into(), 16)).collect(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_that_sha256sum_prints() {
        let (sha256, bytes) = sum(&b"abc"[..]).unwrap();
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // FIPS 180-2, B.1
        assert_eq!((sha256.as_str(), bytes), (known, 3));
    }
}

//! A preconditioned drive, kept in a file.
//!
//! The file begins with a line that says what it is and a line of JSON: a fingerprint of everything
//! that decided the state, and what preconditioning warned of. The drive's own snapshot follows. A
//! file with another fingerprint is replaced; a file that is something else is left alone.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use leyden_device::{Payload, SnapshotError, Ssd};
use leyden_sim::Digest;
use serde::{Deserialize, Serialize};

use super::{Prepared, RunError};
use crate::scenario::{Distribution, Scenario};

const MAGIC: &str = "leyden preconditioned drive 1\n";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    fingerprint: String,
    warnings: Vec<String>,
}

/// The drive in `path` with its warnings, or `None` if it has to be made, or made again.
pub(super) fn load<P: Payload>(
    path: &Path,
    scenario: &Scenario,
) -> Result<Option<Prepared<P>>, RunError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure(path, "cannot be read", error)),
    };
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut magic = vec![0; MAGIC.len()];
    let is_ours = io::Read::read_exact(&mut from, &mut magic).is_ok() && magic == MAGIC.as_bytes();
    if !is_ours {
        let problem =
            format!("{} is no snapshot; name a file that may be replaced", path.display());
        return Err(RunError::config("precondition.snapshot", problem));
    }
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).map_err(|error| failure(path, "cannot be read", error))?;
    let Ok(header) = serde_json::from_slice::<Header>(&line) else {
        return Ok(None);
    };
    if header.fingerprint != fingerprint::<P>(scenario) {
        return Ok(None);
    }
    let ssd =
        Ssd::load(&scenario.device, scenario.seed, &mut from).map_err(|error| match error {
            SnapshotError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                failure(path, "cannot be read", error)
            }
            error => {
                let problem =
                    format!("{} is damaged; delete it, and it is made again", path.display());
                RunError::config("precondition.snapshot", format!("{problem} ({error})"))
            }
        })?;
    Ok(Some((ssd, header.warnings)))
}

/// Keeps the drive; the file appears whole or not at all.
pub(super) fn save<P: Payload>(
    path: &Path,
    scenario: &Scenario,
    ssd: &Ssd<P>,
    warnings: &[String],
) -> Result<(), RunError> {
    let header = Header { fingerprint: fingerprint::<P>(scenario), warnings: warnings.to_vec() };
    let written = leyden_files::write_with(path, |file| {
        let mut to = BufWriter::with_capacity(1 << 20, file);
        to.write_all(MAGIC.as_bytes())?;
        serde_json::to_writer(&mut to, &header)?;
        to.write_all(b"\n")?;
        ssd.save(&mut to).map_err(io::Error::other)?;
        to.flush()
    });
    let what =
        "cannot be written\n  help: choose another place, or make room; no partial file was left";
    written.map_err(|error| failure(path, what, error.into_io()))
}

fn failure(path: &Path, what: &str, error: io::Error) -> RunError {
    RunError::Snapshot(format!("{} {what}", path.display()), error)
}

/// Of everything that decides the state after preconditioning.
pub(super) fn fingerprint<P: Payload>(scenario: &Scenario) -> String {
    let mut precondition = scenario.precondition.clone();
    precondition.snapshot = None;
    let workload = match precondition.distribution {
        Distribution::Uniform => None,
        Distribution::Workload => Some(&scenario.workload),
    };
    // The version too: another build may precondition differently.
    let version = env!("CARGO_PKG_VERSION");
    let all = (version, P::STORED, scenario.seed, &scenario.device, &precondition, workload);
    let mut digest = Digest::default();
    for byte in serde_json::to_vec(&all).unwrap_or_default() {
        digest.add(u64::from(byte));
    }
    digest.to_string()
}

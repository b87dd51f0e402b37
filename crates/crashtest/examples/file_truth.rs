//! Whether states of a real file system are among those that the rules of files allow.
//!
//!     file_truth perform RECORDING setup|work
//!     file_truth look SEEN
//!     file_truth judge RULES RECORDING SEEN SKIPPED
//!
//! `campaigns/file_truth.py` calls it. The first makes the calls of a recording of files in `$LEYDEN_MOUNT`, which is on a real
//! file system, the second notes the files there after a power cut, the third says which of them the rules do not allow: it
//! leaves out the first SKIPPED, prints one line and each of those files, and ends with 1 if there are any.

#![expect(clippy::print_stdout, reason = "it says what it found")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use leyden_crashtest::Persistence;
use leyden_crashtest::truth::{Half, SeenFiles, not_allowed, perform};

fn variable(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let value = std::env::var_os(name).ok_or_else(|| format!("${name} is not set"))?;
    Ok(value.into())
}

fn look(seen: &Path) -> Result<(), Box<dyn Error>> {
    let syncs = fs::read_to_string(variable("LEYDEN_ACKS")?)?.lines().count();
    let files = SeenFiles::of(&variable("LEYDEN_MOUNT")?)?;
    let line = serde_json::to_string(&(syncs, files))? + "\n";
    OpenOptions::new().append(true).create(true).open(seen)?.write_all(line.as_bytes())?;
    Ok(())
}

/// Prints what came out; whether all was allowed.
fn judge(
    rules: Persistence,
    recording: &Path,
    seen: &Path,
    skipped: usize,
) -> Result<bool, Box<dyn Error>> {
    let text = fs::read_to_string(seen)?;
    let seen: Result<BTreeSet<(usize, SeenFiles)>, _> =
        text.lines().skip(skipped).map(serde_json::from_str).collect();
    let seen = seen?;
    let count = seen.len();
    let others = not_allowed(recording, rules, seen)?;
    println!("{rules:?}: {count} folders seen, {} not allowed", others.len());
    for (syncs, files) in &others {
        println!("  NOT allowed after {syncs} syncs: {}", serde_json::to_string(files)?);
    }
    Ok(others.is_empty())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["perform", recording, "setup"] => {
            let mut nowhere = Vec::new();
            perform(recording.as_ref(), Half::Setup, &variable("LEYDEN_MOUNT")?, &mut nowhere)?;
        }
        ["perform", recording, "work"] => {
            let mut acks = File::options().append(true).open(variable("LEYDEN_ACK")?)?;
            perform(recording.as_ref(), Half::Work, &variable("LEYDEN_MOUNT")?, &mut acks)?;
        }
        ["look", seen] => look(seen.as_ref())?,
        ["judge", rules, recording, seen, skipped] => {
            let rules = Persistence::ALL.into_iter().find(|it| it.name() == rules);
            let rules = rules.ok_or("rules are posix, xfs or ext4")?;
            if !judge(rules, recording.as_ref(), seen.as_ref(), skipped.parse()?)? {
                return Ok(ExitCode::from(1));
            }
        }
        _ => {
            println!("usage: file_truth perform|look|judge ..., as the head of this file says");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

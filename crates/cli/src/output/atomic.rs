//! Result files, and what users can do about those that could not be written.

use std::path::Path;

use anyhow::Context;
use leyden_files::WriteError;

use crate::failure::Failure;

/// Writes `content` to `path`, whole or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let remedy = "choose another place, or make room; no partial file was left";
    or_failure(leyden_files::write(path, content), path, remedy)
}

/// Finds out before a long run that its result could not be written after it.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let remedy = if path.is_dir() {
        "name a file in it"
    } else {
        "choose a folder that is there and writable"
    };
    or_failure(leyden_files::check_writable(path), path, remedy)
}

fn or_failure(result: Result<(), WriteError>, path: &Path, remedy: &str) -> Result<(), Failure> {
    result
        .map_err(WriteError::into_io)
        .with_context(|| format!("cannot write {}\n  help: {remedy}", path.display()))
        .map_err(Failure::io)
}

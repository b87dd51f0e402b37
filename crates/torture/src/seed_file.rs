//! Seed files: a run's options in JSON, to be replayed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Failure, Options};

/// The version of the format; others are refused.
const FORMAT: u32 = 1;
/// The largest file that is read as a seed file.
const MOST_BYTES: u64 = 16 << 20;

/// A run to be replayed, and what it showed when it was kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedFile {
    /// The format's version.
    leyden_torture: u32,
    /// The failure that the run showed.
    pub failure: Option<Failure>,
    /// The run.
    pub options: Options,
}

/// Why a seed file cannot be used.
#[derive(Debug, Error)]
pub enum SeedFileError {
    /// It cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It is something else, or damaged.
    #[error(
        "{} is no seed file: {problem}\n  help: name a file that `leyden torture --shrink` wrote",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Another version of this program wrote it.
    #[error(
        "{} is a seed file of version {found}, and this program reads version {FORMAT}\n  \
         help: replay it with the program that wrote it",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
}

impl SeedFile {
    /// For `options`, which showed `failure`.
    pub fn new(options: Options, failure: Option<Failure>) -> Self {
        Self { leyden_torture: FORMAT, failure, options }
    }

    /// As text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("options are plain data");
        text.push('\n');
        text
    }

    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, SeedFileError> {
        let text = read_text(path).map_err(|error| SeedFileError::Read(path.to_owned(), error))?;
        Self::parse(path, &text)
    }

    /// The file at `path`, which holds `text`.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, SeedFileError> {
        let foreign = |problem: String| SeedFileError::Foreign { path: path.to_owned(), problem };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| foreign(error.to_string()))?;
        let Some(found) = value.get("leyden_torture").and_then(serde_json::Value::as_u64) else {
            return Err(foreign("it has no number under `leyden_torture`".to_owned()));
        };
        if found != u64::from(FORMAT) {
            return Err(SeedFileError::Version { path: path.to_owned(), found });
        }
        // From the text and not the value, so that the message has the place.
        let file: Self = serde_json::from_str(text).map_err(|error| foreign(error.to_string()))?;
        file.options.check().map_err(foreign)?;
        Ok(file)
    }
}

/// The whole of a text file, unless it has no end.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_BYTES {
        let problem = format!("it is larger than {} MiB", MOST_BYTES >> 20);
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

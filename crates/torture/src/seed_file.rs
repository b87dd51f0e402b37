//! Seed files: a run's options in JSON, to be replayed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::case::{Case, each};
use crate::subject::{Run, Subject};
use crate::{Failure, Options};

/// The version of the format; others are refused.
const FORMAT: u32 = 1;
const KEY: &str = "leyden_torture";
/// The largest file that is read as a seed file.
const MOST_BYTES: u64 = 16 << 20;

/// A run of any kind of drive to be replayed, and what it showed when it was kept.
#[derive(Clone, PartialEq, Debug)]
pub struct SeedFile {
    /// The failure that the run showed.
    pub failure: Option<Failure>,
    /// The run.
    pub case: Case,
}

/// The same as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<R> {
    /// The format's version.
    leyden_torture: u32,
    #[serde(default)]
    subject: Subject,
    failure: Option<Failure>,
    options: R,
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
        /// The error.
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
    /// For `case`, which showed `failure`.
    pub const fn new(case: Case, failure: Option<Failure>) -> Self {
        Self { failure, case }
    }

    /// As text.
    pub fn to_json(&self) -> String {
        let (failure, subject) = (self.failure.clone(), self.case.subject());
        each!(&self.case, run => written(run.as_ref(), subject, failure))
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
        let Some(found) = value.get(KEY).and_then(serde_json::Value::as_u64) else {
            return Err(foreign(format!("it has no number under `{KEY}`")));
        };
        if found != u64::from(FORMAT) {
            return Err(SeedFileError::Version { path: path.to_owned(), found });
        }
        let subject = value.get("subject").cloned().unwrap_or_else(|| "conventional".into());
        let subject =
            serde_json::from_value(subject).map_err(|error| foreign(error.to_string()))?;
        match subject {
            Subject::Conventional => read::<Options>(text),
            Subject::Zoned => read::<crate::zoned::ZonedOptions>(text),
            Subject::ZonedBlock => read::<crate::zoned_block::ZonedBlockOptions>(text),
        }
        .map_err(foreign)
    }
}

fn written<R: Run>(options: &R, subject: Subject, failure: Option<Failure>) -> String {
    let options = options.clone();
    let written = Written { leyden_torture: FORMAT, subject, failure, options };
    let mut text = serde_json::to_string_pretty(&written).expect("options are plain data");
    text.push('\n');
    text
}

/// From the text and not from a value, so that the message has the place.
fn read<R: Run>(text: &str) -> Result<SeedFile, String>
where
    Case: From<R>,
{
    let file: Written<R> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    file.options.checked()?;
    Ok(SeedFile { failure: file.failure, case: file.options.into() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_kind_is_read_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.json");
        for subject in [Subject::Conventional, Subject::Zoned, Subject::ZonedBlock] {
            for seed in 0..10 {
                let file = SeedFile::new(subject.draw(seed), None);
                std::fs::write(&path, file.to_json()).unwrap();
                assert_eq!(SeedFile::read(&path).unwrap(), file);
            }
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replace("torture\": 1", "torture\": 9")).unwrap();
            assert!(matches!(SeedFile::read(&path), Err(SeedFileError::Version { found: 9, .. })));
        }
        std::fs::write(&path, "{\"leyden_torture\": 1, \"subject\": \"tape\"}").unwrap();
        let error = SeedFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("unknown variant `tape`"), "{error}");
    }
}

//! Errors of sweeps.

use std::io;
use std::path::{Path, PathBuf};

use leyden_config::LoadError;
use leyden_files::WriteError;
use thiserror::Error;

/// Why a sweep did not go on. A point that cannot be run is none: it is a row that says so.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The plan says something that cannot be.
    #[error("{place}: {problem}\n  help: {help}")]
    Plan {
        /// The plan, and the key in it.
        place: String,
        /// The problem.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// The base scenario cannot be loaded, or none of its points.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file of results is of another sweep, or no such file.
    #[error("{}: {problem}\n  help: {help}", .path.display())]
    Part {
        /// The file or folder.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// The system refused to read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Ended by the user; how many points of how many are kept.
    #[error("interrupted: kept {kept} of {points} points; the same command resumes")]
    Interrupted {
        /// Points whose results are kept.
        kept: u64,
        /// Points of the shard.
        points: u64,
    },
}

impl SweepError {
    pub(crate) fn plan(
        place: impl Into<String>,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Plan { place: place.into(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn part(path: &Path, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Part { path: path.to_owned(), problem: problem.into(), help: help.into() }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    /// Whether results could not be read or written.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write(_))
    }
}

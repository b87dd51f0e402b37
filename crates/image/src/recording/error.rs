//! Errors of recordings.

use std::io;

use thiserror::Error;

use crate::ImageError;

/// Why a recording cannot be used.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// Reading failed.
    #[error("cannot read the recording")]
    Io(#[from] io::Error),
    /// It is no recording, or one of another version.
    #[error("not a recording for this Leyden: {0}")]
    Foreign(String),
    /// A part of it is not as it was written.
    #[error("the recording is damaged: {0}")]
    Damaged(String),
    /// Its drive cannot be made.
    #[error("the recorded drive cannot be brought back")]
    Drive(#[from] ImageError),
}

pub(super) fn damaged(what: &str) -> RecordingError {
    RecordingError::Damaged(what.to_owned())
}

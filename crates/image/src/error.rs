//! Errors of images.

use std::io;

use leyden_device::SnapshotError;
use leyden_sim::ConfigError;
use thiserror::Error;

/// Why an image could not be made, opened or gone on with.
#[derive(Debug, Error)]
pub enum ImageError {
    /// Reading or writing failed: the file system is full, as a rule.
    #[error("cannot read or write the image")]
    Io(#[from] io::Error),
    /// It is no image, or one of another version.
    #[error("not an image for this Leyden: {0}")]
    Foreign(String),
    /// A part of it is not as it was written.
    #[error("the image is damaged: {0}")]
    Damaged(String),
    /// Another process has it open.
    #[error("the image is in use by another process")]
    InUse,
    /// The drive's configuration is impossible, or none that an image can have.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The drive at rest could not be read or written.
    #[error("the drive's state in the image cannot be used")]
    State(#[from] SnapshotError),
    /// The log was written by a Leyden whose drive does something else at the same commands.
    #[error(
        "leyden {0} did not close the image, and the drive of this version would behave otherwise; open it \
         once with that version"
    )]
    Diverged(String),
}

impl ImageError {
    /// True if the image's file system is full: a command that was refused for that has not happened.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::StorageFull)
    }

    /// True if the process has no memory for what was asked for.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::OutOfMemory)
    }
}

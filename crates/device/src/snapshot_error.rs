//! Errors of snapshots.

use std::io;

use leyden_sim::ConfigError;
use thiserror::Error;

/// Why a snapshot could not be saved or loaded.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// Reading or writing failed.
    #[error("cannot read or write the snapshot")]
    Io(#[from] io::Error),
    /// It is not a snapshot, or of another version or payload.
    #[error("not a snapshot for this run: {0}; delete it and precondition again")]
    Foreign(String),
    /// It is damaged.
    #[error("the snapshot is corrupt: {0}; delete it and precondition again")]
    Corrupt(String),
    /// The configuration is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

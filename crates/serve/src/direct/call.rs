//! Calls to a drive in the caller's process, and their errors.

use leyden_device::{Lba, Status};
use leyden_image::{ImageError, WriteFlags, ZoneAsk};
use thiserror::Error;

/// Why a call failed.
#[derive(Debug, Error)]
pub enum DirectError {
    /// The drive says so, or has no power.
    #[error("the drive says {0:?}")]
    Drive(Status),
    /// The power failed while the command was under way.
    #[error("the power failed while the command was in flight")]
    PowerLost,
    /// The power is off already, or on.
    #[error("the power is {0} already")]
    Switch(&'static str),
    /// The image could not be read or written. The command is not done.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The image could not be written before.
    #[error(
        "the image could not be written, and the drive has stopped: {0}; close it, and open it again"
    )]
    Stopped(String),
}

/// A call to a drive.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Write these bytes.
    Write(Lba, &'a [u8], WriteFlags),
    /// Append these bytes to the zone that begins there.
    Append(Lba, &'a [u8], WriteFlags),
    /// Flush.
    Flush,
    /// Trim so many sectors.
    Trim(Lba, u32),
    /// Change zones.
    Zone(ZoneAsk),
    /// Report so many zones at most.
    ZoneReport(Lba, u32),
    /// Read so many sectors, as a command that takes the drive's time.
    Read(Lba, u32),
}

/// Counts of calls since the drive was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes and appends.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Commands that failed.
    pub failures: u64,
}

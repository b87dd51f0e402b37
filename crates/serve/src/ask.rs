//! Clients' requests to a drive and its answers: the same for every protocol.

use leyden_device::{Hint, Lba, Status};
use leyden_image::{WriteFlags, ZoneAsk};
use leyden_wire::programs::ZoneLine;

/// A client's request to the drive. Ranges are in sectors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Read so many sectors.
    Read(Lba, u32),
    /// Write these bytes.
    Write(Lba, Vec<u8>, WriteFlags),
    /// Append these bytes to the zone that begins there.
    Append(Lba, Vec<u8>, WriteFlags),
    /// Change zones.
    Zone(ZoneAsk),
    /// Describe so many zones at most, from the one that begins there on.
    Zones(Lba, u32),
    /// Flush.
    Flush,
    /// Trim so many sectors.
    Trim(Lba, u32),
    /// Announce writes: at least one range, and at most [`leyden_device::MOST_RANGES`].
    WritePrepare(Vec<Hint>),
    /// Write zeroes; with force unit access, or without.
    WriteZeroes(Lba, u32, bool),
    /// Which of so many sectors are holes?
    Extents(Lba, u32),
    /// The host's own note, for the recording.
    Mark(Vec<u8>),
}

/// Why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The drive says so, or has no power.
    Drive(Status),
    /// The power failed while it was under way.
    PowerLost,
    /// The image's file system is full.
    NoSpace,
    /// The server has no memory for it.
    NoMemory,
    /// The image cannot be read or written.
    Image,
    /// The drive is not served any more.
    Gone,
}

/// An answer to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// Data that was read.
    Data(Vec<u8>),
    /// Where an append has written.
    Appended(Lba),
    /// Zones.
    Zones(Vec<ZoneLine>),
    /// Runs of sectors: how many, and whether they are a hole.
    Extents(Vec<(u32, bool)>),
    /// It is not done.
    Failed(Failure),
}

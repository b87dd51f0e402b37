//! How commands end.

use leyden_device::{Lba, Status, ZoneReport};
use leyden_sim::Time;

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The caller's own note.
    pub tag: u32,
    /// How it ended.
    pub status: Status,
    /// When, by the drive's clock.
    pub time: Time,
    /// Data that was read; empty if it was no read, or has failed.
    pub data: Vec<u8>,
    /// True if the drive has read it, and the process has no memory to return it; it has failed, then.
    pub no_memory: bool,
    /// Where an append has written; `None` if it was none, or has failed.
    pub appended: Option<Lba>,
    /// The zones of a report; `None` if it was none, or has failed.
    pub zones: Option<Box<ZoneReport>>,
}

impl Done {
    /// The end of a command that returns nothing but its status.
    pub(super) const fn bare(tag: u32, status: Status, time: Time) -> Self {
        Self { tag, status, time, data: Vec::new(), no_memory: false, appended: None, zones: None }
    }
}

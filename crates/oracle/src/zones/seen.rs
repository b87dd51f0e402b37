//! Commands to zones, zones seen, and violations.

use std::fmt;

/// The state of a zone, as far as promises depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneStands {
    /// Empty.
    Empty,
    /// Open or closed.
    Active,
    /// Full.
    Full,
    /// Read-only.
    ReadOnly,
    /// Offline.
    Offline,
}

/// A change of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneChange {
    /// Reset.
    Reset,
    /// Finish.
    Finish,
    /// Open with a Zone Random Write Area.
    OpenWithArea,
    /// Commits the area up to, not including, this unit.
    Commit(u32),
}

/// A zone as it was read after a power cut.
#[derive(Clone, Copy, Debug)]
pub struct ZoneSeen<'a> {
    /// Its state.
    pub stands: ZoneStands,
    /// Its write pointer, in units from its beginning; `None` where it tells nothing.
    pub write_pointer: Option<u32>,
    /// It has a Zone Random Write Area.
    pub has_area: bool,
    /// The contents of its units, all up to its capacity; 0 is zeroes.
    pub content: &'a [u64],
}

/// A zone is not what it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneViolation {
    /// Which zone.
    pub zone: u32,
    /// The fault.
    pub problem: ZoneProblem,
    /// The story.
    pub message: String,
}

/// The fault of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneProblem {
    /// It ends before what was promised.
    Lost,
    /// It holds what was never written there, or not in this order.
    Wrong,
    /// It holds something above its end.
    Above,
    /// Its write pointer does not stand at the end of what it holds.
    Pointer,
    /// It is in a state that it can't be in.
    State,
}

impl fmt::Display for ZoneViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone {}: {:?}: {}", self.zone, self.problem, self.message)
    }
}

impl std::error::Error for ZoneViolation {}

impl ZoneSeen<'_> {
    /// Where it ends: at its write pointer, or, where that tells nothing, above the last unit that holds anything.
    pub(super) fn end(&self) -> u32 {
        let written = self.content.iter().rposition(|&stamp| stamp != 0);
        self.write_pointer.unwrap_or(written.map_or(0, |last| last as u32 + 1))
    }
}

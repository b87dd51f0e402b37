//! Kinds of commands, without their data.

use leyden_ftl::zoned::ZoneAction;

/// The kind of a command, without its data: for counters, completions and traces (NVM command set,
/// in brackets its opcode).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// [`crate::Action::Read`] (02h).
    Read,
    /// [`crate::Action::Write`] (01h).
    Write,
    /// [`crate::Action::Flush`] (00h).
    Flush,
    /// [`crate::Action::Trim`] (09h).
    Trim,
    /// [`crate::Action::WriteZeroes`] (08h).
    WriteZeroes,
    /// [`crate::Action::WritePrepare`] (09h).
    WritePrepare,
    /// [`crate::Action::ZoneAppend`] (7Dh).
    ZoneAppend,
    /// [`crate::Action::Copy`] (19h).
    Copy,
    /// [`crate::Action::Zone`], and [`crate::Action::ZoneExtension`] (79h).
    Zone(ZoneAction),
    /// [`crate::Action::ZoneReport`] (7Ah).
    ZoneReport,
}

impl Op {
    /// A number that tells it from others, for digests.
    #[inline]
    pub const fn number(self) -> u64 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Trim => 3,
            Self::WriteZeroes => 4,
            Self::WritePrepare => 5,
            Self::ZoneAppend => 6,
            Self::ZoneReport => 7,
            Self::Copy => 16,
            Self::Zone(action) => 8 + action as u64,
        }
    }
}

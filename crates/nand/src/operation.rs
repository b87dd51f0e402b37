//! Operations of a die.

use crate::{BlockId, Ppn};

/// An operation's kind and place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Read a page for the host: goes before everything that has not begun.
    HostRead(Ppn),
    /// Read a page for the drive's own purposes.
    Read(Ppn),
    /// Program a page.
    Program(Ppn),
    /// Erase a block.
    Erase(BlockId),
}

impl Kind {
    /// A number that tells this operation from others, for digests.
    pub const fn fingerprint(self) -> u64 {
        match self {
            Self::HostRead(page) => page.0 as u64,
            Self::Read(page) => 1 << 32 | page.0 as u64,
            Self::Program(page) => 2 << 32 | page.0 as u64,
            Self::Erase(block) => 3 << 32 | block.0 as u64,
        }
    }
}

/// An operation as its issuer describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The kind of operation, and its place.
    pub kind: Kind,
    /// Mapping units to transfer; a read may want only some of a page. 0 for an erase.
    pub units: u32,
    /// The issuer's own note, handed back at the end.
    pub tag: u32,
}

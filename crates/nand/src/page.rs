//! Types of pages, and the header of a page that is not the host's data.

use serde::{Deserialize, Serialize};

/// The type of a page, as its out-of-band area names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum PageKind {
    /// Units of the host's data.
    Data,
    /// A page of the mapping table.
    Mapping,
    /// A page of the mapping table's journal.
    Journal,
    /// Units of the host's data that were dumped at a power cut.
    Dump,
    /// A page that says what a dump holds.
    Root,
}

/// A page of the drive's own: the header in its out-of-band area, and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaPage {
    /// Its type.
    pub kind: PageKind,
    /// Which one of its type: the owner's number.
    pub number: u64,
    /// Of two pages with the same number, the one with the larger sequence is newer. Pages of a dump
    /// carry the dump's.
    pub sequence: u64,
    /// Its contents besides units ([`crate::Medium::write_units`]). Empty on a drive whose power is
    /// never cut, and which never reads it back.
    pub bytes: Box<[u8]>,
}

/// The use of a block between two erases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockUse {
    /// The type of its pages; [`PageKind::Dump`] for all pages of a dump.
    pub kind: PageKind,
    /// The stream whose data it holds; 0 for other pages.
    pub stream: u8,
}

/// Whether a block can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Health {
    /// It can.
    Good,
    /// A program in it failed: it is read, and not written any more.
    Failing,
    /// It is never used again.
    Bad,
}

//! Parts that a power cut keeps or loses as a whole, and the versions of each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::store::Content;

/// The number of a file, folder or symbolic link; never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Ino(pub(crate) u32);

impl Ino {
    /// The folder that holds all others.
    pub(crate) const ROOT: Self = Self(1);
}

/// The number of a drive, from 0. Its journal is the part with the same number.
pub(crate) type Drive = u32;

/// One component of a path.
pub(crate) type Name = Arc<str>;

/// A part of the files that is kept or lost as a whole.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Atom {
    /// The journal of a drive's file system: how many of its entries have been committed.
    Journal(Drive),
    /// An entry of a folder, where each is written by itself.
    Name(Ino, Name),
    /// The length of a file, where it may be written without the bytes.
    Length(Ino),
    /// A page of a file.
    Page(Ino, u32),
    /// A piece of a page, where a page may be torn: the file, the page, and the piece's number in it.
    Piece(Ino, u32, u32),
    /// Whether a sync of a file found bytes that no transaction had, and wrote the file to the log.
    Found(Ino),
    /// The log of a file.
    Log(Ino),
    /// An extended attribute of a file or folder, where each is written by itself.
    Xattr(Ino, Name),
}

/// A version of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<T> {
    /// The event that made it.
    pub(crate) event: u32,
    /// The entry of the journal before which a crash cannot leave this version, since its blocks or its length are
    /// entered after it.
    pub(crate) needs: Option<u32>,
    pub(crate) value: T,
}

/// A part with its versions, in the order of events; before them it is what it was in the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Cell<T> {
    /// Its number; none if nothing chooses its version but the journal.
    pub(crate) atom: Option<u32>,
    pub(crate) versions: Vec<Version<T>>,
}

impl<T> Cell<T> {
    /// The versions of the events up to `last`; none if that is none.
    pub(crate) fn up_to(&self, last: Option<u32>) -> &[Version<T>] {
        let count =
            last.map_or(0, |last| self.versions.partition_point(|version| version.event <= last));
        &self.versions[..count]
    }

    /// The version that stands in the journal up to entry `last`.
    pub(crate) fn at(&self, last: Option<u32>) -> Option<&T> {
        self.up_to(last).last().map(|version| &version.value)
    }
}

/// A length that a call has given a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Length {
    pub(crate) bytes: u64,
    /// By a write, and not by a change of the length.
    pub(crate) is_grown: bool,
}

/// The bytes of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    pub(crate) content: Content,
    /// Where the file ended within this page, or the end of the page.
    pub(crate) end: u64,
    /// As [`Version::needs`], of the length that these bytes bring.
    pub(crate) end_needs: Option<u32>,
    /// The event that first wrote to the block: its pieces are no older.
    pub(crate) block: u32,
}

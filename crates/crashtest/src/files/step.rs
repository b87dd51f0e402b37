//! Steps: the changes of calls, each of which a power cut keeps or loses alone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::atom::{Ino, Name};

/// Bytes of a page: what a file system keeps or loses as a whole.
pub(crate) const PAGE_BYTES: u64 = 4_096;

/// The target of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink,
}

/// The change of a step.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Born {
        ino: Ino,
        kind: Kind,
    },
    /// Where a symbolic link leads; it never changes.
    Target {
        link: Ino,
        target: Arc<str>,
    },
    Name {
        folder: Ino,
        name: Name,
        held: Option<Ino>,
        holds: Option<Ino>,
    },
    Page {
        file: Ino,
        page: u32,
        bytes: Arc<[u8]>,
    },
    /// Its block is free, or holds nothing any more: what is written there next gets a new one.
    Freed {
        file: Ino,
        page: u32,
    },
    /// By a write.
    Grown {
        file: Ino,
        bytes: u64,
    },
    /// By a call that sets the length; what lies behind a shorter one is gone.
    Set {
        file: Ino,
        bytes: u64,
    },
    /// An extended attribute is set, or removed.
    Xattr {
        of: Ino,
        name: Name,
        value: Option<Arc<[u8]>>,
    },
    /// A file system may enter the length of this file in its journal with this step.
    Brings {
        file: Ino,
    },
}

/// The part of a call that is kept or lost apart from its other steps.
pub(crate) type Step = Vec<Effect>;

//! Operations of a recorded folder: what the kernel asks of a file system, in a form that is kept and done again.

use std::io;

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::atom::Ino;
use super::history::Syncs;
use super::step::{Kind, Step};
use super::tree::{Renaming, Tree};

/// The change of one call. Numbers of new files are not named: the same operations give the same numbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Operation {
    Create {
        folder: Ino,
        name: String,
        kind: Kind,
    },
    Symlink {
        folder: Ino,
        name: String,
        target: String,
    },
    Link {
        file: Ino,
        folder: Ino,
        name: String,
    },
    Remove {
        folder: Ino,
        name: String,
        kind: Kind,
    },
    Rename {
        from: (Ino, String),
        to: (Ino, String),
        how: Renaming,
    },
    /// The bytes go with it.
    Write {
        file: Ino,
        offset: u64,
    },
    Zero {
        file: Ino,
        offset: u64,
        bytes: u64,
    },
    SetLength {
        file: Ino,
        bytes: u64,
    },
    /// Sets an extended attribute. The value goes with it.
    SetXattr {
        of: Ino,
        name: String,
    },
    RemoveXattr {
        of: Ino,
        name: String,
    },
    /// The last user of a handle has gone.
    Close {
        file: Ino,
    },
}

/// The result of an operation.
#[derive(Debug)]
pub(crate) struct Made {
    /// The new file, folder or link, if it makes one.
    pub(crate) ino: Option<Ino>,
    pub(crate) steps: Vec<Step>,
}

impl Operation {
    /// Does it.
    ///
    /// # Errors
    /// As the call. Nothing has changed then.
    pub(crate) fn apply(&self, tree: &mut Tree, data: &[u8]) -> io::Result<Made> {
        let made = |(ino, steps)| Made { ino: Some(ino), steps };
        let changed = |steps| Made { ino: None, steps };
        Ok(match self {
            Self::Create { folder, name, kind } => {
                made(tree.create(tree.folder(*folder)?, name, *kind)?)
            }
            Self::Symlink { folder, name, target } => {
                made(tree.symlink(tree.folder(*folder)?, name, target)?)
            }
            Self::Link { file, folder, name } => {
                changed(tree.link(tree.there(*file)?, tree.folder(*folder)?, name)?)
            }
            Self::Remove { folder, name, kind } => {
                changed(tree.remove(tree.folder(*folder)?, name, *kind)?)
            }
            Self::Rename { from, to, how } => {
                let (source, target) = (tree.folder(from.0)?, tree.folder(to.0)?);
                changed(tree.rename((source, &from.1), (target, &to.1), *how)?)
            }
            Self::Write { file, offset } => {
                changed(tree.write(tree.file(*file)?, *offset, data)?)
            }
            Self::Zero { file, offset, bytes } => {
                changed(tree.zero(tree.file(*file)?, *offset, *bytes))
            }
            Self::SetLength { file, bytes } => changed(tree.set_length(tree.file(*file)?, *bytes)?),
            Self::SetXattr { of, name } => changed(tree.set_xattr(tree.there(*of)?, name, data)?),
            Self::RemoveXattr { of, name } => changed(tree.remove_xattr(tree.there(*of)?, name)?),
            Self::Close { file } => changed(tree.close(tree.file(*file)?)),
        })
    }

    /// Files and folders that it says have changed, besides what it makes.
    pub(crate) fn touched(&self) -> [Option<Ino>; 2] {
        match self {
            Self::Write { file, .. } | Self::Zero { file, .. } | Self::SetLength { file, .. } => {
                [Some(*file), None]
            }
            Self::Create { folder, .. }
            | Self::Symlink { folder, .. }
            | Self::Remove { folder, .. }
            | Self::Link { folder, .. } => [Some(*folder), None],
            Self::SetXattr { of, .. } | Self::RemoveXattr { of, .. } => [Some(*of), None],
            Self::Rename { from, to, .. } => [Some(from.0), Some(to.0)],
            Self::Close { .. } => [None, None],
        }
    }

    /// Whether it changes the content of what it touches or makes, and so the time of that.
    pub(crate) fn modifies(&self, ino: Ino) -> bool {
        match self {
            Self::Link { file, .. } => *file != ino,
            Self::SetXattr { .. } | Self::RemoveXattr { .. } => false,
            _ => true,
        }
    }
}

impl Tree {
    /// The same number, if there is something with it.
    pub(crate) fn there(&self, ino: Ino) -> io::Result<Ino> {
        if self.has(ino) { Ok(ino) } else { Err(Errno::ESTALE.into()) }
    }

    fn folder(&self, ino: Ino) -> io::Result<Ino> {
        let is_folder = self.kind(self.there(ino)?) == Kind::Folder;
        if is_folder { Ok(ino) } else { Err(Errno::ENOTDIR.into()) }
    }

    fn file(&self, ino: Ino) -> io::Result<Ino> {
        match self.kind(self.there(ino)?) {
            Kind::File => Ok(ino),
            Kind::Folder => Err(Errno::EISDIR.into()),
            Kind::Symlink => Err(Errno::EINVAL.into()),
        }
    }
}

/// Whose a file is, and who may do what with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The permissions, without the kind of file.
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Something that a recording holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Entry {
    Did(Operation),
    Synced(Syncs),
    /// So many folders of the top are drives. The first entry, if there is one.
    Drives(u32),
    /// It failed: what it was for is given up.
    SyncFailed(Syncs),
    Acknowledged(String),
    /// Whose it is now, and who may do what: never lost, for nothing here depends on it.
    Owned(Ino, Owner),
    /// Ends the preparation: its files are in every state.
    Begun,
    /// The work has ended.
    Ended,
}

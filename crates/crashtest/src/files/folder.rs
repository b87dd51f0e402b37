//! A folder in memory: it records a run, or shows what a power cut has left of one.

use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::atom::Ino;
use super::history::{FileHistory, Syncs};
use super::step::{Kind, Step};
use super::surviving::SurvivingFiles;
use super::tree::{Tree, check_name};

/// A kind of calls, for those that are to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Makes a file, a folder or a further name.
    Create,
    /// Reads from a file.
    Read,
    /// Writes to a file.
    Write,
    /// Sets the length of a file.
    SetLength,
    /// `fsync`, `fdatasync` or `sync`. What the call was for is not durable, and a later sync does not write it: the
    /// kernel takes the pages for written (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
    Sync,
    /// Renames or exchanges.
    Rename,
    /// Removes a name.
    Remove,
    /// Sets or removes an extended attribute.
    Xattr,
}

/// A call that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) call: Call,
    /// Which of its kind in the work, from 1.
    pub(crate) nth: u64,
    /// As in errno.h.
    pub(crate) errno: i32,
}

/// A folder in memory. Clones are the same folder, for other threads.
///
/// Paths begin at its top, with a slash or without. Errors have the numbers of Linux.
#[derive(Clone, Debug)]
pub struct Fs(Arc<Mutex<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tree: Tree,
    /// The recording; `None` where a state is shown.
    history: Option<FileHistory>,
    failures: Vec<Failure>,
    /// Calls so far of each kind that has failures.
    calls: Vec<u64>,
}

/// Metadata of a file or folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    kind: Kind,
    bytes: u64,
}

impl Metadata {
    /// Bytes of the file.
    pub const fn len(&self) -> u64 {
        self.bytes
    }
    /// True of a file without bytes.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }
    /// True of a file.
    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }
    /// True of a folder.
    pub fn is_dir(&self) -> bool {
        self.kind == Kind::Folder
    }
}

/// Whether a path can only be that of a folder.
pub(crate) fn names_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

impl Inner {
    /// Counts a call; fails if it is one that is to fail.
    pub(crate) fn begin(&mut self, call: Call) -> io::Result<()> {
        let mut fails = None;
        for (failure, count) in self.failures.iter().zip(&mut self.calls) {
            if failure.call == call {
                *count += 1;
                if *count == failure.nth {
                    fails = Some(failure.errno);
                }
            }
        }
        fails.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    pub(crate) fn note(&mut self, words: impl FnOnce() -> String, steps: Vec<Step>) {
        if let Some(history) = &mut self.history
            && !steps.is_empty()
        {
            history.call(&words(), steps);
        }
    }

    pub(crate) fn acknowledge(&mut self, what: &str) {
        if let Some(history) = &mut self.history {
            history.acknowledge(what);
        }
    }

    pub(crate) fn sync(&mut self, syncs: Syncs, path: &str) -> io::Result<()> {
        let failed = self.begin(Call::Sync);
        let words = match syncs {
            Syncs::Whole(_) => format!("fsync of {path}"),
            Syncs::Data(_) => format!("fdatasync of {path}"),
            Syncs::Drive(_) | Syncs::Everything => "sync".to_owned(),
        };
        if let Some(history) = &mut self.history {
            let since = history.events().len() as u32;
            history.sync(&words, syncs, since, failed.is_ok());
        }
        failed
    }

    pub(crate) fn resolve(&self, path: &Path) -> io::Result<Ino> {
        let mut walked = vec![Ino::ROOT];
        if path.as_os_str().is_empty() {
            return Err(Errno::ENOENT.into());
        }
        for component in path.components() {
            let here = *walked.last().expect("the top stays");
            if self.tree.kind(here) != Kind::Folder {
                return Err(Errno::ENOTDIR.into());
            }
            match component {
                Component::Normal(name) => {
                    let name = name.to_str().ok_or(Errno::EILSEQ)?;
                    check_name(name)?;
                    walked.push(self.tree.lookup(here, name).ok_or(Errno::ENOENT)?);
                }
                Component::ParentDir if walked.len() > 1 => {
                    walked.pop();
                }
                _ => {}
            }
        }
        let found = *walked.last().expect("the top stays");
        if names_folder(path) && self.tree.kind(found) != Kind::Folder {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(found)
    }

    /// The folder of a path, and the name in it.
    pub(crate) fn place<'a>(&self, path: &'a Path) -> io::Result<(Ino, &'a str)> {
        if path.as_os_str().is_empty() {
            return Err(Errno::ENOENT.into());
        }
        if path.as_os_str().as_encoded_bytes().ends_with(b"/.") {
            return Err(Errno::EBUSY.into());
        }
        let name = path.file_name().ok_or(Errno::EINVAL)?.to_str().ok_or(Errno::EILSEQ)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.map_or(Ok(Ino::ROOT), |parent| self.resolve(parent))?;
        if self.tree.kind(folder) != Kind::Folder {
            return Err(Errno::ENOTDIR.into());
        }
        Ok((folder, name))
    }

    pub(crate) fn metadata(&self, ino: Ino) -> Metadata {
        Metadata { kind: self.tree.kind(ino), bytes: self.tree.length(ino) }
    }
}

impl Fs {
    /// An empty folder whose calls are recorded.
    pub(crate) fn recorded(history: FileHistory) -> Self {
        Self::new(Tree::new(), Some(history))
    }

    /// The folder that a power cut has left.
    pub(crate) fn shown(left: SurvivingFiles) -> Self {
        Self::new(Tree::over(left), None)
    }

    fn new(tree: Tree, history: Option<FileHistory>) -> Self {
        let (failures, calls) = (Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(Inner { tree, history, failures, calls })))
    }

    /// Ends the preparation; calls count from here on.
    pub(crate) fn set_begin(&self, failures: &[Failure]) {
        let mut inner = self.lock();
        inner.history.as_mut().expect("a recording").set_begin();
        inner.calls = vec![0; failures.len()];
        inner.failures = failures.to_vec();
    }

    /// The recording; clones record nothing more.
    pub(crate) fn into_history(self) -> FileHistory {
        self.lock().history.take().expect("a recording")
    }

    /// A failure that was asked for and never came, since there were fewer calls of its kind.
    pub(crate) fn unmet(&self) -> Option<(Failure, u64)> {
        let inner = self.lock();
        let mut counted = inner.failures.iter().zip(&inner.calls);
        let (failure, calls) =
            counted.find(|(failure, calls)| !(1..=**calls).contains(&failure.nth))?;
        Some((*failure, *calls))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A folder in memory with the calls of `std::fs`: it records a run, or shows what a power cut has left of one.

use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::atom::Ino;
use super::file::{File, OpenOptions};
use super::history::{FileHistory, Syncs};
use super::left::Left;
use super::tree::{Kind, Renaming, Step, Tree};

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
/// Paths begin at its top, with a slash or without. Errors are those of Linux.
#[derive(Clone, Debug)]
pub struct Fs(Arc<Mutex<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tree: Tree,
    /// What is recorded; nothing where a state is shown.
    history: Option<FileHistory>,
    failures: Vec<Failure>,
    /// Calls so far of each kind that has failures.
    calls: Vec<u64>,
}

/// What is known of a file or folder.
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

    pub(crate) fn sync(&mut self, syncs: Syncs, path: &str) -> io::Result<()> {
        let failed = self.begin(Call::Sync);
        let words = match syncs {
            Syncs::Whole(_) => format!("fsync of {path}"),
            Syncs::Data(_) => format!("fdatasync of {path}"),
            Syncs::Everything => "sync".to_owned(),
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
                    walked.push(self.tree.lookup(here, name).ok_or(Errno::ENOENT)?);
                }
                Component::ParentDir if walked.len() > 1 => {
                    walked.pop();
                }
                _ => {}
            }
        }
        Ok(*walked.last().expect("the top stays"))
    }

    /// The folder of a path, and the name in it.
    pub(crate) fn place<'a>(&self, path: &'a Path) -> io::Result<(Ino, &'a str)> {
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
        let (failures, calls) = (Vec::new(), Vec::new());
        let inner = Inner { tree: Tree::new(), history: Some(history), failures, calls };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// What a power cut has left.
    pub(crate) fn shown(left: Left) -> Self {
        let (failures, calls) = (Vec::new(), Vec::new());
        let inner = Inner { tree: Tree::over(left), history: None, failures, calls };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// What happened so far was the preparation; calls are counted from here on.
    pub(crate) fn set_begin(&self, failures: &[Failure]) {
        let mut inner = self.lock();
        inner.history.as_mut().expect("a recording").set_begin();
        inner.calls = vec![0; failures.len()];
        inner.failures = failures.to_vec();
    }

    /// What was recorded so far.
    pub(crate) fn history(&self) -> FileHistory {
        self.lock().history.clone().expect("a recording")
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Promises something: it must be there after every power cut from now on. A line of `acks` in the check.
    pub fn acknowledge(&self, what: &str) {
        if let Some(history) = &mut self.lock().history {
            history.acknowledge(what);
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().read(true).open(self, path)
    }

    /// Opens a file for writing; one that exists is cut to nothing.
    ///
    /// # Errors
    /// If its folder does not exist.
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(self, path)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let file = self.open(path)?;
        let bytes = file.metadata().len() as usize;
        file.read_at_most(0, bytes)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If there is none, or it is no UTF-8.
    pub fn read_to_string(&self, path: impl AsRef<Path>) -> io::Result<String> {
        String::from_utf8(self.read(path)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Makes a file with these bytes, or replaces those of one. Nothing is synced, as in `std::fs`.
    ///
    /// # Errors
    /// If its folder does not exist.
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.create(path)?.write_all_at(bytes.as_ref(), 0)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// If it exists, or the one above it does not.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut inner = self.lock();
        inner.begin(Call::Create)?;
        let (folder, name) = inner.place(path)?;
        let (_, steps) = inner.tree.create(folder, name, Kind::Folder)?;
        inner.note(|| format!("mkdir {}", path.display()), steps);
        Ok(())
    }

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    /// If a file has the name of one of them.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let above: Vec<&Path> =
            path.ancestors().filter(|path| path.file_name().is_some()).collect();
        for path in above.into_iter().rev() {
            match self.create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !self.metadata(path)?.is_dir() {
                        return Err(error);
                    }
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let inner = self.lock();
        let folder = inner.resolve(path.as_ref())?;
        if inner.tree.kind(folder) != Kind::Folder {
            return Err(Errno::ENOTDIR.into());
        }
        Ok(inner.tree.entries(folder).into_keys().map(|name| name.to_string()).collect())
    }

    /// What is known of a file or folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Metadata> {
        let inner = self.lock();
        let ino = inner.resolve(path.as_ref())?;
        Ok(inner.metadata(ino))
    }

    /// Whether there is a file or folder of this name.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.metadata(path).is_ok()
    }

    /// Renames a file or folder; a file, or an empty folder, of the new name is replaced.
    ///
    /// # Errors
    /// As rename(2).
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(from.as_ref(), to.as_ref(), Renaming::Replace)
    }

    /// Renames if the new name is free (`RENAME_NOREPLACE`).
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn rename_new(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(from.as_ref(), to.as_ref(), Renaming::New)
    }

    /// Exchanges two files or folders (`RENAME_EXCHANGE`).
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn exchange(&self, one: impl AsRef<Path>, other: impl AsRef<Path>) -> io::Result<()> {
        self.renamed(one.as_ref(), other.as_ref(), Renaming::Exchange)
    }

    fn renamed(&self, from: &Path, to: &Path, how: Renaming) -> io::Result<()> {
        let mut inner = self.lock();
        inner.begin(Call::Rename)?;
        let (source, target) = (inner.place(from)?, inner.place(to)?);
        let steps = inner.tree.rename(source, target, how)?;
        let verb = if how == Renaming::Exchange { "exchange of" } else { "rename of" };
        inner.note(|| format!("{verb} {} and {}", from.display(), to.display()), steps);
        Ok(())
    }

    /// A further name of a file.
    ///
    /// # Errors
    /// As link(2).
    pub fn hard_link(&self, file: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        let (file, link) = (file.as_ref(), link.as_ref());
        let mut inner = self.lock();
        inner.begin(Call::Create)?;
        let ino = inner.resolve(file)?;
        let (folder, name) = inner.place(link)?;
        let steps = inner.tree.link(ino, folder, name)?;
        inner.note(|| format!("link of {} as {}", file.display(), link.display()), steps);
        Ok(())
    }

    /// Removes a name of a file. Handles stay.
    ///
    /// # Errors
    /// As unlink(2).
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.removed(path.as_ref(), Kind::File)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// As rmdir(2).
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.removed(path.as_ref(), Kind::Folder)
    }

    fn removed(&self, path: &Path, kind: Kind) -> io::Result<()> {
        let mut inner = self.lock();
        inner.begin(Call::Remove)?;
        let (folder, name) = inner.place(path)?;
        let steps = inner.tree.remove(folder, name, kind)?;
        inner.note(|| format!("removal of {}", path.display()), steps);
        Ok(())
    }

    /// `fsync` of a folder: `File::open(folder)?.sync_all()` in `std`.
    ///
    /// # Errors
    /// If there is none.
    pub fn sync_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let mut inner = self.lock();
        let folder = inner.resolve(path)?;
        inner.sync(Syncs::Whole(folder), &path.display().to_string())
    }

    /// `sync`: everything is durable.
    ///
    /// # Errors
    /// If that call is to fail.
    pub fn sync(&self) -> io::Result<()> {
        self.lock().sync(Syncs::Everything, "")
    }
}

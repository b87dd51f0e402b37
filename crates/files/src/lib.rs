//! Result files that appear whole or not at all.
//!
//! **What lives here**: writing a file so that a crash, a full disk or an early return leaves either the
//! whole new file or what was there before. **What doesn't**: reading, formats, what goes into a file.
//!
//! **Invariants**
//! - The bytes go to a temporary file in the same folder. They are on the disk before it takes the name,
//!   and the folder is on the disk before [`NewFile::commit`] returns.
//! - A [`NewFile`] that is dropped before it is committed leaves nothing behind.
//! - The permissions are those of any new file: 0666 less the umask, not a temporary file's 0600.
//! - Links are followed: the file that a link names is replaced, not the link.
//! - Devices and pipes cannot be replaced. They are written to directly.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

/// Why a file was not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// There is one already, and it may not be replaced.
    #[error("{} exists already", .path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot write {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
}

impl WriteError {
    /// The underlying I/O error; [`AlreadyExists`](io::ErrorKind::AlreadyExists) for a file that
    /// may not be replaced.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::Exists { .. } => io::ErrorKind::AlreadyExists.into(),
            Self::Io { source, .. } => source,
        }
    }
}

/// A file that takes its name when it is committed.
///
/// It does not buffer: wrap it in a [`io::BufWriter`] for small writes.
#[derive(Debug)]
pub struct NewFile {
    /// As the caller wrote it, for errors.
    path: PathBuf,
    to: Target,
}

#[derive(Debug)]
enum Target {
    /// A file beside `becomes`, removed if it does not become it.
    Temporary { file: NamedTempFile, becomes: PathBuf, replaces: bool },
    /// A device or pipe, and how many bytes it was given.
    Stream { file: File, sent: u64 },
}

impl NewFile {
    /// A file that will replace what is at `path`, if anything.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        Self::open(path, true)
    }

    /// A file that will be at `path`, where nothing is yet.
    pub fn create_new(path: &Path) -> Result<Self, WriteError> {
        if path.exists() {
            return Err(WriteError::Exists { path: path.to_owned() });
        }
        Self::open(path, false)
    }

    /// As [`NewFile::create_new`], for its owner alone: what a drive holds is as secret as the drive.
    pub fn create_private(path: &Path) -> Result<Self, WriteError> {
        let new = Self::create_new(path)?;
        if let Target::Temporary { file, .. } = &new.to {
            let private = fs::Permissions::from_mode(0o600);
            let made = file.as_file().set_permissions(private);
            made.map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
        }
        Ok(new)
    }

    fn open(path: &Path, replaces: bool) -> Result<Self, WriteError> {
        match Target::open(path, replaces) {
            Ok(to) => Ok(Self { path: path.to_owned(), to }),
            Err(source) => Err(WriteError::Io { path: path.to_owned(), source }),
        }
    }

    /// The file, for writers that need more than a stream: holes, say. Not yet under its name.
    pub fn as_file(&self) -> &File {
        match &self.to {
            Target::Temporary { file, .. } => file.as_file(),
            Target::Stream { file, .. } => file,
        }
    }

    /// Writes `head` over the first bytes. The end of the file is where it was. A stream keeps the bytes
    /// that it was sent.
    pub fn rewrite_head(&mut self, head: &[u8]) -> io::Result<()> {
        let Target::Temporary { file, .. } = &mut self.to else { return Ok(()) };
        let rewritten = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(head));
        rewritten.and_then(|()| file.seek(SeekFrom::End(0)).map(drop)).map_err(plain)
    }

    /// Makes the bytes durable, then the name. Returns how many bytes there are.
    pub fn commit(self) -> Result<u64, WriteError> {
        let path = self.path;
        self.to.commit().map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists { path },
            _ => WriteError::Io { path, source },
        })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Temporary { file, .. } => file.write(bytes).map_err(plain),
            Target::Stream { file, sent } => {
                let taken = file.write(bytes)?;
                *sent += taken as u64;
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // nothing is buffered
    }
}

impl Target {
    fn open(path: &Path, replaces: bool) -> io::Result<Self> {
        // A rename would replace the link itself, `/dev/stdout` for one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = File::options().write(true).open(&path)?;
                Ok(Self::Stream { file, sent: 0 })
            }
            _ => {
                let file = temporary(folder(&path))?;
                Ok(Self::Temporary { file, becomes: path, replaces })
            }
        }
    }

    fn commit(self) -> io::Result<u64> {
        match self {
            Self::Stream { sent, .. } => Ok(sent),
            Self::Temporary { file, becomes, replaces } => {
                file.as_file().sync_all()?;
                let bytes = file.as_file().metadata()?.len();
                if replaces {
                    file.persist(&becomes)?;
                } else {
                    file.persist_noclobber(&becomes)?;
                }
                sync_folder(folder(&becomes))?;
                Ok(bytes)
            }
        }
    }
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".leyden-");
    #[cfg(unix)]
    builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    builder.tempfile_in(folder).map_err(plain)
}

/// The error without the name of a temporary file, which is nobody's business: what could not be written is named by who
/// asked for it.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((plain, _)) => io::Error::new(error.kind(), plain.to_owned()),
        None => error,
    }
}

/// Makes the names in `folder` durable. Not every user can open a folder, and not every file system can
/// sync one: the file is then still whole, and this is no error.
fn sync_folder(folder: &Path) -> io::Result<()> {
    let Ok(folder) = File::open(folder) else { return Ok(()) };
    match folder.sync_all() {
        Err(error) if !is_unsupported(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// The folder that the file at `path` is in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Writes `content` to `path`, in the place of what was there.
pub fn write(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    write_with(path, |file| file.write_all(content))
}

/// Writes to `path` what `fill` writes, in the place of what was there. If `fill` fails, nothing changes.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut NewFile) -> io::Result<()>,
) -> Result<(), WriteError> {
    let mut file = NewFile::create(path)?;
    fill(&mut file).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
    file.commit().map(drop)
}

/// Finds out, before the work is done, whether its result could be written to `path`.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let check = || match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ => tempfile::tempfile_in(folder(path)).map(drop),
    };
    check().map_err(plain).map_err(|source| WriteError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;

//! Handles on files.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::atom::Ino;
use super::folder::{Call, Fs, Metadata, names_folder};
use super::history::Syncs;
use super::step::Kind;

/// How a file is opened: as `std::fs::OpenOptions`, with `O_SYNC` and `O_DSYNC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags of open(2), each by itself")]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    sync: WriteSync,
}

/// The sync that follows each write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum WriteSync {
    #[default]
    Nothing,
    /// `O_DSYNC`.
    Data,
    /// `O_SYNC`.
    Whole,
}

impl OpenOptions {
    /// Neither for reading nor for writing.
    pub fn new() -> Self {
        Self::default()
    }
    /// For reading.
    #[must_use]
    pub const fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }
    /// For writing.
    #[must_use]
    pub const fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }
    /// For writing, always at the end.
    #[must_use]
    pub const fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }
    /// Cut to nothing.
    #[must_use]
    pub const fn truncate(mut self, truncate: bool) -> Self {
        self.truncate = truncate;
        self
    }
    /// Made if it does not exist.
    #[must_use]
    pub const fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }
    /// Made; it must not exist.
    #[must_use]
    pub const fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }
    /// Each write is followed by an `fsync` (`O_SYNC`).
    #[must_use]
    pub const fn sync(mut self, is_on: bool) -> Self {
        self.sync = if is_on { WriteSync::Whole } else { WriteSync::Nothing };
        self
    }
    /// Each write is followed by an `fdatasync` (`O_DSYNC`).
    #[must_use]
    pub const fn data_sync(mut self, is_on: bool) -> Self {
        self.sync = if is_on { WriteSync::Data } else { WriteSync::Nothing };
        self
    }

    /// Opens a file, or a folder for reading.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(&self, fs: &Fs, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        let is_written = self.write || self.append;
        let makes = self.create || self.create_new;
        if !is_written && (!self.read || makes || self.truncate) || self.append && self.truncate {
            return Err(Errno::EINVAL.into());
        }
        let mut inner = fs.lock();
        let found = match inner.resolve(path) {
            Err(error) if makes && error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        let words = path.display().to_string();
        let ino = match found {
            Some(_) if self.create_new => return Err(Errno::EEXIST.into()),
            Some(ino) if inner.tree.kind(ino) == Kind::Folder && is_written => {
                return Err(Errno::EISDIR.into());
            }
            Some(ino) => {
                if self.truncate {
                    inner.begin(Call::SetLength)?;
                    let steps = inner.tree.set_length(ino, 0)?;
                    inner.note(|| format!("truncation of {words} to 0 B"), steps);
                }
                ino
            }
            None if names_folder(path) => return Err(Errno::EISDIR.into()),
            None => {
                inner.begin(Call::Create)?;
                let (folder, name) = inner.place(path)?;
                let (ino, steps) = inner.tree.create(folder, name, Kind::File)?;
                inner.note(|| format!("creation of {words}"), steps);
                ino
            }
        };
        drop(inner);
        let cursor = Mutex::new(0);
        Ok(File { fs: fs.clone(), ino, path: words, how: *self, cursor })
    }
}

/// An open file.
#[derive(Debug)]
pub struct File {
    fs: Fs,
    ino: Ino,
    path: String,
    how: OpenOptions,
    cursor: Mutex<u64>,
}

impl File {
    fn cursor(&self) -> MutexGuard<'_, u64> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Metadata of the file.
    pub fn metadata(&self) -> Metadata {
        self.fs.lock().metadata(self.ino)
    }

    pub(crate) fn read_at_most(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        if !self.how.read {
            return Err(Errno::EBADF.into());
        }
        let mut inner = self.fs.lock();
        inner.begin(Call::Read)?;
        if inner.tree.kind(self.ino) == Kind::Folder {
            return Err(Errno::EISDIR.into());
        }
        inner.tree.read(self.ino, offset, most)
    }

    /// Reads from `offset` on; fewer bytes at the end of the file.
    ///
    /// # Errors
    /// If it is not open for reading.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.read_at_most(offset, buffer.len())?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// If the file ends before.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.read_at(buffer, offset)?;
        if read < buffer.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Writes all bytes at `offset`; at the end if the file is open for appending.
    ///
    /// # Errors
    /// If it is not open for writing.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.put(bytes, offset).map(|_| ())
    }

    /// Writes; returns where the bytes end.
    fn put(&self, bytes: &[u8], offset: u64) -> io::Result<u64> {
        if !(self.how.write || self.how.append) {
            return Err(Errno::EBADF.into());
        }
        let mut inner = self.fs.lock();
        inner.begin(Call::Write)?;
        let offset = if self.how.append { inner.tree.length(self.ino) } else { offset };
        let steps = inner.tree.write(self.ino, offset, bytes)?;
        let words = || format!("write of {} B at {offset} of {}", bytes.len(), self.path);
        inner.note(words, steps);
        match self.how.sync {
            _ if bytes.is_empty() => {}
            WriteSync::Nothing => {}
            WriteSync::Data => inner.sync(Syncs::Data(self.ino), &self.path)?,
            WriteSync::Whole => inner.sync(Syncs::Whole(self.ino), &self.path)?,
        }
        Ok(offset + bytes.len() as u64)
    }

    /// Sets the length.
    ///
    /// # Errors
    /// If it is not open for writing.
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        if !(self.how.write || self.how.append) {
            return Err(Errno::EINVAL.into());
        }
        let mut inner = self.fs.lock();
        inner.begin(Call::SetLength)?;
        let steps = inner.tree.set_length(self.ino, bytes)?;
        inner.note(|| format!("truncation of {} to {bytes} B", self.path), steps);
        Ok(())
    }

    /// `fsync`.
    ///
    /// # Errors
    /// If that call is to fail.
    pub fn sync_all(&self) -> io::Result<()> {
        self.fs.lock().sync(Syncs::Whole(self.ino), &self.path)
    }

    /// `fdatasync`.
    ///
    /// # Errors
    /// If that call is to fail.
    pub fn sync_data(&self) -> io::Result<()> {
        self.fs.lock().sync(Syncs::Data(self.ino), &self.path)
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut cursor = self.cursor();
        let read = self.read_at(buffer, *cursor)?;
        *cursor += read as u64;
        Ok(read)
    }
}

impl Write for &File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cursor = self.cursor();
        *cursor = self.put(bytes, *cursor)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // to the kernel, not to the disk
    }
}

impl Seek for &File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut cursor = self.cursor();
        let (base, offset) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(offset) => (*cursor, offset),
            SeekFrom::End(offset) => (self.metadata().len(), offset),
        };
        *cursor = base.checked_add_signed(offset).ok_or(Errno::EINVAL)?;
        Ok(*cursor)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let mut inner = self.fs.lock();
        let steps = inner.tree.close(self.ino);
        inner.note(|| format!("close of {}", self.path), steps);
    }
}

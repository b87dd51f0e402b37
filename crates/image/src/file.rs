//! The file that an image is: locked, read and written at places.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::ImageError;
use crate::mapped::Mapped;

/// An image's file, which no other process has open.
#[derive(Debug)]
pub(crate) struct ImageFile {
    file: File,
    path: PathBuf,
    /// Room that is set aside is there whatever is stored to it, and however often.
    keeps_room: bool,
    /// It is in memory: what was written there can be read.
    is_in_memory: bool,
    /// It has no name yet.
    is_nameless: bool,
}

/// A drive's data belongs to its owner, with any umask.
const OWNERS: Mode = Mode::RUSR.union(Mode::WUSR);

/// No page of memory is larger.
const PAGE_MOST: u64 = 64 << 10;
/// File systems that change what lies in a file where it lies: of others a store may need room that is not there, and
/// would end the process. (XFS is one as long as no file shares its blocks, which is not known here.)
const CHANGES_IN_PLACE: [u64; 2] = [TMPFS_MAGIC, EXT4_MAGIC];
const TMPFS_MAGIC: u64 = 0x0102_1994;
const EXT4_MAGIC: u64 = 0xef53;

impl ImageFile {
    /// A new file, its owner's only; one that exists is left alone. It has no name until it is [published](Self::publish),
    /// so that a process that ends before leaves none; on file systems without such files it has its name at once.
    pub(crate) fn create(path: &Path) -> Result<Self, ImageError> {
        if path.symlink_metadata().is_ok() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, OWNERS) {
            Ok(file) => {
                let mut made = Self::locked(File::from(file), path)?;
                made.is_nameless = true;
                Ok(made)
            }
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
                let file = rustix::fs::open(path, flags, OWNERS).map_err(io::Error::from)?;
                Self::locked(File::from(file), path)
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Gives a new file its name.
    pub(crate) fn publish(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_nameless) {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            rustix::fs::linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?;
        }
        Ok(())
    }

    pub(crate) fn open(path: &Path) -> Result<Self, ImageError> {
        Self::locked(OpenOptions::new().read(true).write(true).open(path)?, path)
    }

    fn locked(file: File, path: &Path) -> Result<Self, ImageError> {
        match file.try_lock() {
            Ok(()) => {
                let kind = rustix::fs::fstatfs(&file).map_or(0, |stat| stat.f_type as u64);
                let keeps_room = CHANGES_IN_PLACE.contains(&kind);
                let is_in_memory = kind == TMPFS_MAGIC;
                Ok(Self {
                    file,
                    path: path.to_owned(),
                    keeps_room,
                    is_in_memory,
                    is_nameless: false,
                })
            }
            Err(TryLockError::WouldBlock) => Err(ImageError::InUse),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    pub(crate) fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Fills `bytes`; beyond the end of the file there are zeroes.
    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], at + done as u64) {
                Ok(0) => {
                    bytes[done..].fill(0);
                    return Ok(());
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reserves the space of a range. False on a file system that cannot: a later write may fail instead.
    pub(crate) fn allocate(&self, at: u64, length: u64) -> io::Result<bool> {
        self.fallocate(FallocateFlags::empty(), at, length)
    }

    /// A range to be stored to, with some bytes around it; `None` if stores might fail.
    pub(crate) fn map(&self, range: Range<u64>) -> Option<Mapped> {
        let range = range.start / PAGE_MOST * PAGE_MOST..range.end.next_multiple_of(PAGE_MOST);
        let is_kept =
            self.keeps_room && self.allocate(range.start, range.end - range.start).ok()?;
        if !is_kept {
            return None;
        }
        self.reach(range.end).ok()?;
        Mapped::new(&self.file, range).ok()
    }

    /// The bytes from `at` on, as many as there may ever be, to be read and stored to in pieces; `None` on a disk, where
    /// reading may fail: that is to be an error, and no SIGBUS.
    pub(crate) fn map_memory(&self, at: u64, most_bytes: u64) -> Option<Mapped> {
        let is_page = at.is_multiple_of(PAGE_MOST) && self.is_in_memory;
        is_page.then(|| Mapped::over(&self.file, at..at + most_bytes).ok()).flatten()
    }

    /// Makes the file at least so long.
    pub(crate) fn reach(&self, end: u64) -> io::Result<()> {
        if self.length()? < end { self.file.set_len(end) } else { Ok(()) }
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Gives the room of a range back to the file system; it reads as zeroes from now on.
    pub(crate) fn punch(&self, at: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        self.fallocate(FallocateFlags::PUNCH_HOLE, at, length).map(drop)
    }

    /// Does nothing on a file system that cannot: the file is only larger, or a later write fails. It says so.
    fn fallocate(&self, flags: FallocateFlags, at: u64, length: u64) -> io::Result<bool> {
        match rustix::fs::fallocate(&self.file, flags | FallocateFlags::KEEP_SIZE, at, length) {
            Err(Errno::OPNOTSUPP) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }

    /// Bytes of the file system that it takes up.
    pub(crate) fn allocated_bytes(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Copies what is not a hole to a new file `to`, which appears when it is whole.
    pub(crate) fn copy_to(&self, to: &Path) -> Result<(), ImageError> {
        let mut copy = Self::create(to)?;
        let is_named = !copy.is_nameless;
        let copied = self.copy_data(&copy).and_then(|()| {
            copy.sync()?;
            // Unlike a rename, this replaces nothing.
            Ok(copy.publish()?)
        });
        if copied.is_err() && is_named {
            let _ = std::fs::remove_file(to); // it was not there before
        }
        copied
    }

    fn copy_data(&self, to: &Self) -> Result<(), ImageError> {
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            let begin = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Ok(begin) => begin,
                Err(Errno::NXIO) => return Ok(()), // nothing but a hole is left
                Err(error) => return Err(io::Error::from(error).into()),
            };
            let end =
                rustix::fs::seek(&self.file, SeekFrom::Hole(begin)).map_err(io::Error::from)?;
            at = begin;
            while at < end {
                let count = buffer.len().min((end - at) as usize);
                self.read(&mut buffer[..count], at)?;
                to.write(&buffer[..count], at)?;
                at += count as u64;
            }
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

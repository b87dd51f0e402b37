//! The file that an image is: locked, read and written at places.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, SeekFrom};

use crate::ImageError;

/// An image's file, which no other process has open.
#[derive(Debug)]
pub(crate) struct ImageFile {
    file: File,
    path: PathBuf,
}

impl ImageFile {
    /// A new file; one that exists is left alone.
    pub(crate) fn create(path: &Path) -> Result<Self, ImageError> {
        let mut options = OpenOptions::new();
        Self::locked(options.read(true).write(true).create_new(true).open(path)?, path)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, ImageError> {
        Self::locked(OpenOptions::new().read(true).write(true).open(path)?, path)
    }

    fn locked(file: File, path: &Path) -> Result<Self, ImageError> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path: path.to_owned() }),
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

    /// Reserves the space of a range. On a file system that cannot, a later write may fail instead.
    pub(crate) fn allocate(&self, at: u64, length: u64) -> io::Result<()> {
        self.fallocate(FallocateFlags::empty(), at, length)
    }

    /// Gives the room of a range back to the file system; it reads as zeroes from now on.
    pub(crate) fn punch(&self, at: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        self.fallocate(FallocateFlags::PUNCH_HOLE, at, length)
    }

    /// Does nothing on a file system that cannot: the file is only larger, or a later write fails.
    fn fallocate(&self, flags: FallocateFlags, at: u64, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, flags | FallocateFlags::KEEP_SIZE, at, length) {
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Bytes of the file system that it takes up.
    pub(crate) fn allocated_bytes(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Copies what is not a hole to a new file `to`, which appears when it is whole.
    pub(crate) fn copy_to(&self, to: &Path) -> Result<(), ImageError> {
        let mut partial = to.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let copy = Self::create(&partial)?;
        let copied = self.copy_data(&copy).and_then(|()| {
            copy.sync()?;
            // Unlike a rename, a link replaces nothing.
            Ok(std::fs::hard_link(&partial, to)?)
        });
        std::fs::remove_file(&partial)?;
        copied
    }

    fn copy_data(&self, to: &Self) -> Result<(), ImageError> {
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        loop {
            let begin = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Ok(begin) => begin,
                Err(rustix::io::Errno::NXIO) => return Ok(()), // nothing but a hole is left
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

//! The FUSE front end: the drive as one file, `disk`, for the kernel's loop devices.
//!
//! A loop device with direct I/O (`losetup --direct-io=on`) turns each request of a block layer into one
//! here: a flush into FSYNC, a discard into a punched hole, zeroes into a zeroed range. Force unit access
//! does not exist on this way: the block layer flushes instead.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use leyden_device::{Lba, SECTOR_BYTES};
use rustix::fs::FallocateFlags;
use tracing::warn;

use crate::ask::{Answer, Ask, Failure};
use crate::owner::Handle;

/// The blocks behind a mounted file: it takes the requests of a drive.
pub trait Blocks: Send + Sync + 'static {
    /// Sectors that can be addressed.
    fn capacity_sectors(&self) -> u64;
    /// Bytes that are best read and written at once.
    fn unit_bytes(&self) -> u32;
    /// True if there is a file for marks ([`Ask::Mark`]) beside it.
    fn is_recorded(&self) -> bool;
    /// Asks; `reply` is called once with the answer, by whatever thread.
    fn ask(&self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static);
}

impl Blocks for Handle {
    fn capacity_sectors(&self) -> u64 {
        Self::capacity_sectors(self)
    }
    fn unit_bytes(&self) -> u32 {
        Self::unit_bytes(self)
    }
    fn is_recorded(&self) -> bool {
        Self::is_recorded(self)
    }
    fn ask(&self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        Self::ask(self, ask, reply);
    }
}

/// Nothing about the file ever changes.
const FOREVER: Duration = Duration::from_hours(1);
const ROOT: INodeNo = INodeNo(1);
const DISK: INodeNo = INodeNo(2);
const MARKS: INodeNo = INodeNo(3);
/// The drive's file name.
const NAME: &str = "disk";
/// If it is recorded: what is written here is noted among its commands.
const MARKS_NAME: &str = "marks";
/// Requests that the kernel has under way at once, and the largest of them.
const REQUESTS_MOST: u16 = 128;
const WRITE_MOST: u32 = 1 << 20;

/// A mounted drive; it is unmounted when this is dropped, at once or when its last user has gone.
#[derive(Debug)]
pub struct Mount {
    /// `None` while this is dropped.
    session: Option<BackgroundSession>,
    folder: PathBuf,
}

impl Mount {
    /// Mounts the drive at `folder`, as its file `disk`.
    ///
    /// # Errors
    /// If FUSE is not to be had, or the folder is none.
    pub fn new(folder: &Path, drive: impl Blocks) -> io::Result<Self> {
        unmount_dead(folder)?;
        if !folder.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into()); // a file would be covered
        }
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("leyden".to_owned()),
            MountOption::Subtype("leyden".to_owned()),
            MountOption::NoExec,
            MountOption::NoDev,
            MountOption::NoSuid,
        ];
        let session = fuser::spawn_mount(Disk { drive }, folder, &config)?;
        Ok(Self { session: Some(session), folder: folder.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        drop(self.session.take()); // unmounts, unless somebody uses it
        if is_mounted(&self.folder) {
            warn!(folder = %self.folder.display(), "the mount is in use: it goes with its last user");
            if let Err(error) = detach(&self.folder) {
                warn!(%error, "cannot run fusermount3");
            }
        }
    }
}

/// True if something is mounted at `folder`.
fn is_mounted(folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    device(folder).is_some_and(|of_folder| device(&folder.join("..")) != Some(of_folder))
}

/// A killed server leaves a dead mount behind: it is unmounted.
fn unmount_dead(folder: &Path) -> io::Result<()> {
    let is_dead = |error: io::Error| error.kind() == io::ErrorKind::NotConnected;
    if folder.metadata().err().is_some_and(is_dead) { detach(folder) } else { Ok(()) }
}

/// Takes a mount out of sight; it ends with its last user.
fn detach(folder: &Path) -> io::Result<()> {
    std::process::Command::new("fusermount3").args(["-u", "-z"]).arg(folder).status().map(drop)
}

/// The file system.
struct Disk<B> {
    drive: B,
}

impl<B: Blocks> Disk<B> {
    fn attributes(&self, node: INodeNo) -> FileAttr {
        let is_root = node == ROOT;
        let sectors = if node == DISK { self.drive.capacity_sectors() } else { 0 };
        FileAttr {
            ino: node,
            size: sectors * SECTOR_BYTES,
            blocks: sectors,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root { FileType::Directory } else { FileType::RegularFile },
            perm: if is_root { 0o755 } else { 0o600 },
            nlink: if is_root { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: self.drive.unit_bytes(),
        }
    }

    /// The sectors of a range of bytes, if it is the drive's and whole sectors.
    fn sectors(&self, offset: u64, length: u64) -> Result<(Lba, u32), Errno> {
        let end = offset.checked_add(length).ok_or(Errno::EINVAL)?;
        if !offset.is_multiple_of(SECTOR_BYTES) || !length.is_multiple_of(SECTOR_BYTES) {
            return Err(Errno::EINVAL);
        }
        if end > self.drive.capacity_sectors() * SECTOR_BYTES {
            return Err(Errno::ENOSPC);
        }
        let sectors = u32::try_from(length / SECTOR_BYTES).map_err(|_| Errno::EFBIG)?;
        Ok((Lba(offset / SECTOR_BYTES), sectors))
    }
}

/// The kernel's errno for an answer.
fn errno_of(answer: Answer) -> Result<Answer, Errno> {
    match answer {
        Answer::Failed(Failure::NoSpace) => Err(Errno::ENOSPC),
        Answer::Failed(Failure::NoMemory) => Err(Errno::ENOMEM),
        Answer::Failed(_) => Err(Errno::EIO),
        answer => Ok(answer),
    }
}

fn reply_empty(reply: ReplyEmpty) -> impl FnOnce(Answer) + Send {
    move |answer| match errno_of(answer) {
        Ok(_) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl<B: Blocks> Filesystem for Disk<B> {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without a cache that writes back: a write is here when the loop device issues it. What an older
        // kernel lacks it does without.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(WRITE_MOST);
        let _ = config.set_max_background(REQUESTS_MOST);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let node = match name.to_str() {
            Some(NAME) if parent == ROOT => DISK,
            Some(MARKS_NAME) if parent == ROOT && self.drive.is_recorded() => MARKS,
            _ => return reply.error(Errno::ENOENT),
        };
        reply.entry(&FOREVER, &self.attributes(node), Generation(0));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(node));
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // `echo note >marks` cuts the file to nothing first. Nothing else can be changed.
        if node == MARKS || size.is_none() {
            reply.attr(&FOREVER, &self.attributes(node));
        } else {
            reply.error(Errno::EPERM);
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let all = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, NAME),
            (MARKS, FileType::RegularFile, MARKS_NAME),
        ];
        let count = if self.drive.is_recorded() { 4 } else { 3 };
        for (at, (node, kind, name)) in (1..).zip(all).take(count).skip(offset as usize) {
            if reply.add(node, at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(1), direct);
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if node != DISK {
            return reply.data(&[]);
        }
        let left = (self.drive.capacity_sectors() * SECTOR_BYTES).saturating_sub(offset);
        match self.sectors(offset, u64::from(size).min(left)) {
            Ok((_, 0)) => reply.data(&[]),
            Ok((lba, sectors)) => {
                self.drive.ask(Ask::Read(lba, sectors), move |answer| match errno_of(answer) {
                    Ok(Answer::Data(data)) => reply.data(&data),
                    Ok(_) => reply.data(&[]),
                    Err(error) => reply.error(error),
                });
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = data.len() as u32;
        if node == MARKS {
            let ask = Ask::Mark(data.to_vec());
            return self.drive.ask(ask, move |_| reply.written(length));
        }
        match self.sectors(offset, data.len() as u64) {
            Ok((_, 0)) => reply.written(0),
            Ok((lba, _)) => {
                let ask = Ask::Write(lba, data.to_vec(), leyden_image::WriteFlags::default());
                self.drive.ask(ask, move |answer| match errno_of(answer) {
                    Ok(_) => reply.written(length),
                    Err(error) => reply.error(error),
                });
            }
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok(); // a close: nothing is cached here
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.drive.ask(Ask::Flush, reply_empty(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_truncate(mode as u32);
        let (lba, sectors) = match self.sectors(offset, length) {
            Ok((_, 0)) => return reply.error(Errno::EINVAL),
            Ok(range) => range,
            Err(error) => return reply.error(error),
        };
        if mode.contains(FallocateFlags::PUNCH_HOLE) {
            self.drive.ask(Ask::Trim(lba, sectors), reply_empty(reply));
        } else if mode.contains(FallocateFlags::ZERO_RANGE) {
            self.drive.ask(Ask::WriteZeroes(lba, sectors, false), reply_empty(reply));
        } else {
            reply.ok(); // all of it has its place
        }
    }
}

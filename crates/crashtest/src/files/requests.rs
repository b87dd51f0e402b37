//! The kernel's requests to a served folder.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use leyden_device::FaultKind;

use super::calls::PERMISSIONS;
use super::history::Syncs;
use super::operation::{Operation, Owner};
use super::served::{Served, Shown, utf8};
use super::step::{Kind, PAGE_BYTES};

/// Bytes of a write that the kernel sends at once: a page is torn from others anyway.
const WRITE_MOST: u32 = 1 << 20;
/// The longest name, as Linux has it (limits.h, `NAME_MAX`).
const NAME_MOST: u32 = 255;

/// Answers with what came out, or with its error.
macro_rules! answer {
    ($reply:expr, $result:expr, |$value:pat_param| $then:expr) => {
        match $result {
            Ok($value) => $then,
            Err(error) => $reply.error(Errno::from(error)),
        }
    };
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without a cache that writes back: a write is here when its call returns. What is written by mmap(2) comes with
        // msync(2), or when the kernel writes it back.
        let wanted = InitFlags::FUSE_BIG_WRITES | InitFlags::FUSE_PARALLEL_DIROPS;
        let _ = config.add_capabilities(wanted); // what an older kernel lacks it does without
        let _ = config.set_max_write(WRITE_MOST);
        // All that is written back stands in one queue, in order.
        let _ = config.set_max_background(u16::MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let shown = self.lock();
        let found = shown.ino(parent).and_then(|folder| {
            let ino = shown.tree().lookup(folder, utf8(name)?);
            Ok(shown.attributes(ino.ok_or(nix::errno::Errno::ENOENT)?))
        });
        answer!(reply, found, |attributes| entered(reply, parent, &attributes));
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let shown = self.lock();
        answer!(reply, shown.ino(node), |ino| {
            reply.attr(&Shown::kept(node), &shown.attributes(ino));
        });
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut shown = self.lock();
        let set = shown.ino(node).and_then(|ino| {
            if let Some(bytes) = size {
                shown.operate(Operation::SetLength { file: ino, bytes }, &[])?;
            }
            if mode.is_some() || uid.is_some() || gid.is_some() {
                let old = shown.owner(ino);
                let mode = mode.map_or(old.mode, |mode| (mode & PERMISSIONS) as u16);
                let (uid, gid) = (uid.unwrap_or(old.uid), gid.unwrap_or(old.gid));
                shown.set_owner(ino, Owner { mode, uid, gid });
            }
            match modified {
                Some(TimeOrNow::SpecificTime(time)) => shown.set_modified(ino, time),
                Some(TimeOrNow::Now) => shown.set_modified(ino, crate::clock::now()),
                None => {}
            }
            Ok(shown.attributes(ino))
        });
        answer!(reply, set, |attributes| reply.attr(&Shown::kept(node), &attributes));
    }

    fn readlink(&self, _: &Request, node: INodeNo, reply: ReplyData) {
        let shown = self.lock();
        let target = shown.ino(node).map(|link| shown.tree().target(link));
        answer!(reply, target, |target| reply
            .data(target.as_deref().unwrap_or_default().as_bytes()));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        // A device, a pipe or a socket is nothing that a power cut is about.
        if mode & nix::libc::S_IFMT != nix::libc::S_IFREG {
            return reply.error(Errno::EPERM);
        }
        let made = self.create_node(request, parent, name, mode, Kind::File);
        answer!(reply, made, |attributes| entered(reply, parent, &attributes));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.create_node(request, parent, name, mode, Kind::Folder);
        answer!(reply, made, |attributes| entered(reply, parent, &attributes));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = utf8(target.as_os_str()).and_then(|target| {
            let target = target.to_owned();
            self.make(request, parent, name, 0o777, |folder, name| Operation::Symlink {
                folder,
                name,
                target,
            })
        });
        answer!(reply, made, |attributes| entered(reply, parent, &attributes));
    }

    fn link(&self, _: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut shown = self.lock();
        let linked = shown.ino(node).and_then(|file| {
            let (folder, name) = (shown.ino(parent)?, utf8(name)?.to_owned());
            shown.operate(Operation::Link { file, folder, name }, &[])?;
            Ok(shown.attributes(file))
        });
        answer!(reply, linked, |attributes| entered(reply, parent, &attributes));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name, Kind::File), |()| reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name, Kind::Folder), |()| reply.ok());
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.rename_node((parent, name), (new_parent, new_name), flags);
        answer!(reply, renamed, |()| reply.ok());
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let made = self.create_node(request, parent, name, mode, Kind::File);
        answer!(reply, made, |attributes| {
            let (keep, flags) = (Shown::kept(attributes.ino), FopenFlags::empty());
            reply.created(&keep, &attributes, Generation(0), FileHandle(0), flags);
        });
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The kernel's copy of the file is right: no other process changes it.
        answer!(reply, self.lock().ino(node), |_| {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
        });
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
        let mut shown = self.lock();
        let read = shown
            .begin(FaultKind::Read)
            .and_then(|()| shown.tree().read(shown.ino(node)?, offset, size as usize));
        answer!(reply, read, |data| reply.data(&data));
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.write_node(node, offset, data, flags);
        answer!(reply, written, |()| reply.written(data.len() as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok(); // one of several users of a handle has gone
    }

    fn release(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let mut shown = self.lock();
        if let Ok(file) = shown.ino(node) {
            let _ = shown.operate(Operation::Close { file }, &[]); // nobody hears of an error
        }
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, data: bool, reply: ReplyEmpty) {
        let syncs = if data { Syncs::Data } else { Syncs::Whole };
        answer!(reply, self.sync_node(node, syncs), |()| reply.ok());
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // A folder's metadata that fdatasync(2) may leave out is needed to read it.
        answer!(reply, self.sync_node(node, Syncs::Whole), |()| reply.ok());
    }

    fn opendir(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut shown = self.lock();
        let listing = shown.ino(node).map(|folder| shown.list(folder));
        answer!(reply, listing, |listing| {
            reply.opened(FileHandle(listing), FopenFlags::empty());
        });
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        listing: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut shown = self.lock();
        match shown.ino(node) {
            Ok(folder) if offset == 0 => shown.list_again(listing.0, folder),
            Ok(_) => {}
            Err(error) => return reply.error(Errno::from(error)),
        }
        for (at, name) in (1..).zip([".", ".."]).skip(offset.min(2) as usize) {
            if reply.add(node, at, fuser::FileType::Directory, name) {
                return reply.ok();
            }
        }
        let first = offset.saturating_sub(2);
        let entries = shown.listed(listing.0, first as usize);
        for (at, (ino, kind, name)) in (first + 3..).zip(entries) {
            if reply.add(ino, at, kind, &**name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        listing: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.lock().end_listing(listing.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let (blocks, free) = self.lock().room();
        let size = PAGE_BYTES as u32;
        reply.statfs(blocks, free, free, 1 << 20, 1 << 20, size, NAME_MOST, size);
    }

    fn fallocate(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        answer!(reply, self.allocate(node, offset, length, mode), |()| reply.ok());
    }

    fn setxattr(
        &self,
        _: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        answer!(reply, self.set_xattr(node, name, value, flags), |()| reply.ok());
    }

    fn getxattr(&self, _: &Request, node: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer!(reply, self.xattr(node, name), |value| filled(reply, &value, size));
    }

    fn listxattr(&self, _: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        answer!(reply, self.xattrs(node), |names| filled(reply, &names, size));
    }

    fn removexattr(&self, _: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove_xattr(node, name), |()| reply.ok());
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn lseek(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let shown = self.lock();
        let found = match (u64::try_from(offset), whence) {
            (Ok(offset), nix::libc::SEEK_DATA | nix::libc::SEEK_HOLE) => {
                let is_data = whence == nix::libc::SEEK_DATA;
                shown.ino(node).and_then(|file| shown.tree().seek(file, offset, is_data))
            }
            _ => Err(nix::errno::Errno::EINVAL.into()),
        };
        answer!(reply, found, |at| reply.offset(at as i64));
    }

    // Copies within the kernel become reads and writes.
    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }
}

/// Answers with the bytes, or with how many they are if no buffer was given.
fn filled(reply: ReplyXattr, bytes: &[u8], size: u32) {
    match (size as usize, bytes.len()) {
        (0, length) => reply.size(length as u32),
        (size, length) if size < length => reply.error(Errno::ERANGE),
        _ => reply.data(bytes),
    }
}

/// Answers with what has a name in `folder` now.
fn entered(reply: ReplyEntry, folder: INodeNo, attributes: &fuser::FileAttr) {
    let (keep, name) = (Shown::kept(attributes.ino), Shown::kept(folder));
    reply.entry_with_ttls(&keep, &name, attributes, Generation(0));
}

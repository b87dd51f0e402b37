//! Changes made by calls on a served folder, by the kernel's node numbers.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;

use fuser::{INodeNo, OpenFlags, RenameFlags, Request};
use leyden_device::FaultKind;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag};
use nix::libc;

use super::atom::Ino;
use super::history::Syncs;
use super::operation::{Operation, Owner};
use super::served::{Served, utf8};
use super::step::Kind;
use super::tree::Renaming;

/// The bit of a folder whose group is that of what is made in it.
const SET_GROUP: u16 = 0o2000;
/// Permissions, and no kind of file.
pub(super) const PERMISSIONS: u32 = 0o7777;

impl Served {
    /// Makes something, and says who it belongs to.
    pub(super) fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        operation: impl FnOnce(Ino, String) -> Operation,
    ) -> io::Result<fuser::FileAttr> {
        let mut shown = self.lock();
        let folder = shown.ino(parent)?;
        let made = shown.operate(operation(folder, utf8(name)?.to_owned()), &[])?;
        let ino = made.expect("it makes something");
        let mut owner =
            Owner { mode: (mode & PERMISSIONS) as u16, uid: request.uid(), gid: request.gid() };
        let of_folder = shown.owner(folder);
        if of_folder.mode & SET_GROUP != 0 {
            // New entries of such a folder get its group, and new folders the flag as well (inode(7)).
            owner.gid = of_folder.gid;
            if shown.tree().kind(ino) == Kind::Folder {
                owner.mode |= SET_GROUP;
            }
        }
        shown.set_owner(ino, owner);
        Ok(shown.attributes(ino))
    }

    /// Makes a file or a folder.
    pub(super) fn create_node(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        kind: Kind,
    ) -> io::Result<fuser::FileAttr> {
        self.make(request, parent, name, mode, |folder, name| Operation::Create {
            folder,
            name,
            kind,
        })
    }

    pub(super) fn remove(&self, parent: INodeNo, name: &OsStr, kind: Kind) -> io::Result<()> {
        let mut shown = self.lock();
        let folder = shown.ino(parent)?;
        let name = utf8(name)?.to_owned();
        shown.operate(Operation::Remove { folder, name, kind }, &[]).map(drop)
    }

    pub(super) fn sync_node(&self, node: INodeNo, syncs: fn(Ino) -> Syncs) -> io::Result<()> {
        let mut shown = self.lock();
        let ino = shown.ino(node)?;
        shown.sync(syncs(ino))
    }

    /// The value of an extended attribute.
    pub(super) fn xattr(&self, node: INodeNo, name: &OsStr) -> io::Result<Arc<[u8]>> {
        let shown = self.lock();
        shown.tree().xattr(shown.ino(node)?, utf8(name)?)
    }

    /// The names of all extended attributes, each with a zero behind it.
    pub(super) fn xattrs(&self, node: INodeNo) -> io::Result<Vec<u8>> {
        let shown = self.lock();
        let names = shown.tree().xattrs(shown.ino(node)?);
        Ok(names.iter().flat_map(|name| name.bytes().chain([0])).collect())
    }

    pub(super) fn set_xattr(
        &self,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> io::Result<()> {
        let mut shown = self.lock();
        let (of, name) = (shown.ino(node)?, utf8(name)?.to_owned());
        let is_there = match shown.tree().xattr(of, &name) {
            Err(error) if error.raw_os_error() != Some(libc::ENODATA) => return Err(error),
            found => found.is_ok(),
        };
        match flags {
            libc::XATTR_CREATE if is_there => Err(Errno::EEXIST.into()),
            libc::XATTR_REPLACE if !is_there => Err(Errno::ENODATA.into()),
            _ => shown.operate(Operation::SetXattr { of, name }, value).map(drop),
        }
    }

    pub(super) fn remove_xattr(&self, node: INodeNo, name: &OsStr) -> io::Result<()> {
        let mut shown = self.lock();
        let (of, name) = (shown.ino(node)?, utf8(name)?.to_owned());
        shown.operate(Operation::RemoveXattr { of, name }, &[]).map(drop)
    }

    pub(super) fn write_node(
        &self,
        node: INodeNo,
        offset: u64,
        data: &[u8],
        flags: OpenFlags,
    ) -> io::Result<()> {
        let mut shown = self.lock();
        let file = shown.ino(node)?;
        shown.begin(FaultKind::Write)?;
        shown.operate(Operation::Write { file, offset }, data)?;
        // O_SYNC has the bit of O_DSYNC, too (open(2)).
        let flags = OFlag::from_bits_truncate(flags.0);
        if flags.contains(OFlag::O_SYNC) {
            shown.sync(Syncs::Whole(file))?;
        } else if flags.contains(OFlag::O_DSYNC) {
            shown.sync(Syncs::Data(file))?;
        }
        Ok(())
    }

    pub(super) fn allocate(
        &self,
        node: INodeNo,
        offset: u64,
        bytes: u64,
        mode: i32,
    ) -> io::Result<()> {
        let mut shown = self.lock();
        let file = shown.ino(node)?;
        let mode = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
        let moves = FallocateFlags::FALLOC_FL_COLLAPSE_RANGE
            | FallocateFlags::FALLOC_FL_INSERT_RANGE
            | FallocateFlags::FALLOC_FL_UNSHARE_RANGE;
        if mode.intersects(moves) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let zeroes = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_ZERO_RANGE;
        if mode.intersects(zeroes) {
            shown.operate(Operation::Zero { file, offset, bytes }, &[])?;
        }
        let end = offset.checked_add(bytes).ok_or(Errno::EFBIG)?;
        let keeps_size = mode.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
        if !keeps_size && end > shown.tree().length(file) {
            shown.operate(Operation::SetLength { file, bytes: end }, &[])?;
        }
        Ok(())
    }

    pub(super) fn rename_node(
        &self,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> io::Result<()> {
        let mut shown = self.lock();
        let how = match flags {
            flags if flags.is_empty() => Renaming::Replace,
            RenameFlags::RENAME_NOREPLACE => Renaming::New,
            RenameFlags::RENAME_EXCHANGE => Renaming::Exchange,
            _ => return Err(Errno::EINVAL.into()),
        };
        let from = (shown.ino(from.0)?, utf8(from.1)?.to_owned());
        let to = (shown.ino(to.0)?, utf8(to.1)?.to_owned());
        shown.operate(Operation::Rename { from, to, how }, &[]).map(drop)
    }
}

#[cfg(test)]
mod tests;

//! Mounts of the machine that this process would keep alive: they are given up.
//!
//! A new mount namespace begins with a copy of every mount. Where the machine's mounts propagate, what is unmounted outside
//! is unmounted here. Where they do not, as in most containers, a copy keeps the file system and its device in use after
//! everybody else has unmounted it, and what was not written out is lost with the device.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};

/// Linux: the major number of loop devices (Documentation/admin-guide/devices.txt).
const LOOP_MAJOR: &str = "7";

/// A line of proc_pid_mountinfo(5).
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    id: u32,
    parent: u32,
    major: String,
    folder: PathBuf,
    /// Mounts and unmounts below it come from outside.
    is_slave: bool,
    fs: String,
}

/// Unmounts, in this namespace, file systems on loop devices and FUSE mounts that unmounting outside would not reach. Those
/// that hold one of `needed` stay.
pub(crate) fn give_up(needed: &[&Path]) {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts: Vec<Mount> = text.lines().filter_map(mount).collect();
    for folder in pinned(&mounts, needed) {
        let _ = umount2(folder, MntFlags::MNT_DETACH); // locked ones, of another user, stay
    }
}

/// The last mounted first.
fn pinned<'a>(mounts: &'a [Mount], needed: &[&Path]) -> Vec<&'a Path> {
    let holder = |path: &&Path| {
        let holds = |mount: &&Mount| path.starts_with(&mount.folder);
        // Of two at one place, the later hides the earlier.
        mounts
            .iter()
            .filter(holds)
            .max_by_key(|mount| mount.folder.as_os_str().len())
            .map(|it| it.id)
    };
    let kept: Vec<u32> = needed.iter().filter_map(holder).collect();
    let propagates =
        |mount: &Mount| mounts.iter().any(|parent| parent.id == mount.parent && parent.is_slave);
    let is_pinned = |mount: &&Mount| {
        (mount.major == LOOP_MAJOR || mount.fs.starts_with("fuse"))
            && !propagates(mount)
            && !kept.contains(&mount.id)
    };
    mounts.iter().filter(is_pinned).rev().map(|mount| mount.folder.as_path()).collect()
}

/// `36 35 98:0 /subtree /folder options optional... - type source options`
fn mount(line: &str) -> Option<Mount> {
    let (of_mount, of_fs) = line.split_once(" - ")?;
    let mut fields = of_mount.split(' ');
    let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let (major, _) = fields.next()?.split_once(':')?;
    let folder = unescaped(fields.nth(1)?);
    let is_slave = fields.skip(1).any(|field| field.starts_with("master:"));
    let fs = of_fs.split(' ').next()?.to_owned();
    Some(Mount { id, parent, major: major.to_owned(), folder, is_slave, fs })
}

/// Blanks, tabs, newlines and backslashes stand there as three octal digits.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = (first == b'\\').then(|| after.get(..3)).flatten();
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
20 1 254:0 / / rw,noatime - ext4 /dev/vda rw
21 20 0:5 / /proc rw - proc proc rw
30 20 7:3 / /mnt/e rw,relatime - ext4 /dev/loop3 rw
31 20 0:50 / /mnt/with\\040blank rw - fuse.sshfs host: rw
32 20 7:4 / /build rw - ext4 /dev/loop4 rw
33 20 254:16 / /shared rw master:7 - ext4 /dev/vdb rw
34 33 7:5 / /shared/inner rw shared:9 master:8 - ext4 /dev/loop5 rw
35 20 7:6 / /above rw master:9 - ext4 /dev/loop6 rw";

    #[test]
    fn mounts_that_cannot_be_unmounted_from_outside_are_given_up() {
        let mounts: Vec<Mount> = TABLE.lines().filter_map(mount).collect();
        assert_eq!(mounts.len(), 8);
        let given_up = pinned(&mounts, &[Path::new("/build/crash"), Path::new("/home")]);
        // The parent decides whether unmounting reaches a mount, not the mount itself.
        let want = ["/above", "/mnt/with blank", "/mnt/e"].map(Path::new);
        assert_eq!(given_up, want);
        assert!(!pinned(&mounts, &[Path::new("/mnt/e/x")]).contains(&Path::new("/mnt/e")));
    }
}

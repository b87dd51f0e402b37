//! Extended attributes of files on any file system.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Bytes of a value, and of a list of names, at most (limits.h, `XATTR_SIZE_MAX` and `XATTR_LIST_MAX`).
const BYTES_MOST: usize = 65_536;

/// The extended attributes of a file, folder or symbolic link; none where its file system has none.
pub(crate) fn xattrs_of(path: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut names = vec![0_u8; BYTES_MOST];
    let length = match rustix::fs::llistxattr(path, &mut names) {
        Err(Errno::NOTSUP) => 0,
        listed => listed?,
    };
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    let value = |name: &str| {
        let mut value = vec![0_u8; BYTES_MOST];
        let length = rustix::fs::lgetxattr(path, name, &mut value)?;
        value.truncate(length);
        Ok((name.to_owned(), value))
    };
    names.split_terminator('\0').map(value).collect()
}

/// The first file below `from` with an extended attribute that its copy below `to` lacks; both as they are named.
pub(crate) fn first_lost(from: &Path, to: &Path) -> io::Result<Option<(PathBuf, String)>> {
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let (here, copies) = (from.join(&path), xattrs_of(&to.join(&path))?);
        let lost =
            xattrs_of(&here)?.into_iter().find(|(name, value)| copies.get(name) != Some(value));
        if let Some((name, _)) = lost {
            return Ok(Some((path, name)));
        }
        if here.symlink_metadata()?.is_dir() {
            for entry in fs::read_dir(here)? {
                left.push(path.join(entry?.file_name()));
            }
        }
    }
    Ok(None)
}

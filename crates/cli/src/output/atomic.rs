//! Result files that appear whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use crate::failure::Failure;

/// Writes `content` to `path`: to a temporary file beside it, made durable, then renamed over it.
/// What was there before stays until then. Devices and pipes are written to directly.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    try_write(path, content)
        .with_context(|| {
            format!(
                "cannot write {}\n  help: choose another place, or make room; no partial file was left",
                path.display()
            )
        })
        .map_err(Failure::io)
}

fn try_write(path: &Path, content: &[u8]) -> io::Result<()> {
    // Through links: a rename would replace the link itself, `/dev/stdout` for one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut file = File::options().write(true).open(path)?;
        return file.write_all(content);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".leyden-")
        .permissions(Permissions::from_mode(0o666)) // less the umask, as for any new file
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

/// Finds out before a long run that its result could not be written after it.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    try_check(path)
        .with_context(|| {
            format!(
                "cannot write {}\n  help: choose a folder that is there and writable",
                path.display()
            )
        })
        .map_err(Failure::io)
}

fn try_check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tempfile::tempfile_in(folder).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn full_devices_and_missing_folders_are_failures() {
        assert!(write(Path::new("/dev/full"), b"x").is_err());
        assert!(write(Path::new("/no/such/folder/a"), b"x").is_err());
        assert!(check_writable(Path::new("/no/such/folder/a")).is_err());
        assert!(check_writable(Path::new("/tmp")).is_err());
    }
}

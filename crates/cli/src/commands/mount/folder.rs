//! The folder in which a mounted drive is a file for its loop device: in a folder of one's own, which nobody else can
//! plant anything in.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::said;

/// A folder that is its owner's only.
const OWNERS: u32 = 0o700;

/// The folder of one image. Its name follows from the image, so that what a killed process has left there is found.
pub(super) struct MountFolder(PathBuf);

impl MountFolder {
    pub(super) fn new(image: &Path) -> anyhow::Result<Self> {
        let base = base();
        own(&base).with_context(|| base.display().to_string())?;
        let file = image.metadata().with_context(|| image.display().to_string())?;
        let room = Self(base.join(format!("mount-{:x}-{:x}", file.dev(), file.ino())));
        let disk = room.0.join("disk");
        let stale = said("losetup", &["-n", "-l", "-O", "NAME", "-j", &disk.to_string_lossy()]);
        for device in stale.unwrap_or_default().lines() {
            let _ = said("losetup", &["-d", device.trim()]); // or it goes with its last user
        }
        match std::fs::DirBuilder::new().mode(OWNERS).create(&room.0) {
            // A mount that is dead cannot be looked at: its folder is ours, as only we can make one there.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(error).with_context(|| room.0.display().to_string())
            }
            _ => Ok(room),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for MountFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0); // what is still mounted there stays
    }
}

/// Where rooms are.
fn base() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if user != 0 => Path::new(&folder).join("leyden"),
        _ => format!("/run/leyden-{user}").into(),
    }
}

/// Makes `folder`, or sees that it is one of ours, that nobody else can write to.
fn own(folder: &Path) -> anyhow::Result<()> {
    match std::fs::DirBuilder::new().mode(OWNERS).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let is = folder.symlink_metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if !is.is_dir() || is.uid() != user || is.mode() & 0o077 != 0 {
        let error = io::Error::from(ErrorKind::PermissionDenied);
        bail!("{error}: it must be a folder of user {user}, with mode 0700; remove it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_of_others_or_a_link_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        own(&at("new")).unwrap();
        own(&at("new")).unwrap();
        std::os::unix::fs::symlink(at("new"), at("link")).unwrap();
        assert!(own(&at("link")).is_err());
        std::fs::create_dir(at("open")).unwrap();
        std::fs::set_permissions(at("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(own(&at("open")).is_err());
        std::fs::write(at("file"), "").unwrap();
        assert!(own(&at("file")).is_err());
    }
}

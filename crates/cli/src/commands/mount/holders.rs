//! Holders of a block device: processes whose mount namespaces have it mounted, and those that have
//! files of it open.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Mode, OFlags, major, minor};

/// So many are named.
const SHOWN: usize = 5;

/// A block device.
pub(super) struct Device {
    path: PathBuf,
    /// As /proc/PID/mountinfo has it.
    number: String,
    id: u64,
}

impl Device {
    pub(super) fn new(path: &str) -> anyhow::Result<Self> {
        let id = Path::new(path).metadata().with_context(|| path.to_owned())?.rdev();
        Ok(Self { path: path.into(), number: format!("{}:{}", major(id), minor(id)), id })
    }

    /// True if no file system on it is mounted anywhere: that would have it for itself.
    pub(super) fn is_free(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        !matches!(rustix::fs::open(&self.path, flags, Mode::empty()), Err(rustix::io::Errno::BUSY))
    }

    /// Those that hold it, as a list for people.
    pub(super) fn holders(&self) -> String {
        let mut found = Vec::new();
        let mut namespaces = BTreeMap::new();
        for (process, folder) in processes() {
            let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
            let who = format!("process {process} ({})", name.trim());
            let namespace = std::fs::read_link(folder.join("ns/mnt")).unwrap_or_default();
            let is_mounted = *namespaces.entry(namespace).or_insert_with(|| {
                let mounts = std::fs::read_to_string(folder.join("mountinfo")).unwrap_or_default();
                mounts.lines().any(|line| line.split(' ').nth(2) == Some(self.number.as_str()))
            });
            if is_mounted {
                found.push(format!("{who} has it mounted in its mount namespace"));
            } else if self.is_used_by(&folder) {
                found.push(format!("{who} has files of it open"));
            }
        }
        match found.len() {
            0 => "by no process that is visible from here".to_owned(),
            count if count > SHOWN => {
                format!("{}; and {} more", found[..SHOWN].join("; "), count - SHOWN)
            }
            _ => found.join("; "),
        }
    }

    /// True if a process has its working folder, its root or a file on it.
    fn is_used_by(&self, process: &Path) -> bool {
        let on = |path: PathBuf| path.metadata().is_ok_and(|metadata| metadata.dev() == self.id);
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        on(process.join("cwd")) || on(process.join("root")) || open.map(|it| it.path()).any(on)
    }
}

fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_with_open_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("file")).unwrap();
        let id = file.metadata().unwrap().dev();
        let device = Device { path: "/nowhere".into(), number: "0:0".to_owned(), id };
        assert!(device.is_used_by(Path::new("/proc/self")));
        let other = Device { id: id + 1_000_000, ..device };
        assert!(!other.is_used_by(Path::new("/proc/self")));
        assert!(processes().any(|(process, _)| process == std::process::id()));
    }
}

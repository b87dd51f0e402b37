//! States in a file, out of which e2fsprogs take the files: no root, no mount, no loop device.
//!
//! Recovery in the kernel beyond replay of the journal, like the end of truncates in progress
//! (ext4's list of orphans), is not done.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::attach::Attachment;
use crate::error::{CrashError, output};
use crate::history::History;
use crate::locate::{self, Place};
use crate::processes::Processes;
use crate::session::{Plan, SessionPaths};
use crate::state::{Image, State};
use crate::test_bed::{Entered, TestBed};
use crate::timeline::Timeline;

/// e2fsck(8): from this exit code on, something was left uncorrected, or it failed.
const UNCORRECTED: i32 = 4;

/// The drive as a file.
#[derive(Debug)]
pub(crate) struct InFile {
    plan: Plan,
    room: SessionPaths,
    timeline: Arc<Timeline>,
    path: PathBuf,
}

impl InFile {
    pub(crate) fn new(
        plan: &Plan,
        room: &SessionPaths,
        timeline: Arc<Timeline>,
    ) -> Result<Self, CrashError> {
        if plan.has_fs() && !matches!(plan.fs.as_str(), "ext2" | "ext3" | "ext4") {
            let problem = format!(
                "without root there are ext2, ext3, ext4 and no file system, and the run was recorded on {}\n  \
                 help: use sudo",
                plan.fs
            );
            return Err(CrashError::Lacking(problem));
        }
        let path = room.view().join("disk");
        File::create(&path).map_err(CrashError::io(&path))?;
        Ok(Self { plan: plan.clone(), room: room.clone(), timeline, path })
    }
}

impl TestBed for InFile {
    fn history(&self) -> &dyn History {
        &*self.timeline
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(&self.timeline)
    }

    fn device(&self) -> &Path {
        &self.path
    }

    fn attachment(&self) -> Option<&Attachment> {
        None
    }

    /// Writes all of it: the changes of earlier programs are not known.
    fn show(&mut self, state: &State) -> Result<(), CrashError> {
        let io = |error| CrashError::Io(self.path.clone(), error);
        let file = File::options().write(true).truncate(true).open(&self.path).map_err(io)?;
        file.set_len(self.plan.size_bytes).map_err(io)?;
        let image = Image::new(&self.timeline, state);
        let atom_bytes = u64::from(self.timeline.atom_bytes());
        let (mut begin, mut run) = (0, Vec::new());
        for atom in 0..=self.timeline.atoms() {
            let bytes = (atom < self.timeline.atoms()).then(|| image.atom(atom));
            match bytes.filter(|bytes| bytes.iter().any(|&byte| byte != 0)) {
                Some(bytes) => {
                    if run.is_empty() {
                        begin = u64::from(atom) * atom_bytes;
                    }
                    run.extend(bytes);
                }
                None if run.is_empty() => {}
                None => {
                    file.write_all_at(&run, begin).map_err(io)?;
                    run.clear();
                }
            }
        }
        Ok(())
    }

    fn enter(&self, _: Processes) -> Result<Result<Entered, String>, CrashError> {
        if !self.plan.has_fs() {
            return Ok(Ok(Entered::Device));
        }
        let extracted = extract(&self.path, &self.room.mnt())?;
        Ok(extracted.map(|()| Entered::Extracted(self.room.mnt())))
    }

    fn take_reads(&mut self) -> Option<Vec<u32>> {
        None
    }

    fn locate(&self, atoms: &[u32], atom_bytes: u64) -> Vec<Place> {
        locate::in_image(atoms, atom_bytes, &self.plan.fs, &self.path)
    }
}

/// Writes the files of the ext file system in `image` into `folder`; what is wrong with it, if it has none to take out.
fn extract(image: &Path, folder: &Path) -> Result<Result<(), String>, CrashError> {
    // `-f` is what keeps the files in the folder: it repairs names that hold a slash and entries of one name, and debugfs
    // follows both out of it (`../../x`; a link, and a file of its name that is written through it).
    let played = output(Command::new("e2fsck").args(["-fy", "-E", "journal_only"]).arg(image))?;
    if played.status.code().is_none_or(|code| code >= UNCORRECTED) {
        let said = [&played.stdout[..], &played.stderr[..]].concat();
        return Ok(Err(String::from_utf8_lossy(&said).trim().to_owned()));
    }
    // In that folder: debugfs takes no names with spaces.
    let mut dump = Command::new("debugfs");
    dump.args(["-R", "rdump / ."]).arg(image).current_dir(folder);
    let dumped = output(&mut dump)?;
    // Owners that this user may not give are complained of, too; only a file system that is none is not opened.
    let said = String::from_utf8_lossy(&dumped.stderr).into_owned();
    if said.contains("Filesystem not open") {
        return Ok(Err(said.trim().to_owned()));
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that no kernel writes: a name that leads out of the folder, a link that does, and a second entry of the
    /// link's name.
    #[test]
    fn no_name_in_an_image_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (image, victim) = (at("image"), at("victim"));
        std::fs::write(&victim, "as it was").unwrap();
        std::fs::create_dir(at("files")).unwrap();
        std::fs::write(at("files/climbs-out"), "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, at("files/the-link-1")).unwrap();
        std::fs::write(at("files/the-link-2"), "theirs").unwrap();
        let mut mkfs = Command::new("mke2fs");
        mkfs.args(["-q", "-F", "-t", "ext4", "-O", "^metadata_csum", "-d"]).arg(at("files"));
        let made = mkfs.arg(&image).arg("16M").status();
        if !made.is_ok_and(|status| status.success()) {
            return; // no e2fsprogs here: nothing is extracted, then
        }
        let mut bytes = std::fs::read(&image).unwrap();
        let mut rename = |from: &[u8], to: &[u8]| {
            let places: Vec<usize> = (0..bytes.len() - from.len())
                .step_by(4) // entries are aligned
                .filter(|&at| &bytes[at..][..from.len()] == from)
                .collect();
            assert_eq!(places.len(), 1, "{}", String::from_utf8_lossy(from));
            bytes[places[0]..][..to.len()].copy_from_slice(to);
        };
        rename(b"climbs-out", b"../../../x");
        rename(b"the-link-2", b"the-link-1");
        std::fs::write(&image, bytes).unwrap();
        std::fs::create_dir_all(at("a/b/c")).unwrap();
        extract(&image, &at("a/b/c")).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "as it was");
        let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        names.retain(|entry| {
            !["a", "files", "image", "victim"].map(Into::into).contains(&entry.file_name())
        });
        assert!(names.is_empty(), "{names:?}");
        assert!(at("a/b/c/lost+found").exists(), "nothing was extracted");
    }
}

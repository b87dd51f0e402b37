//! The devices and folders on which a state is set up, and the software's access to its files.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attach::{Attachment, Mounted};
use crate::error::CrashError;
use crate::history::History;
use crate::locate::Place;
use crate::processes::Processes;
use crate::rights::may_mount;
use crate::session::Plan;
use crate::state::State;
use crate::timeline::Timeline;
use crate::view::Written;

/// How the software gets to its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The kernel mounts a loop device: takes root.
    Mounts,
    /// Programs take them out of an image: takes no root, and ext2, ext3, ext4 or no file system.
    Extracts,
    /// A folder in memory is served: takes no root. For recordings of files.
    Folder,
}

impl Access {
    /// How the software of a recorded run gets to its files. Without root other programs than the kernel reach those of a drive.
    pub fn of(plan: &Plan, is_extracted: bool) -> Self {
        match plan.files {
            Some(_) => Self::Folder,
            None => Self::of_drive(is_extracted),
        }
    }

    /// The same, of a drive.
    pub fn of_drive(is_extracted: bool) -> Self {
        if is_extracted || !may_mount() { Self::Extracts } else { Self::Mounts }
    }
}

/// A drive whose state can be set, and whose files can be reached.
pub(crate) trait TestBed: fmt::Debug {
    /// The run whose states are set.
    fn history(&self) -> &dyn History;

    /// The same, of a drive.
    fn timeline(&self) -> Option<&Timeline> {
        None
    }

    /// The drive: a device, or a file; of a folder that.
    fn device(&self) -> &Path;

    /// The loop device, which outlives this process when it is killed; nothing for a file.
    fn attachment(&self) -> Option<&Attachment>;

    /// Sets the state; what was written to the last one is forgotten.
    fn show(&mut self, state: &State) -> Result<(), CrashError>;

    /// Recovers the file system and makes its files reachable; or says why that does not go.
    fn enter(&self, processes: Processes) -> Result<Result<Entered, String>, CrashError>;

    /// The atoms of the state that were read, in the order of their first reading; `None` if nobody knows.
    fn take_reads(&mut self) -> Option<Vec<u32>>;

    /// From now on what is written to the state is noted.
    fn note_writes(&mut self) {}

    /// Writes since the last call, in order; `None` if they are not known.
    fn take_writes(&mut self) -> Option<Vec<Written>> {
        None
    }

    /// The files in these atoms; the files have been entered.
    fn locate(&self, atoms: &[u32], atom_bytes: u64) -> Vec<Place>;
}

/// Files that can be reached.
#[derive(Debug)]
pub(crate) enum Entered {
    /// There is no file system.
    Device,
    /// They are there always.
    Served,
    /// They are mounted.
    Mounted(Mounted),
    /// They were taken out, to this folder.
    Extracted(PathBuf),
}

impl Entered {
    /// Takes them away.
    pub(crate) fn end(self, processes: Processes) -> Result<(), CrashError> {
        match self {
            Self::Device | Self::Served => Ok(()),
            Self::Mounted(mounted) => mounted.end(processes),
            Self::Extracted(folder) => {
                let entries = std::fs::read_dir(&folder).map_err(CrashError::io(&folder))?;
                for entry in entries.flatten() {
                    let path = entry.path();
                    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    let removed = if is_folder {
                        std::fs::remove_dir_all(&path)
                    } else {
                        std::fs::remove_file(&path)
                    };
                    removed.map_err(CrashError::io(path))?;
                }
                Ok(())
            }
        }
    }
}

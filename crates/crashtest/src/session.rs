//! The folder of a crash test, and what was agreed on when it was recorded.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use leyden_device::Lba;
use leyden_files::NewFile;
use leyden_image::ImageConfig;
use leyden_image::recording::Recording;
use leyden_serve::FaultRule;
use serde::{Deserialize, Serialize};

use crate::error::CrashError;
use crate::files::{FileHistory, Persistence, RecordedFiles, read_recording};
use crate::recorded;
use crate::timeline::Timeline;

/// No file system: the software works on the device.
pub const NO_FS: &str = "none";

/// How a run is recorded and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The file system, as mount(8) calls it, or [`NO_FS`].
    pub fs: String,
    /// More arguments for mkfs.
    pub mkfs: Vec<String>,
    /// Options of the mount.
    pub mount_options: Option<String>,
    /// Bytes of the device.
    pub size_bytes: u64,
    /// Bytes of a sector of the device.
    pub sector_bytes: u32,
    /// A shell command that prepares the file system, before the recording.
    pub setup: Option<String>,
    /// A shell command: what is recorded.
    pub work: String,
    /// Lines of the work's standard output that begin so are acknowledgements, too.
    pub ack_prefix: Option<String>,
    /// A shell command that says whether a state is right.
    pub check: String,
    /// The check stays, and is given a line for each state.
    pub is_check_server: bool,
    /// The file system is checked, too, after the software has had it.
    pub fsck: bool,
    /// After so many milliseconds a check hangs.
    pub timeout_ms: u64,
    /// Where the commands run.
    pub cwd: PathBuf,
    /// Commands of the work that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultRule>,
    /// Calls on files are recorded, and no drive: what the files promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Persistence>,
    /// Drives of the files, each a folder with its number.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub drives: u32,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_one(drives: &u32) -> bool {
    *drives == 1
}

impl Plan {
    /// True if there is a file system.
    pub fn has_fs(&self) -> bool {
        self.fs != NO_FS
    }

    /// True if there is a folder for the software.
    pub(crate) fn has_folder(&self) -> bool {
        self.has_fs() || self.files.is_some()
    }

    /// Where the file system's superblock lies: btrfs has it at 64 KiB, others in their first 4 KiB.
    pub(crate) fn superblock(&self) -> Lba {
        Lba(if self.fs == "btrfs" { 128 } else { 0 })
    }

    /// The options of its mounts. XFS refuses to mount two copies of one file system otherwise.
    pub(crate) fn mount_options(&self) -> Option<String> {
        match (&self.mount_options, self.fs.as_str()) {
            (Some(options), "xfs") => Some(format!("nouuid,{options}")),
            (None, "xfs") => Some("nouuid".to_owned()),
            (options, _) => options.clone(),
        }
    }
}

/// How a run is to be recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordPlan {
    /// The drive.
    pub drive: ImageConfig,
    /// How many times as fast as the wall's time the drive's goes; without, as fast as it can.
    pub speed: Option<f64>,
    /// The device's contents before the run, as a raw file; a new file system without.
    #[serde(default)]
    pub base: Option<PathBuf>,
    /// Everything else.
    pub plan: Plan,
}

/// The folder of a crash test.
#[derive(Clone, Debug)]
pub struct Session {
    folder: PathBuf,
}

impl Session {
    /// A folder, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path) -> Result<Self, CrashError> {
        std::fs::create_dir_all(folder).map_err(CrashError::io(folder))?;
        Self::open(folder)
    }

    /// A folder without a recording, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made, or holds a recording.
    pub fn create_new(folder: &Path) -> Result<Self, CrashError> {
        let session = Self::create(folder)?;
        if session.recording().exists() || session.files_recording().exists() {
            return Err(CrashError::Input(format!(
                "{} holds a recording already\n  help: `leyden crashtest run` runs it again; or choose another folder",
                folder.display()
            )));
        }
        Ok(session)
    }

    /// Lets others read the recording: test data is kept in repositories, and run as another user.
    pub(crate) fn share(&self) -> Result<(), CrashError> {
        let path = self.recording();
        let shared = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, shared).map_err(CrashError::io(path))
    }

    /// A folder that is there.
    ///
    /// # Errors
    /// If it is not.
    pub fn open(folder: &Path) -> Result<Self, CrashError> {
        let folder = folder.canonicalize().map_err(CrashError::io(folder))?;
        let room = folder.join(".room");
        std::fs::create_dir_all(&room).map_err(CrashError::io(&room))?;
        Ok(Self { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
    /// The recording's file.
    pub fn recording(&self) -> PathBuf {
        self.folder.join("recording.leyrec")
    }
    /// Calls on files that were recorded.
    pub fn files_recording(&self) -> PathBuf {
        self.folder.join("recording.files")
    }
    /// The output of the user's scripts while they were recorded.
    pub fn work_log(&self) -> PathBuf {
        self.folder.join("work.log")
    }
    /// Where seed files of findings are kept.
    pub fn findings(&self) -> PathBuf {
        self.folder.join("findings")
    }
    fn plan_file(&self) -> PathBuf {
        self.folder.join("plan.json")
    }
    /// The folder in which each process has a file system in memory of its own.
    pub(crate) fn room(&self) -> SessionPaths {
        SessionPaths(self.folder.join(".room"))
    }
    /// The drive while it is recorded.
    pub(crate) fn drive(&self) -> PathBuf {
        self.folder.join("drive.leyden")
    }

    /// The plan that was agreed on.
    ///
    /// # Errors
    /// If nothing was recorded there, or the file was changed into something else.
    pub fn plan(&self) -> Result<Plan, CrashError> {
        let path = self.plan_file();
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let help = "`leyden crashtest record` records a run";
            CrashError::Input(format!("{}: {error}\n  help: {help}", path.display()))
        })?;
        serde_json::from_str(&text)
            .map_err(|error| CrashError::Input(format!("{}: {error}", path.display())))
    }

    /// Keeps what is agreed on; the folder is this user's from then on.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set_plan(&self, plan: &Plan) -> Result<(), CrashError> {
        self.write("plan.json", &(serde_json::to_string_pretty(plan).expect("plain data") + "\n"))?;
        self.trust()
    }

    /// Writes a file of the folder, whole or not at all; returns where it is.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, CrashError> {
        use std::io::Write as _;
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(CrashError::io(parent))?;
        }
        let mut file = NewFile::create(&path)?;
        file.write_all(text.as_bytes()).map_err(CrashError::io(&path))?;
        file.commit()?;
        Ok(path)
    }

    /// The recording of a drive.
    ///
    /// # Errors
    /// If calls on files were recorded, or there is none, or it is damaged.
    pub fn drive_recording(&self) -> Result<Recording, CrashError> {
        if self.plan()?.files.is_some() {
            let problem = format!(
                "{}: calls on files were recorded, and this takes a drive\n  help: record without --files",
                self.folder.display()
            );
            return Err(CrashError::Input(problem));
        }
        Ok(Recording::open(&self.recording())?)
    }

    /// The recording's timeline, with atoms of `atom_bytes`; of the drive's mapping units without.
    ///
    /// # Errors
    /// If atoms are smaller than the device's sectors, or the recording is none, is damaged, or its drive does something else today.
    pub fn timeline(&self, atom_bytes: Option<u32>) -> Result<Timeline, CrashError> {
        let Plan { size_bytes, sector_bytes, .. } = self.plan()?;
        let recording = self.drive_recording()?;
        let unit_bytes = recording.head().unit_bytes;
        let least = atom_bytes.unwrap_or(unit_bytes);
        check_atoms(least, sector_bytes)?;
        recorded::timeline(&recording, size_bytes, Some(least))
    }
}

/// Checks that a device with sectors of `sector_bytes` may keep or lose `atom_bytes` as a whole, and no less.
///
/// # Errors
/// If it may not.
pub fn check_atoms(atom_bytes: u32, sector_bytes: u32) -> Result<(), CrashError> {
    if atom_bytes >= sector_bytes {
        return Ok(());
    }
    // NVMe: AWUPF (Identify Controller, bytes 528 and 529) is one logical block at the least.
    Err(CrashError::Input(format!(
        "{atom_bytes} bytes are to be kept or lost as a whole, and the device has sectors of {sector_bytes}: no drive tears a \
         sector\n  help: record with --sector {atom_bytes}"
    )))
}

/// Calls on files as they were recorded.
impl Session {
    /// The recorded calls on files; pages are torn into atoms of `atom_bytes`, if that is given.
    ///
    /// # Errors
    /// If pages have no such atoms, or it is a recording of a drive, or cannot be used.
    pub fn files(&self, atom_bytes: Option<u32>) -> Result<FileHistory, CrashError> {
        self.recorded_files(atom_bytes).map(|recorded| recorded.history)
    }

    /// The same, and whose the files are.
    pub(crate) fn recorded_files(
        &self,
        atom_bytes: Option<u32>,
    ) -> Result<RecordedFiles, CrashError> {
        let Some(rules) = self.plan()?.files else {
            return Err(CrashError::Input("this is a recording of a drive".to_owned()));
        };
        let whole = FileHistory::new(rules);
        let history = atom_bytes.map_or(Ok(whole.clone()), |bytes| whole.torn(bytes))?;
        read_recording(&self.files_recording(), history)
    }
}

/// The paths that each process mounts for itself, at the same place.
#[derive(Clone, Debug)]
pub(crate) struct SessionPaths(pub(crate) PathBuf);

impl SessionPaths {
    /// Where the drive is a file.
    pub(crate) fn view(&self) -> PathBuf {
        self.0.join("view")
    }
    /// Where the file system is mounted.
    pub(crate) fn mnt(&self) -> PathBuf {
        self.0.join("mnt")
    }
    /// The acknowledged lines, for checks.
    pub(crate) fn acks(&self) -> PathBuf {
        self.0.join("acks")
    }
    /// The output of a check.
    pub(crate) fn output(&self) -> PathBuf {
        self.0.join("output")
    }
    /// The scratch folder of each tool.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

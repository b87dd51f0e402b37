//! The files that a crash test keeps in its folder, and messages common to several commands.

use leyden_crashtest::{CrashError, FileHistory, History, Session, Summary, Timeline};
use leyden_image::ImageError;

use crate::failure::Failure;

/// The shares of power cuts that lose something, by capacitance.
pub(super) const CURVE: &str = "capacitor.json";
/// All of it to look at.
pub(super) const PAGE: &str = "report.html";

/// Of a check that passes whatever is lost.
pub(super) fn blind(summary: &Summary) -> String {
    format!(
        "the check passes {}: it does not notice lost data\n  help: let the work acknowledge its durable data (a line to \
         $LEYDEN_ACK), and let the check look for it",
        summary.liar()
    )
}

/// Of a check that fails whatever is there.
pub(super) fn fails(summary: &Summary) -> String {
    let end = match summary.files {
        Some(_) => "the files as the work left them",
        None => "the drive as it was unmounted after the work",
    };
    format!(
        "the check fails on {end}, where nothing is lost: no other state was tried\n  help: try the check in the folder \
         where the run was recorded; work.log has the output of the work"
    )
}

/// A recorded run.
#[derive(Debug)]
pub(super) enum Recorded {
    /// Of a drive.
    Drive(Box<Timeline>),
    /// Of calls on files.
    Files(Box<FileHistory>),
}

impl Recorded {
    /// Opens the recording in a folder; with atoms of `atom_bytes`, if they are given.
    pub(super) fn open(session: &Session, atom_bytes: Option<u32>) -> Result<Self, Failure> {
        Ok(match session.plan().map_err(failure)?.files {
            None => Self::Drive(Box::new(session.timeline(atom_bytes).map_err(failure)?)),
            Some(_) => Self::Files(Box::new(session.files(atom_bytes).map_err(failure)?)),
        })
    }

    /// The history that both kinds have.
    pub(super) fn history(&self) -> &dyn History {
        match self {
            Self::Drive(timeline) => &**timeline,
            Self::Files(history) => &**history,
        }
    }
}

/// Of a check whose outcome is another for the same drive.
pub(super) const UNSTEADY: &str = "two states in which the same was read came out differently: the check depends on more \
    than the drive holds\n  help: --try-all tries every state";

/// A capacitance, and what it costs.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Lost {
    pub(super) capacitance_uf: u64,
    pub(super) cuts: usize,
    pub(super) cuts_that_lose: usize,
    pub(super) states: usize,
    /// Cuts after which recovery scanned all of flash.
    #[serde(default)]
    pub(super) scans: usize,
}

/// Of a drive whose capacitors save no data of the host's.
pub(super) const UNPROTECTED: &str = "no capacitor can help here: with device.buffer.region = \"none\" the bank saves the mapping table only, and data \
     acknowledged without a flush is lost with any bank. A smaller bank may even seem to lose less: where it does not \
     save the table, recovery scans all of flash, and finds writes that were never flushed\n  help: record with \
     --set device.buffer.region=full";

/// Writes `value` as the file `name` of the folder.
pub(super) fn write_json(
    session: &Session,
    name: &str,
    value: &impl serde::Serialize,
) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::internal)? + "\n";
    session.write(name, &text).map(drop).map_err(failure)
}

/// The contents of the folder's file `name`; none if there is no such file yet.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(
    session: &Session,
    name: &str,
) -> Result<Option<T>, Failure> {
    let path = session.folder().join(name);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let read = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(anyhow::anyhow!("{}: {error}\n  help: remove it", path.display()))
    })?;
    Ok(Some(read))
}

/// The exit code of a recording that could not be made.
pub(super) fn unrecorded(error: CrashError) -> Failure {
    match error {
        CrashError::Interrupted => Failure::interrupted("nothing was recorded"),
        other => failure(other),
    }
}

/// The exit code of a crash test that could not be made.
pub(super) fn failure(error: CrashError) -> Failure {
    match error {
        CrashError::Interrupted => Failure::interrupted("the recording is kept"),
        CrashError::Io(..)
        | CrashError::Machine(_)
        | CrashError::Write(_)
        | CrashError::Image(ImageError::Io(_)) => Failure::io(error),
        CrashError::Worker(_) => Failure::internal(error),
        _ => Failure::usage(error),
    }
}

//! What a crash test keeps in its folder, and what is said where several commands say it.

use leyden_crashtest::{CrashError, Session};

use crate::failure::Failure;

/// The results of a run.
pub(super) const SUMMARY: &str = "summary.json";
/// The shares of power cuts that lose something, by capacitance.
pub(super) const CURVE: &str = "capacitor.json";
/// All of it to look at.
pub(super) const PAGE: &str = "report.html";

/// Of a check that passes whatever is lost.
pub(super) const BLIND: &str =
    "the check passed on a drive that ignored all flushes: it does not see what a power cut takes";

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
}

/// Writes `value` as the file `name` of the folder.
pub(super) fn write_json(
    session: &Session,
    name: &str,
    value: &impl serde::Serialize,
) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::failed)? + "\n";
    session.write(name, &text).map(drop).map_err(failure)
}

/// What `name` of the folder holds; nothing if it is not there yet.
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

/// The exit code of a crash test that could not be made.
pub(super) fn failure(error: CrashError) -> Failure {
    match error {
        CrashError::Interrupted => Failure::interrupted("what was recorded is kept"),
        CrashError::Io(..) | CrashError::Write(_) => Failure::io(error),
        CrashError::Worker(_) => Failure::failed(error),
        _ => Failure::usage(error),
    }
}

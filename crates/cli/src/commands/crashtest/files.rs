//! Crash tests at the level of files: what differs from those of a drive.

use anyhow::anyhow;
use leyden_crashtest::{
    Explore, FileHistory, Finding, Model, Place, Session, State, Summary, Verdict, explore_history,
    make_small,
};

use super::kept::failure;
use super::watched::Watched;
use super::{EXPLAINED_MOST, SHRINK_TRIES, pool, progress_on};
use crate::args::crashtest::{GroundArgs, ModelArg, RunCommon, RunOptions};
use crate::commands::Cancel;
use crate::failure::Failure;
use crate::output::progress::Progress;

fn wants(what: &str) -> Result<(), Failure> {
    Err(Failure::usage(anyhow!(
        "{what} takes a drive, and calls on files are recorded\n  help: leave it out, or record without --files"
    )))
}

/// Refuses a way to files that only a drive has.
pub(super) fn refuse_ground(ground: GroundArgs) -> Result<(), Failure> {
    if ground.extract { wants("--extract") } else { Ok(()) }
}

/// Refuses what only a drive has.
pub(super) fn refuse(common: &RunCommon, options: Option<&RunOptions>) -> Result<(), Failure> {
    refuse_ground(common.ground)?;
    if let Some(atom_bytes) = common.atom {
        FileHistory::check_pieces(atom_bytes).map_err(failure)?;
    }
    let Some(options) = options else { return Ok(()) };
    if options.again > 0 {
        return wants("--again");
    }
    if options.try_all {
        return wants("--try-all");
    }
    if options.capacitance_uf.is_some() {
        return wants("--capacitance-uf");
    }
    if options.model.contains(&ModelArg::Realistic) {
        return wants("--model realistic");
    }
    Ok(())
}

/// Tries states of a recorded folder, and makes the first findings small.
pub(super) fn explored(
    session: &Session,
    history: &FileHistory,
    options: &RunOptions,
    explore: &Explore,
    cancel: &Cancel,
) -> Result<Summary, Failure> {
    refuse(&options.common, Some(options))?;
    let mut watched = Watched::start(session, options)?;
    let mut pool = pool(session, &options.common, cancel)?;
    let bar = Progress::new("states");
    let mut progress = progress_on(&bar, &mut watched);
    let summary = explore_history(&mut pool, history, explore, &mut progress);
    let mut summary = summary.map_err(failure)?;
    let lawful = summary.models.iter_mut().filter(|model| model.model == Model::Adversarial);
    let findings = lawful.flat_map(|model| &mut model.findings);
    let clear = findings.filter(|finding| !finding.is_flaky && finding.verdict != Verdict::Hung);
    let clear: Vec<&mut Finding> = clear.take(EXPLAINED_MOST).collect();
    if clear.is_empty() {
        return Ok(summary);
    }
    bar.phase("why");
    make_small(&mut pool, history, clear, SHRINK_TRIES).map_err(failure)?;
    Ok(summary)
}

/// The losses of a state, as the places of a finding.
pub(super) fn places(history: &FileHistory, state: &State) -> Vec<Place> {
    let parts = history.lost_parts(state).into_iter();
    parts.map(|(atom, name)| Place { atom, name, offset_bytes: None }).collect()
}

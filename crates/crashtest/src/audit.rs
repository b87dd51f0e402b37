//! Syncs that no check needs, the flushes of a drive or those of files: each is left out once.

use serde::{Deserialize, Serialize};

use crate::cut::Flushes;
use crate::error::CrashError;
use crate::explore::{Explore, explore_history};
use crate::history::{History, Sync};
use crate::runner::Runner;
use crate::search::Search;
use crate::state::State;
use crate::summary::{RunVerdict, Summary};
use crate::verdict::Outcome;

/// A flush that was answered and not done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditedFlush {
    /// Which, from 0.
    pub number: usize,
    /// When it was answered, by the drive's clock.
    pub time_ns: u64,
    /// The call, in words.
    #[serde(default)]
    pub call: String,
    /// Lines that had been acknowledged when the power failed.
    pub acks: usize,
    /// States that were tried.
    pub states: usize,
    /// The first of them that broke: the flush is needed.
    pub noticed: Option<(State, Outcome)>,
}

/// States that are tried of the recording as it is.
const AS_IT_IS: usize = 100;

/// What each flush is good for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Audit {
    /// The recording as it is, with all flushes.
    pub as_it_is: Summary,
    /// Each flush left out; none if the recording as it is does not hold: what breaks then says nothing of a flush.
    pub flushes: Vec<AuditedFlush>,
}

/// Tries the recording as it is. If that holds, leaves out one sync after the other, and cuts the power at the moments that the
/// loss may last to ([`History::moments_after`]). Of each sync at most `states` states are tried, and none after the first
/// that breaks.
///
/// # Errors
/// If a state cannot be tried.
pub fn audit(
    runner: &mut dyn Runner,
    history: &dyn History,
    states: usize,
    seed: u64,
) -> Result<Audit, CrashError> {
    let options = Explore::adversarial(seed, AS_IT_IS);
    let as_it_is = explore_history(runner, history, &options, &mut |_| {})?;
    if matches!(as_it_is.verdict, RunVerdict::Broken | RunVerdict::CheckFails) {
        return Ok(Audit { as_it_is, flushes: Vec::new() });
    }
    let flushes = each_left_out(runner, history, states, seed)?;
    Ok(Audit { as_it_is, flushes })
}

fn each_left_out(
    runner: &mut dyn Runner,
    history: &dyn History,
    states: usize,
    seed: u64,
) -> Result<Vec<AuditedFlush>, CrashError> {
    let mut audited = Vec::new();
    // A flush that never ended promised nothing, and is no sync of the history.
    for Sync { number, ended, time_ns, call } in history.syncs() {
        let moments = history.moments_after(ended);
        let Some(&next) = moments.first() else { continue };
        let cuts = history.cuts(Flushes::Without(number), &|at| moments.binary_search(&at).is_ok());
        let mut search = Search::new(history, &cuts, seed).take(states);
        let acks = history.acks_before(next);
        let mut flush = AuditedFlush { number, time_ns, call, acks, states: 0, noticed: None };
        runner.run(&mut || search.next(), &mut |_, state, outcome| {
            flush.states += 1;
            if outcome.verdict.is_broken() && flush.noticed.is_none() {
                flush.noticed = Some((state, outcome));
            }
            flush.noticed.is_none()
        })?;
        audited.push(flush);
    }
    Ok(audited)
}

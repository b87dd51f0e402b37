//! Making a finding small: few lost atoms, then the earliest moment.

use crate::cut::Cut;
use crate::error::CrashError;
use crate::runner::Runner;
use crate::state::State;
use crate::verdict::{Outcome, Verdict};

/// Moments that are looked at for an earlier one.
const MOMENTS_MOST: usize = 24;

/// The smallest state found that has the same verdict as `state`, and how many states were tried.
///
/// First by delta debugging (ddmin: Zeller and Hildebrandt, TSE 28(2), 2002) over what is lost: atoms do not
/// depend on each other, so that a drive which loses fewer keeps its promises, too. Then the same atoms are
/// lost at the earliest of `cuts` at which they may be.
///
/// A smaller state must fail alike and say the same, numbers aside. No more than `most` states are tried.
///
/// # Errors
/// If a state cannot be tried.
pub fn shrink(
    runner: &mut dyn Runner,
    state: &State,
    cuts: &[Cut],
    most: u32,
) -> Result<(State, Outcome, u32), CrashError> {
    let outcome = runner.run_one(state)?;
    let mut tries = Tries { runner, cuts, verdict: outcome.verdict, count: 1, most, outcome };
    if !tries.verdict.is_broken() {
        return Ok((state.clone(), tries.outcome, tries.count));
    }
    let mut small = state.clone();
    let mut parts = 2;
    while !small.lost.is_empty() {
        // None of it may be needed: what is there is the fault.
        let length = small.lost.len().div_ceil(parts.min(small.lost.len()));
        let mut found = None;
        for part in small.lost.chunks(length) {
            let others =
                || small.lost.iter().filter(|lost| !part.contains(lost)).copied().collect();
            let halves = if parts == 2 { vec![others()] } else { vec![part.to_vec(), others()] };
            for lost in halves {
                let smaller = State::new(small.at, lost);
                if smaller.lost.len() < small.lost.len() && tries.fails(&smaller)? {
                    found = Some(smaller);
                    break;
                }
            }
            if found.is_some() {
                break;
            }
        }
        if let Some(smaller) = found {
            small = smaller;
            parts = 2.max(parts - 1).min(small.lost.len().max(1));
        } else if length == 1 {
            break;
        } else {
            parts = (parts * 2).min(small.lost.len());
        }
    }
    let earliest = earlier(&mut tries, &small, cuts)?;
    Ok((earliest, tries.outcome, tries.count))
}

struct Tries<'a> {
    runner: &'a mut dyn Runner,
    cuts: &'a [Cut],
    verdict: Verdict,
    count: u32,
    most: u32,
    /// Of the last state that failed alike.
    outcome: Outcome,
}

impl Tries<'_> {
    fn fails(&mut self, state: &State) -> Result<bool, CrashError> {
        // A part of a command that is kept or lost as a whole is nothing that the drive may be left with.
        let is_whole =
            self.cuts.iter().filter(|cut| cut.at == state.at).all(|cut| cut.is_whole(state));
        if self.count >= self.most || !is_whole {
            return Ok(false);
        }
        self.count += 1;
        let outcome = self.runner.run_one(state)?;
        // Another message is another finding, which may be the smaller one.
        let is_same = outcome.verdict == self.verdict && outcome.cause() == self.outcome.cause();
        if is_same {
            self.outcome = outcome;
        }
        Ok(is_same)
    }
}

/// The same loss at the earliest moment, of those that are looked at, at which it fails alike.
fn earlier(tries: &mut Tries<'_>, state: &State, cuts: &[Cut]) -> Result<State, CrashError> {
    let may_lose = |cut: &&Cut| {
        state.lost.iter().all(|(atom, event)| {
            let unsettled = cut.unsettled.binary_search_by_key(atom, |unsettled| unsettled.atom);
            unsettled.is_ok_and(|at| cut.unsettled[at].versions[1..].contains(event))
        })
    };
    let possible = cuts.iter().filter(|cut| cut.at < state.at).filter(may_lose);
    let mut best = state.clone();
    for cut in possible.take(MOMENTS_MOST) {
        let candidate = State::new(cut.at, state.lost.clone());
        if tries.fails(&candidate)? {
            best = candidate;
            break;
        }
    }
    Ok(best)
}

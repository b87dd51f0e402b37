//! A campaign's state, kept in a file so that it can continue after an interruption.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Failed, Progress, Summary, fingerprint};
use crate::options::DRAW_VERSION;
use crate::seed_file::read_text;
use crate::{Coverage, Outcome, Subject, Tally};

/// The version of the format; others are refused.
const FORMAT: u32 = 3;
/// No campaign counts further, so that none overflows.
const MOST: u64 = 1 << 53;

/// The state of a campaign.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The format's version.
    leyden_torture_campaign: u32,
    /// The version of the draws, which turn a seed into options.
    draw_version: u32,
    /// The program's version.
    program: String,
    begun: Begun,
    /// Seeds done: stretches, first and last, in order.
    done: Vec<(u64, u64)>,
    tally: Tally,
    coverage: Coverage,
    /// The sum of the fingerprints of all runs.
    digest: u64,
    wall_ms: u64,
    failed: Vec<Failed>,
}

/// The identity of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begun {
    /// The kind of drive.
    pub(crate) subject: Subject,
    /// The first seed.
    pub(crate) start: u64,
    /// Some options are mutants.
    pub(crate) guided: bool,
}

/// Why a campaign's state cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("cannot read {}", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    /// It cannot be written.
    #[error(
        "cannot write {}\n  help: choose another place, or make room; the last state that was \
         written is whole",
        .0.display()
    )]
    Write(PathBuf, #[source] std::io::Error),
    /// It is something else, or damaged.
    #[error(
        "{} is no campaign's state: {problem}\n  help: name a file that `leyden torture --state` \
         wrote, or a new one",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The error.
        problem: String,
    },
    /// Another campaign uses it.
    #[error(
        "{} is in use by another campaign\n  help: wait until that has ended, or name another file",
        .0.display()
    )]
    Busy(PathBuf),
    /// There are not so many seeds.
    #[error(
        "there are no {seeds} seeds from {start} on: the last one is {}\n  help: start earlier, or ask for fewer",
        u64::MAX - 1
    )]
    Range {
        /// The first seed.
        start: u64,
        /// How many were asked for.
        seeds: u64,
    },
    /// It is another campaign's.
    #[error(
        "{} is of another campaign: {problem}\n  help: use another file, or the options of that campaign",
        path.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The difference.
        problem: String,
    },
}

impl State {
    /// Of a campaign that begins.
    pub(super) fn new(begun: Begun) -> Self {
        Self {
            leyden_torture_campaign: FORMAT,
            draw_version: DRAW_VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            begun,
            done: Vec::new(),
            tally: Tally::default(),
            coverage: Coverage::default(),
            digest: 0,
            wall_ms: 0,
            failed: Vec::new(),
        }
    }

    /// From the file at `path`, or new if there is none.
    pub(super) fn load(path: &Path, begun: Begun) -> Result<Self, StateError> {
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::new(begun));
            }
            Err(error) => return Err(StateError::Read(path.to_owned(), error)),
        };
        Self::parse(path, &text, begun)
    }

    /// From the file at `path`, which holds `text`.
    pub(crate) fn parse(path: &Path, text: &str, begun: Begun) -> Result<Self, StateError> {
        let state: Self = serde_json::from_str(text).map_err(|error| StateError::Foreign {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        let new = Self::new(begun);
        let differs = |what: &str, found: &dyn std::fmt::Display, is: &dyn std::fmt::Display| {
            let problem = format!("its {what} is {found}, and this one's is {is}");
            Err(StateError::Other { path: path.to_owned(), problem })
        };
        if state.leyden_torture_campaign != FORMAT {
            return differs("format", &state.leyden_torture_campaign, &FORMAT);
        }
        if state.program != new.program || state.draw_version != new.draw_version {
            let version = |state: &Self| format!("{} (draw {})", state.program, state.draw_version);
            return differs("version", &version(&state), &version(&new));
        }
        let (its, is) = (state.begun, begun);
        if its.subject != is.subject {
            let name = |subject: Subject| format!("{subject:?}").to_lowercase();
            return differs("kind of drive", &name(its.subject), &name(is.subject));
        }
        if its.start != is.start {
            return differs("first seed", &its.start, &is.start);
        }
        if its.guided != is.guided {
            return differs("being guided", &its.guided, &is.guided);
        }
        state.check().map_err(|problem| StateError::Foreign { path: path.to_owned(), problem })?;
        Ok(state)
    }

    /// Refuses contents that no campaign writes, as a damaged file may have them.
    fn check(&self) -> Result<(), String> {
        let mut least = Some(self.begun.start);
        for &(first, last) in &self.done {
            if least.is_none_or(|least| first < least) || last < first {
                return Err(format!("the stretch of seeds {first} to {last} is out of order"));
            }
            least = last.checked_add(2); // else it would be part of the stretch before
        }
        let seeds = self.done.iter().map(|&(first, last)| last - first);
        let counts = self.tally.numbers().into_iter().chain(self.coverage.counts());
        let numbers = counts.chain([self.wall_ms]).chain(seeds);
        if let Some(number) = numbers.into_iter().find(|&number| number > MOST) {
            return Err(format!("no campaign comes to {number}"));
        }
        let is_done = |seed| self.done.iter().any(|&(first, last)| (first..=last).contains(&seed));
        match self.failed.iter().find(|failed| !is_done(failed.seed)) {
            Some(failed) => Err(format!("seed {} failed, and was not run", failed.seed)),
            None => Ok(()),
        }
    }

    /// Writes the file at `path` whole or not at all.
    pub(super) fn save(&self, path: &Path) -> Result<(), StateError> {
        let mut text = serde_json::to_string_pretty(self).expect("the state is plain data");
        text.push('\n');
        leyden_files::write(path, text.as_bytes())
            .map_err(|error| StateError::Write(path.to_owned(), error.into_io()))
    }

    /// Of `seeds` seeds, those not done.
    pub(crate) fn missing(&self, seeds: u64) -> impl Iterator<Item = u64> + Send + use<> {
        let start = self.begun.start;
        let end = start.saturating_add(seeds);
        // Before each stretch that is done, and after the last one.
        let ends: Vec<u64> = self.done.iter().map(|&(first, _)| first.min(end)).collect();
        let starts: Vec<u64> = self.done.iter().map(|&(_, last)| last.saturating_add(1)).collect();
        let starts = std::iter::once(start).chain(starts);
        starts.zip(ends.into_iter().chain([end])).flat_map(|(first, end)| first..end)
    }

    /// Adds the outcome of `seed`.
    pub(super) fn add(&mut self, seed: u64, outcome: Outcome) {
        self.tally.add(&outcome.tally);
        self.coverage.add(&outcome.coverage);
        self.digest = self.digest.wrapping_add(fingerprint(seed, &outcome));
        if let Some(failure) = outcome.failure {
            let at = self.failed.partition_point(|failed| failed.seed < seed);
            self.failed.insert(at, Failed { seed, failure });
        }
        let at = self.done.partition_point(|&(first, _)| first < seed);
        self.done.insert(at, (seed, seed));
        if let Some(&(_, last)) = self.done.get(at + 1).filter(|(first, _)| *first == seed + 1) {
            self.done[at].1 = last;
            self.done.remove(at + 1);
        }
        if at > 0 && self.done[at - 1].1 + 1 == seed {
            self.done[at - 1].1 = self.done[at].1;
            self.done.remove(at);
        }
    }

    pub(super) fn add_time(&mut self, time: Duration) {
        self.wall_ms += time.as_millis() as u64;
    }

    fn count(&self) -> u64 {
        self.done.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(crate) fn progress(&self, seeds: u64) -> Progress<'_> {
        Progress {
            done: self.count(),
            seeds,
            cuts: self.tally.cuts,
            failed: &self.failed,
            tally: &self.tally,
            coverage: &self.coverage,
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let cuts_per_s = self.tally.cuts as f64 * 1e3 / self.wall_ms.max(1) as f64;
        Summary {
            seeds: self.count(),
            cuts: self.tally.cuts,
            violations: self.failed.len() as u64,
            cuts_per_s: cuts_per_s.round(),
            digest: format!("{:016x}", self.digest),
            tally: self.tally,
            coverage: self.coverage.clone(),
            failed: self.failed.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(done: &[u64]) -> State {
        let mut state = State::new(Begun { subject: Subject::Zoned, start: 10, guided: false });
        for &seed in done {
            let outcome = Outcome {
                tally: Tally::default(),
                coverage: Coverage::default(),
                digest: seed,
                failure: None,
            };
            state.add(seed, outcome);
        }
        state
    }

    #[test]
    fn stretches_grow_together_in_any_order() {
        assert_eq!(state(&[12, 10, 14, 11]).done, [(10, 12), (14, 14)]);
        assert_eq!(state(&[12, 10, 14, 11, 13]).done, [(10, 14)]);
        assert_eq!(state(&[14, 12, 10]).missing(6).collect::<Vec<_>>(), [11, 13, 15]);
        assert_eq!(state(&[14, 12, 10]).digest, state(&[10, 12, 14]).digest);
        assert!(state(&[10, 12, 13]).check().is_ok());
    }

    #[test]
    fn numbers_that_would_overflow_are_refused() {
        let mut wrong = state(&[]);
        wrong.done = vec![(10, u64::MAX)];
        assert!(wrong.check().unwrap_err().contains("no campaign comes to"));
        let mut wrong = state(&[]);
        wrong.tally.cuts = u64::MAX;
        assert!(wrong.check().is_err());
        let mut wrong = state(&[]);
        wrong.wall_ms = u64::MAX;
        assert!(wrong.check().is_err());
    }
}

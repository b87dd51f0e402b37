//! `recognised`: a log is what is overwritten in sequence.
//!
//! A *run* is a chain of writes, each of which goes on where the last one ended or begins in its last
//! page, as a log's tail is written again until it is full. Once a run has overwritten
//! [`Recognised::least`], it is a log. So is the begin of a run where a log was last time round; if it
//! turns out to be too short, that is taken back. Few runs are followed at once; a new one takes the
//! place of the longest unheard-of that is no log yet, so that random writes beside a log do not
//! push it out.

use leyden_nand::Lpn;
use leyden_sim::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many runs are followed at once: a log per database or file system, and what happens beside it.
pub(super) const MOST_RUNS: usize = 8;

/// How far before the end of a run a write may begin that goes on with it: a log's last page. PostgreSQL's
/// are of 8 KiB, InnoDB's of up to 16 KiB.
const TAIL_BYTES: u32 = 16 << 10;

/// Data overwritten in sequence is a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recognised {
    /// The length overwritten in sequence that makes a log.
    pub least: Bytes,
}

impl Default for Recognised {
    fn default() -> Self {
        // Of PostgreSQL's log, recycled in segments of 16 MiB, this finds 99 %, and takes 5 to 15 % of
        // its other writes for logs, too (docs/papers/zombie-chasing.md).
        Self { least: Bytes::new(64 << 10) }
    }
}

/// The runs that are followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    /// So many units overwritten in sequence make a log.
    least_units: u32,
    /// So many units may be written again.
    tail_units: u32,
    /// The longest unheard-of first.
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// Where the run began.
    first: Lpn,
    /// Where it goes on.
    next: Lpn,
    /// Units of it that held data before.
    overwritten: u32,
}

/// The findings of a write about logs.
pub(super) struct Found {
    /// The run that the write is part of is a log.
    pub(super) is_log: bool,
    /// The range that was taken for a log because there was one last time, and has turned out too
    /// short.
    pub(super) not_a_log: Option<(Lpn, Lpn)>,
}

impl Followed {
    pub(super) fn new(config: &Recognised, unit_bytes: u32) -> Self {
        let units = config.least.get().div_ceil(u64::from(unit_bytes)).min(u64::from(u32::MAX));
        let tail_units = TAIL_BYTES.div_ceil(unit_bytes);
        Self { least_units: units as u32, tail_units, runs: Vec::with_capacity(MOST_RUNS) }
    }

    /// Takes a write from `first` up to `end` into the run that it goes on, or begins one.
    pub(super) fn follow(
        &mut self,
        first: Lpn,
        end: Lpn,
        is_mapped: impl Fn(Lpn) -> bool,
    ) -> Found {
        let tail_units = self.tail_units;
        let goes_on = |run: &Run| {
            let tail = run.next.0.saturating_sub(tail_units)..=run.next.0;
            tail.contains(&first.0) && run.next <= end
        };
        let (run, not_a_log) = match self.runs.iter().position(goes_on) {
            Some(at) => (self.runs.remove(at), None),
            None => (Run { first, next: first, overwritten: 0 }, self.make_room()),
        };
        let new = (run.next.0..end.0).filter(|&lpn| is_mapped(Lpn(lpn))).count() as u32;
        let run = Run { next: end, overwritten: run.overwritten.saturating_add(new), ..run };
        let is_log = run.overwritten >= self.least_units;
        self.runs.push(run);
        Found { is_log, not_a_log }
    }

    /// Follows one run less, if need be. Hands back where it lies if it is no log.
    fn make_room(&mut self) -> Option<(Lpn, Lpn)> {
        if self.runs.len() < MOST_RUNS {
            return None;
        }
        let short = self.runs.iter().position(|run| run.overwritten < self.least_units);
        let run = self.runs.remove(short.unwrap_or(0));
        short.map(|_| (run.first, run.next))
    }

    /// True if this could be the state of `other`, on a drive of up to `lpns` units.
    pub(super) fn fits(&self, other: &Self, lpns: usize) -> bool {
        let is_inside = |run: &Run| run.first <= run.next && run.next.0 as usize <= lpns;
        (self.least_units, self.tail_units) == (other.least_units, other.tail_units)
            && self.runs.len() <= MOST_RUNS
            && self.runs.iter().all(is_inside)
    }
}

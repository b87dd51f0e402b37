//! Logs: data that is overwritten in sequence, over and over, like a write-ahead log.
//!
//! Beyond the papers. A circular log dies in the order in which it was written. In blocks of its own
//! it leaves whole blocks of garbage behind; among other data it leaves holes in all of theirs.
//!
//! **What lives here**: what is taken for a log ([`LogConfig`]), and which units are one ([`Logs`]).
//! **What doesn't**: where they go ([`crate::place::Streams`]).
//!
//! Invariant: a unit is marked by its last write.

pub mod hinted;
pub mod off;
pub mod recognised;

use leyden_nand::Lpn;
use leyden_sim::BitSet;
use serde::{Deserialize, Serialize};

use recognised::Followed;

leyden_sim::policies! {
    /// Whether logs, which are overwritten in sequence over and over, get blocks of their own, and how they
    /// are recognised.
    pub enum LogConfig {
        /// Logs lie among other data.
        Off(off::Off) = "off",
        /// The host names logs: data of the classes `wal` and `journal` of a trace.
        Hinted(hinted::Hinted) = "hinted",
        /// Data overwritten in sequence is a log.
        Recognised(recognised::Recognised) = "recognised",
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self::Off(off::Off {})
    }
}

/// The parts of the drive's data that are logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    /// A bit for each logical unit that was last written as a log. Empty if no policy asks.
    marks: BitSet,
    /// `None` if only the host says.
    runs: Option<Followed>,
}

impl Logs {
    /// For a drive of `lpns` units of `unit_bytes`.
    pub fn new(config: &LogConfig, lpns: u32, unit_bytes: u32) -> Self {
        let marks = || BitSet::new(lpns);
        match config {
            LogConfig::Off(_) => Self::default(),
            LogConfig::Hinted(_) => Self { marks: marks(), runs: None },
            LogConfig::Recognised(config) => {
                Self { marks: marks(), runs: Some(Followed::new(config, unit_bytes)) }
            }
        }
    }

    /// True if logs are told apart.
    #[inline]
    pub const fn are_kept(&self) -> bool {
        !self.marks.is_unused()
    }

    /// True if `lpn` is part of a log.
    #[inline]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.are_kept() && self.marks.contains(lpn.0)
    }

    /// A write of `count` units from `first` on has arrived. `is_log` is what the host says of it;
    /// `is_mapped` tells whether a unit held data before.
    pub fn written(
        &mut self,
        first: Lpn,
        count: u32,
        is_log: bool,
        is_mapped: impl Fn(Lpn) -> bool,
    ) {
        if !self.are_kept() {
            return;
        }
        let end = Lpn(first.0 + count);
        let is_log = if let Some(runs) = &mut self.runs {
            let found = runs.follow(first, end, is_mapped);
            if let Some((first, end)) = found.not_a_log {
                self.mark(first, end, false);
            }
            // Where a log was last time round, it is one from the first write on.
            found.is_log || self.contains(first)
        } else {
            is_log
        };
        self.mark(first, end, is_log);
    }

    fn mark(&mut self, first: Lpn, end: Lpn, is_log: bool) {
        for lpn in first.0..end.0 {
            self.marks.set(lpn, is_log);
        }
    }

    pub(crate) fn fits(&self, other: &Self) -> bool {
        self.marks.bound() == other.marks.bound()
            && match (&self.runs, &other.runs) {
                (Some(runs), Some(others)) => runs.fits(others, self.marks.bound() as usize),
                (runs, others) => runs.is_none() && others.is_none(),
            }
    }

    /// Bytes of memory that grow with capacity.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.marks.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::recognised::MOST_RUNS;
    use super::*;

    fn recognised() -> Logs {
        Logs::new(&LogConfig::by_name("recognised").unwrap(), 4_096, 4_096)
    }

    fn write(logs: &mut Logs, first: u32, count: u32) -> bool {
        logs.written(Lpn(first), count, false, |_| true);
        logs.contains(Lpn(first + count - 1))
    }

    #[test]
    fn what_is_overwritten_in_sequence_is_a_log() {
        let mut logs = recognised();
        assert!(!write(&mut logs, 100, 15), "60 KiB");
        assert!(write(&mut logs, 115, 1), "64 KiB");
        assert!(write(&mut logs, 115, 2), "the tail once more");
        assert!(!logs.contains(Lpn(100)), "that was written before it was known");
        assert!(!write(&mut logs, 2_000, 3), "elsewhere");
        assert!(write(&mut logs, 117, 1), "and on");
    }

    #[test]
    fn the_next_time_round_is_known_from_the_first_write() {
        let mut logs = recognised();
        (0..64).for_each(|unit| {
            write(&mut logs, unit, 1);
        });
        assert!(!write(&mut logs, 0, 1), "where it was not yet known");
        assert!(write(&mut logs, 40, 1));
        assert!(write(&mut logs, 41, 1));
    }

    #[test]
    fn what_stays_short_is_no_log_though_one_was_there() {
        let mut logs = recognised();
        (0..64).for_each(|unit| {
            write(&mut logs, unit, 1);
        });
        assert!(write(&mut logs, 40, 1));
        for other in 0..MOST_RUNS as u32 {
            write(&mut logs, 1_000 + 10 * other, 1);
        }
        assert!(!logs.contains(Lpn(40)), "its run was given up");
        assert!(logs.contains(Lpn(50)), "the log is still followed");
        assert!(write(&mut logs, 64, 1));
    }

    #[test]
    fn first_writes_make_no_log() {
        let mut logs = recognised();
        logs.written(Lpn(0), 1_000, false, |_| false);
        assert!(!logs.contains(Lpn(999)));
    }

    #[test]
    fn hinted_believes_the_host() {
        let mut logs = Logs::new(&LogConfig::by_name("hinted").unwrap(), 100, 4_096);
        logs.written(Lpn(3), 2, true, |_| false);
        assert!(logs.contains(Lpn(4)) && !logs.contains(Lpn(5)));
        logs.written(Lpn(4), 1, false, |_| true);
        assert!(logs.contains(Lpn(3)) && !logs.contains(Lpn(4)));
    }
}

//! Checks that reads return what was written, while any number of commands are under way.
//!
//! A read may return a write's stamp if the write was submitted before the read completed, and if
//! no later write had certainly replaced it when the read was submitted (submitted after that
//! write's completion, completed before the read's submission). *Before* is the order in which the
//! driver submits and completes.
//!
//! A cache above the drive may fail to write units out. Until a write that was submitted later has
//! completed, reads of them may find what the cache has or what lies below, which may be any older
//! version. The verifier remembers no versions that were replaced, so it only asks that some write was
//! given the stamp. It does not know what flushes promise either; [`super::Promises`] does.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use leyden_device::{Completion, Op, Stamp, Status};
use leyden_sim::Time;
use leyden_workload::Request;
use thiserror::Error;

use super::{Content, DriveError, Outage};

/// A read returned what it must not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "a read of mapping unit {unit}, submitted at {} ns and completed at {} ns, returned {}; it \
     must return one of {expected:?}, or of writes submitted in between",
    submitted.as_ns(), completed.as_ns(), found_text(*found)
)]
pub struct Violation {
    /// The mapping unit.
    pub unit: u64,
    /// The stamps it may have had when the read was submitted; 0 is "never written".
    pub expected: Vec<u64>,
    /// The stamp that was returned, if any was.
    pub found: Option<u64>,
    /// When the read was submitted.
    pub submitted: Time,
    /// When the read completed.
    pub completed: Time,
}

fn found_text(found: Option<u64>) -> String {
    found.map_or_else(|| "nothing".to_owned(), |stamp| format!("stamp {stamp}"))
}

/// A write that a unit may show.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u64,
    value: u64,
    /// The number that the next write was to have when this one completed; `None` until then.
    completed: Option<u64>,
}

/// The versions of a unit that a read may return, as of its submission.
#[derive(Clone, Copy, Debug)]
struct Shown {
    unit: u64,
    /// The stamp; `None` for any that was ever given, as a cache had failed to write the unit out.
    stamp: Option<u64>,
}

/// A command that was submitted.
#[derive(Clone, Debug, Default)]
enum Pending {
    #[default]
    Nothing,
    Change {
        id: u64,
        units: Range<u64>,
    },
    Read {
        units: Range<u64>,
        /// The number that the next write was to have.
        clock: u64,
        /// Its place in the order of reads.
        sequence: u64,
    },
}

/// A write or trim, numbered by its place in the log.
#[derive(Clone, Debug)]
struct Logged {
    units: Range<u64>,
    value: u64,
}

/// Gives each write a stamp of its own and checks each read. It can go through several runs on the
/// same device. 8 bytes per mapping unit; commands on units that are being written, or that a cache
/// could not write out, cost a tree operation each.
#[derive(Clone, Debug)]
pub struct Verifier {
    unit_sectors: u64,
    /// The stamp of each unit that is not in `contended`.
    settled: Vec<u64>,
    /// Units that are being written, or whose last writes overlapped in time: all they may show.
    contended: BTreeMap<u64, Vec<Candidate>>,
    /// Units that a cache could not write out, and the number that the next write was to have then.
    doubtful: BTreeMap<u64, u64>,
    next_id: u64,
    pending: Vec<Pending>,
    /// For each outstanding read, the versions its units may return. By slot, kept for reuse.
    seen: Vec<Vec<Shown>>,
    /// Writes and trims since the oldest outstanding read was submitted.
    log: VecDeque<Logged>,
    /// Outstanding reads in order: the clock of each, `None` once it completed.
    reads: VecDeque<Option<u64>>,
    /// Place of the first of `reads` in the order of all reads.
    first_read: u64,
}

impl Verifier {
    /// For a device that was never written, of `capacity_sectors`, with mapping units of
    /// `unit_sectors`.
    pub fn new(capacity_sectors: u64, unit_sectors: u64) -> Self {
        Self {
            unit_sectors,
            settled: vec![0; capacity_sectors.div_ceil(unit_sectors) as usize],
            contended: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            next_id: 1,
            pending: Vec::new(),
            seen: Vec::new(),
            log: VecDeque::new(),
            reads: VecDeque::new(),
            first_read: 0,
        }
    }

    /// Units that `request` touches; for trims, those it covers.
    fn units(&self, request: &Request) -> Range<u64> {
        let (first, size) = (request.lba.0, self.unit_sectors);
        let end = first.saturating_add(u64::from(request.sectors));
        let limit = self.settled.len() as u64;
        match request.op {
            Op::Flush
            | Op::WritePrepare
            | Op::ZoneAppend
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => 0..0,
            Op::Trim | Op::WriteZeroes => first.div_ceil(size)..(end / size).min(limit),
            Op::Read | Op::Write => first / size..end.div_ceil(size).min(limit),
        }
    }

    fn submit_change(&mut self, units: Range<u64>, is_write: bool) -> Pending {
        let id = self.next_id;
        self.next_id += 1;
        let value = if is_write { id } else { 0 };
        for unit in units.clone() {
            let settled = self.settled[unit as usize];
            let candidates = self
                .contended
                .entry(unit)
                .or_insert_with(|| vec![Candidate { id: 0, value: settled, completed: Some(0) }]);
            candidates.push(Candidate { id, value, completed: None });
        }
        if !self.reads.is_empty() {
            self.log.push_back(Logged { units: units.clone(), value });
        }
        Pending::Change { id, units }
    }

    fn complete_change(&mut self, id: u64, units: Range<u64>, succeeded: bool) {
        let clock = self.next_id;
        for unit in units {
            if succeeded && self.doubtful.get(&unit).is_some_and(|&since| id >= since) {
                self.doubtful.remove(&unit);
            }
            let Some(candidates) = self.contended.get_mut(&unit) else {
                continue;
            };
            for candidate in candidates.iter_mut().filter(|candidate| candidate.id == id) {
                candidate.completed = Some(clock);
            }
            // A failed write may have happened or not, and replaces nothing for certain.
            if succeeded {
                candidates.retain(|c| c.id == id || c.completed.is_none_or(|at| at > id));
            }
            if let [only] = candidates[..] {
                self.settled[unit as usize] = only.value;
                self.contended.remove(&unit);
            }
        }
    }

    fn submit_read(&mut self, slot: usize, units: Range<u64>) -> Pending {
        let seen = &mut self.seen[slot];
        seen.clear();
        for unit in units.clone() {
            let shown = |stamp| Shown { unit, stamp: Some(stamp) };
            match self.contended.get(&unit) {
                Some(candidates) => seen.extend(candidates.iter().map(|c| shown(c.value))),
                None => seen.push(shown(self.settled[unit as usize])),
            }
            if self.doubtful.contains_key(&unit) {
                seen.push(Shown { unit, stamp: None });
            }
        }
        self.reads.push_back(Some(self.next_id));
        Pending::Read {
            units,
            clock: self.next_id,
            sequence: self.first_read + self.reads.len() as u64 - 1,
        }
    }

    /// Whether a write or trim of `unit` that was submitted at or after `clock` left `found`.
    fn written_since(&self, clock: u64, unit: u64, found: u64) -> bool {
        // The log ends with the latest write, which is the one before `next_id`.
        let first = self.next_id - self.log.len() as u64;
        let skip = clock.saturating_sub(first) as usize;
        let mut since = self.log.iter().skip(skip);
        since.any(|logged| logged.value == found && logged.units.contains(&unit))
    }

    fn check(
        &self,
        slot: usize,
        units: Range<u64>,
        clock: u64,
        completion: &Completion<Stamp>,
    ) -> Result<(), Violation> {
        for (index, unit) in units.enumerate() {
            let found = completion.data().and_then(|data| data.get(index)).map(|stamp| stamp.0);
            let seen = || self.seen[slot].iter().filter(|shown| shown.unit == unit);
            let shows = |found: u64, shown: &Shown| match shown.stamp {
                Some(stamp) => stamp == found,
                None => found < self.next_id,
            };
            let allowed = found.is_some_and(|found| {
                seen().any(|shown| shows(found, shown)) || self.written_since(clock, unit, found)
            });
            if !allowed {
                return Err(Violation {
                    unit,
                    expected: seen().filter_map(|shown| shown.stamp).collect(),
                    found,
                    submitted: completion.submitted,
                    completed: completion.time,
                });
            }
        }
        Ok(())
    }

    /// Forgets a completed read, and the log that only it needed.
    fn retire_read(&mut self, sequence: u64) {
        self.reads[(sequence - self.first_read) as usize] = None;
        while let Some(None) = self.reads.front() {
            self.reads.pop_front();
            self.first_read += 1;
        }
        match self.reads.front() {
            Some(Some(oldest)) => {
                let needed = (self.next_id - oldest) as usize;
                let spare = self.log.len().saturating_sub(needed);
                self.log.drain(..spare);
            }
            _ => self.log.clear(),
        }
    }

    /// The command in `slot` completed.
    pub(super) fn ended(
        &mut self,
        slot: usize,
        completion: &Completion<Stamp>,
    ) -> Result<(), Violation> {
        let succeeded = completion.status == Status::Success;
        match std::mem::take(&mut self.pending[slot]) {
            Pending::Nothing => Ok(()),
            Pending::Change { id, units } => {
                self.complete_change(id, units, succeeded);
                Ok(())
            }
            Pending::Read { units, clock, sequence } => {
                let checked =
                    if succeeded { self.check(slot, units, clock, completion) } else { Ok(()) };
                self.retire_read(sequence);
                checked
            }
        }
    }
}

impl Content<Stamp> for Verifier {
    fn submit(&mut self, slot: u32, _: Time, request: &Request) -> u64 {
        let slot = slot as usize;
        if slot >= self.pending.len() {
            self.pending.resize_with(slot + 1, Pending::default);
            self.seen.resize_with(slot + 1, Vec::new);
        }
        let units = self.units(request);
        let stamp = self.next_id;
        self.pending[slot] = match request.op {
            Op::Read => self.submit_read(slot, units),
            Op::Write => self.submit_change(units, true),
            Op::Trim | Op::WriteZeroes => self.submit_change(units, false),
            Op::Flush
            | Op::WritePrepare
            | Op::ZoneAppend
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => Pending::Nothing,
        };
        stamp
    }

    #[inline]
    fn minds_unwritten(&self) -> bool {
        true
    }

    fn unwritten(&mut self, units: Vec<u32>) {
        for unit in units.into_iter().map(u64::from) {
            self.doubtful.insert(unit, self.next_id);
            for (pending, seen) in self.pending.iter().zip(&mut self.seen) {
                if matches!(pending, Pending::Read { units, .. } if units.contains(&unit)) {
                    seen.push(Shown { unit, stamp: None });
                }
            }
        }
    }

    fn complete(&mut self, slot: u32, completion: &Completion<Stamp>) -> Result<(), DriveError> {
        Ok(self.ended(slot as usize, completion)?)
    }

    fn cut(&mut self, outage: &Outage<Stamp>) -> Result<Option<u64>, DriveError> {
        panic!("a cut at {} ns: only `Promises` knows of them", outage.at.as_ns());
    }
}

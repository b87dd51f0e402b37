//! Atomic writes: what a read, or a power cut, must not show a part of.
//!
//! A command is torn if one of its units is as it made it, and another is older: nothing that may have come after the
//! command has changed that one. Two atomic commands that overlap are torn, too, if each shows where both wrote.

use super::{Oracle, Violation};
use crate::command::{Effect, Touched};
use crate::log::{Entry, Tick};
use crate::view::Seen;
use crate::{Id, Op, Problem, Request};

/// The writes that are atomic. In blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// Sectors of a block: what begins or ends within one is not atomic.
    pub block_sectors: u64,
    /// The most blocks of a write of which reads see all or nothing, and from one of its boundaries to the next, or 0.
    pub normal: (u64, u64),
    /// The same of what power cuts leave.
    pub power_fail: (u64, u64),
    /// The first boundary.
    pub offset: u64,
}

/// The promises of a drive on atomic writes, and its excuses.
#[derive(Clone, Debug, Default)]
pub(super) struct AtomicPromise {
    of: Option<Atomic>,
    /// When the drive last said of a unit that it lost something of it; empty if it never did.
    excused: Vec<Tick>,
}

impl Atomic {
    fn covers(&self, (most, boundary): (u64, u64), request: &Request) -> bool {
        let (size, end) = (self.block_sectors, request.lba + u64::from(request.sectors));
        if request.op != Op::Write || !request.lba.is_multiple_of(size) || !end.is_multiple_of(size)
        {
            return false;
        }
        let (first, end) = (request.lba / size, end / size);
        // A line lies before block `offset`, and before every `boundary`th from there on.
        let is_line = |block: u64| boundary > 0 && block % boundary == self.offset % boundary;
        end - first <= most && !(first + 1..end).any(is_line)
    }

    /// True if a read sees all or nothing of what `request` writes.
    pub fn is_normal(&self, request: &Request) -> bool {
        self.covers(self.normal, request)
    }

    /// True if a power cut leaves all or nothing of it.
    pub fn survives(&self, request: &Request) -> bool {
        self.covers(self.power_fail, request)
    }
}

impl Oracle {
    /// For a drive that has promised atomic writes.
    #[must_use]
    pub fn with_atomic(mut self, atomic: Option<Atomic>) -> Self {
        self.atomic.of = atomic;
        self
    }

    /// The promises.
    pub const fn atomic(&self) -> Option<Atomic> {
        self.atomic.of
    }

    /// Reads since the last power cut have shown whole commands: none is a part of an atomic one.
    pub fn judge_left(&self) -> Result<(), Box<Violation>> {
        let Some(atomic) = self.atomic.of else { return Ok(()) };
        let left = |unit: u32| self.units[unit as usize].left;
        for unit in 0..self.units.len() as u32 {
            let Some((id, entry)) = left(unit).and_then(|stamp| self.stamped(unit, stamp)) else {
                continue;
            };
            // Once for each command: at the first of its units that shows it.
            let is_first = (entry.touched.first..unit).all(|other| left(other) != Some(id.0));
            if is_first && atomic.survives(&entry.request) {
                self.judge(id, entry, &|entry| atomic.survives(&entry.request), &left)?;
            }
        }
        Ok(())
    }

    /// A read has returned `data` of the units from `first` on: that is no part of an atomic command.
    pub(super) fn judge_read(&self, first: u32, data: &[u64]) -> Result<(), Box<Violation>> {
        let Some(atomic) = self.atomic.of else { return Ok(()) };
        let seen = |unit: u32| data.get(unit.checked_sub(first)? as usize).copied();
        for (unit, &stamp) in (first..).zip(data) {
            let Some((id, entry)) = self.stamped(unit, stamp) else { continue };
            let from = entry.touched.first.max(first);
            let is_first = (from..unit).all(|other| seen(other) != Some(stamp));
            // Of what a cut has interrupted, more may be in part than while the power is on.
            let is_atomic = |entry: &Entry| {
                let is_uncut = entry.submitted > self.last_cut;
                if is_uncut {
                    atomic.is_normal(&entry.request)
                } else {
                    atomic.survives(&entry.request)
                }
            };
            if is_first && is_atomic(entry) {
                self.judge(id, entry, &is_atomic, &seen)?;
            }
        }
        Ok(())
    }

    fn stamped(&self, unit: u32, stamp: u64) -> Option<(Id, &Entry)> {
        self.log.stamped(unit, stamp).map(|entry| (Id(stamp), entry))
    }

    /// Looks at all that is `seen` of the units of an atomic command, of which one is as it made it.
    fn judge(
        &self,
        id: Id,
        entry: &Entry,
        is_atomic: &dyn Fn(&Entry) -> bool,
        seen: &dyn Fn(u32) -> Option<u64>,
    ) -> Result<(), Box<Violation>> {
        let units = || entry.touched.units();
        let shown = || units().filter(|&unit| seen(unit) == Some(id.0));
        if units().any(|unit| self.is_excused(unit, entry.submitted)) {
            return Ok(());
        }
        for unit in units() {
            let Some(found) = seen(unit).filter(|&found| found != id.0) else { continue };
            let is_torn = match self.stamped(unit, found) {
                Some((_, other)) => {
                    let both = |unit| touches(&other.touched, unit);
                    other.ended < entry.submitted
                        // Both are atomic, both wrote there, and this one shows: the other does not come after it.
                        || is_atomic(other)
                            && !units().any(|it| self.is_excused(it, other.submitted))
                            && shown().any(both)
                }
                // Of a command that is forgotten; or zeroes, which some other command may have made since.
                None if found != 0 => self.log.had_ended(entry.submitted),
                None => !self.may_be_zeroed_since(unit, entry.submitted),
            };
            if is_torn {
                return Err(self.torn(unit, id, found));
            }
        }
        Ok(())
    }

    /// The drive, or a cache, has said since `tick` that it lost something of the unit.
    fn is_excused(&self, unit: u32, tick: Tick) -> bool {
        let excused = self.atomic.excused.get(unit as usize).copied().unwrap_or(Tick::START);
        excused > tick || self.units[unit as usize].unwritten > tick
    }

    /// Notes that the drive has said that it lost something of a unit.
    pub(super) fn excuse(&mut self, unit: u32) {
        if self.atomic.of.is_some() {
            self.atomic.excused.resize(self.units.len(), Tick::START);
            self.atomic.excused[unit as usize] = self.now;
        }
    }

    fn may_be_zeroed_since(&self, unit: u32, tick: Tick) -> bool {
        let of = &self.units[unit as usize];
        of.zeroing > 0 || of.zero_ended >= tick || of.zero_submitted > tick
    }

    fn torn(&self, unit: u32, id: Id, found: u64) -> Box<Violation> {
        let seen = Seen::new(&self.units[unit as usize]);
        let mut violation = self.violation_of(unit, &seen, self.now, Some(found));
        violation.problem = Problem::Torn { command: id };
        violation.allowed = vec![id.0];
        violation.promised = None;
        violation
    }
}

fn touches(touched: &Touched, unit: u32) -> bool {
    touched.effect(unit) == Some(Effect::Stamp)
}

#[cfg(test)]
mod tests {
    use leyden_sim::Time;

    use super::*;
    use crate::{Ended, Promise};

    const AT: Time = Time::from_ns(1);

    fn request(op: Op, unit: u64, units: u32) -> Request {
        Request { op, lba: unit * 8, sectors: units * 8, fua: false, plp: false }
    }

    /// Writes of up to four blocks are atomic, with a line before every fourth block from the second on.
    fn atomic() -> Atomic {
        Atomic { block_sectors: 8, normal: (8, 0), power_fail: (4, 4), offset: 2 }
    }

    #[test]
    fn a_command_is_atomic_up_to_a_size_and_between_two_lines() {
        let survives = |unit, units| atomic().survives(&request(Op::Write, unit, units));
        assert!(survives(2, 4) && survives(0, 2) && survives(4, 2) && survives(6, 4));
        assert!(!survives(1, 2) && !survives(5, 2) && !survives(2, 5));
        assert!(atomic().is_normal(&request(Op::Write, 1, 8)));
        assert!(!atomic().is_normal(&request(Op::Write, 1, 9)));
        assert!(!atomic().survives(&request(Op::WriteZeroes, 2, 2)));
        let within = Request { lba: 17, ..request(Op::Write, 2, 1) };
        assert!(!atomic().survives(&within), "blocks are whole");
    }

    /// An oracle of twelve units, some of which were written before; then `commands` in flight, and a cut.
    fn cut(commands: &[(u64, u32)]) -> (Oracle, Vec<u64>) {
        let mut oracle = Oracle::new(12, 8, Promise::None).with_atomic(Some(atomic()));
        let before = oracle.submit(AT, request(Op::Write, 0, 12));
        oracle.complete(AT, before, Ended::Done, &[]).unwrap();
        let submit =
            |&(unit, units): &(u64, u32)| oracle.submit(AT, request(Op::Write, unit, units)).0;
        let ids = commands.iter().map(submit).collect();
        oracle.cut(AT);
        oracle.restore(AT);
        (oracle, ids)
    }

    /// Unit by unit: no read sees more than one.
    fn left(oracle: &mut Oracle, found: &[u64]) -> Result<(), Box<Violation>> {
        for (unit, stamp) in (0..).zip(found) {
            let id = oracle.submit(AT, request(Op::Read, unit, 1));
            oracle.complete(AT, id, Ended::Done, &[*stamp])?;
        }
        oracle.judge_left()
    }

    #[test]
    fn what_a_cut_leaves_is_whole() {
        let (oracle, ids) = cut(&[(2, 4)]);
        let new = ids[0];
        for (found, is_whole) in [
            ([1, 1, 1, 1, 1, 1], true),
            ([1, 1, new, new, new, new], true),
            ([1, 1, new, new, 1, new], false),
            ([0, 0, new, new, new, 0], false),
        ] {
            let judged = left(&mut oracle.clone(), &found);
            assert_eq!(judged.is_ok(), is_whole, "{found:?}");
        }
        let torn = left(&mut oracle.clone(), &[1, 1, new, new, 1, new]).unwrap_err();
        assert_eq!((torn.unit, torn.problem), (4, Problem::Torn { command: Id(new) }));
    }

    #[test]
    fn across_a_line_and_above_the_limit_nothing_is_promised() {
        let (mut oracle, ids) = cut(&[(0, 4)]);
        left(&mut oracle, &[ids[0], ids[0], 1, 1]).unwrap();
        let (mut oracle, ids) = cut(&[(2, 5)]);
        left(&mut oracle, &[1, 1, ids[0], 1, 1, 1, 1]).unwrap();
    }

    #[test]
    fn of_two_that_overlap_one_comes_after_the_other() {
        let (oracle, ids) = cut(&[(2, 3), (3, 3)]);
        let (one, two) = (ids[0], ids[1]);
        for (found, is_whole) in [
            ([1, 1, one, one, one, 1], true),
            ([1, 1, one, two, two, two], true),
            ([1, 1, one, one, one, two], true),
            ([1, 1, one, one, two, two], false),
            ([1, 1, 1, two, two, two], true),
            ([1, 1, one, one, two, 1], false),
        ] {
            let judged = left(&mut oracle.clone(), &found);
            assert_eq!(judged.is_ok(), is_whole, "{found:?}");
        }
    }

    /// While the power is on, a read sees all or nothing of up to eight blocks; units that a drive has lost excuse it.
    #[test]
    fn a_read_sees_all_or_nothing_and_losses_excuse() {
        let mut oracle = Oracle::new(12, 8, Promise::Full).with_atomic(Some(atomic()));
        let write = oracle.submit(AT, request(Op::Write, 1, 6));
        let mut early = oracle.clone();
        let read = early.submit(AT, request(Op::Read, 0, 8));
        let torn = early.complete(AT, read, Ended::Done, &[0, write.0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(torn.unwrap_err().problem, Problem::Torn { command: write });
        let (mut oracle, ids) = cut(&[(2, 4)]);
        oracle.note_loss_allowed([4]);
        left(&mut oracle, &[1, 1, ids[0], ids[0], 1, ids[0]]).unwrap();
    }
}

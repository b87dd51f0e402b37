//! The oracle: checks the commands and results of a drive against the model.

mod atomic;
mod flush;

use std::collections::VecDeque;

use leyden_sim::Time;

pub use atomic::Atomic;
use atomic::AtomicPromise;

use crate::command::{Effect, Touched};
use crate::log::{Entry, Flush, Log, PowerCut, Tick};
use crate::view::{Known, Seen, Unit};
use crate::{Ended, Fate, Id, Op, Promise, Request, Violation};

/// Losses that the drive reported ([`Oracle::note_loss_allowed`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Units that it named.
    pub reported: u64,
    /// Units whose place it named as forgotten ([`Oracle::note_uncertain`]).
    pub uncertain: u64,
    /// Units among all of them that turned out to be older than what was promised.
    pub confirmed: u64,
}

/// Something that a later FLUSH makes durable.
#[derive(Clone, Copy, Debug)]
enum Unflushed {
    /// A command was acknowledged.
    Acknowledged(Id),
    /// A unit was seen to have a stamp.
    Seen { unit: u32, stamp: u64 },
}

/// A read in flight.
#[derive(Clone, Debug)]
struct Reading {
    id: Id,
    seen: Vec<Seen>,
}

/// Knows what each unit may be. See the crate's documentation for the model.
///
/// ```
/// use leyden_oracle::{Ended, Op, Oracle, Promise, Request};
/// use leyden_sim::Time;
///
/// let mut oracle = Oracle::new(100, 8, Promise::Full);
/// let (at, then) = (Time::from_ns(1), Time::from_ns(2));
/// let request = Request { op: Op::Write, lba: 0, sectors: 8, fua: false, plp: false };
/// let write = oracle.submit(at, request);
/// oracle.complete(then, write, Ended::Done, &[]).unwrap();
/// oracle.cut(then);
/// oracle.restore(then);
/// let read = oracle.submit(then, Request { op: Op::Read, ..request });
/// let lost = oracle.complete(then, read, Ended::Done, &[0]).unwrap_err();
/// assert_eq!(lost.promised.unwrap().id, write);
/// ```
#[derive(Clone, Debug)]
pub struct Oracle {
    pub(crate) promise: Promise,
    /// A FLUSH ends when the trims before it are on flash, whatever the capacitors can save.
    flushes_trims: bool,
    unit_sectors: u32,
    now: Tick,
    pub(crate) log: Log,
    pub(crate) units: Vec<Unit>,
    /// Commands in flight that are not reads, in no order.
    in_flight: Vec<Id>,
    reading: Vec<Reading>,
    /// Kept for reuse.
    spare: Vec<Vec<Seen>>,
    /// In the order of their ticks.
    unflushed: VecDeque<(Tick, Unflushed)>,
    pub(crate) flushes: Vec<Flush>,
    pub(crate) cuts: Vec<PowerCut>,
    /// The tick of the last cut.
    pub(crate) last_cut: Tick,
    losses: Losses,
    /// Units that a cache has failed to write out, of which no flush has said so.
    unwritten: Vec<u32>,
    atomic: AtomicPromise,
}

impl Oracle {
    /// For a drive that was never written: all of its `units` of `unit_sectors` are zeroes.
    ///
    /// # Panics
    /// If a unit has no sectors.
    pub fn new(units: u32, unit_sectors: u32, promise: Promise) -> Self {
        assert!(unit_sectors > 0, "a unit has sectors");
        Self {
            promise,
            flushes_trims: false,
            unit_sectors,
            now: Tick::START,
            log: Log::default(),
            units: vec![Unit::NEW; units as usize],
            in_flight: Vec::new(),
            reading: Vec::new(),
            spare: Vec::new(),
            unflushed: VecDeque::new(),
            flushes: Vec::new(),
            cuts: Vec::new(),
            last_cut: Tick::START,
            losses: Losses::default(),
            unwritten: Vec::new(),
            atomic: AtomicPromise::default(),
        }
    }

    /// For a drive whose FLUSH writes trims to flash: what it forgets in a cut ([`Oracle::note_uncertain`])
    /// undoes none that a FLUSH has covered.
    #[must_use]
    pub const fn flushing_trims(mut self, flushes_trims: bool) -> Self {
        self.flushes_trims = flushes_trims;
        self
    }

    /// The losses that the drive reported, and how many of them were seen.
    pub const fn losses(&self) -> Losses {
        self.losses
    }

    /// Commands that are remembered.
    pub fn remembered(&self) -> usize {
        self.log.len()
    }

    fn tick(&mut self) -> Tick {
        self.now.0 += 1;
        self.now
    }

    /// A command is about to be submitted. Its number is the stamp that it must write.
    ///
    /// # Panics
    /// If it reaches beyond the drive.
    pub fn submit(&mut self, at: Time, request: Request) -> Id {
        let submitted = self.tick();
        let touched = Touched::new(&request, self.unit_sectors);
        assert!(touched.end as usize <= self.units.len(), "{request:?} is beyond the drive");
        let id = self.log.push(Entry {
            request,
            touched,
            submitted,
            submitted_at: at,
            ended: Tick::NEVER,
            ended_at: Time::MAX,
            fate: Fate::InFlight,
        });
        if request.op == Op::Read {
            let mut seen = self.spare.pop().unwrap_or_default();
            let units = touched.first as usize..touched.end as usize;
            seen.extend(self.units[units].iter().map(Seen::new));
            self.reading.push(Reading { id, seen });
            return id;
        }
        self.in_flight.push(id);
        for (unit, effect) in touched.effects() {
            let unit = &mut self.units[unit as usize];
            unit.in_flight += 1;
            unit.submitted = submitted;
            if effect == Effect::Zeroes {
                unit.zeroing += 1;
                unit.zero_submitted = submitted;
            }
        }
        id
    }

    /// A command has completed; `data` is what a read returned, a stamp for each unit touched.
    ///
    /// # Panics
    /// If no such command is in flight.
    pub fn complete(
        &mut self,
        at: Time,
        id: Id,
        ended: Ended,
        data: &[u64],
    ) -> Result<(), Box<Violation>> {
        let now = self.tick();
        let entry = self.log.get_mut(id).expect("the command was submitted");
        assert_eq!(entry.fate, Fate::InFlight, "a command ends once");
        entry.ended = now;
        entry.ended_at = at;
        entry.fate = match ended {
            Ended::Done => Fate::Acknowledged,
            Ended::Failed => Fate::Failed,
        };
        let (op, submitted) = (entry.request.op, entry.submitted);
        if op == Op::Read {
            return self.end_read(at, id, ended, data);
        }
        let units = match op {
            Op::Flush => 0..self.units.len() as u32,
            _ => entry.touched.units(),
        };
        self.in_flight.retain(|&other| other != id);
        match (op, ended) {
            (Op::Flush | Op::Sync, Ended::Done) => {
                self.flushed(submitted, &units);
                self.flushes.push(Flush { id, units, submitted, completed: now, completed_at: at });
            }
            (Op::Flush | Op::Sync, Ended::Failed) => self.give_up(op, &units),
            _ => self.end_change(id, ended),
        }
        Ok(())
    }

    fn end_change(&mut self, id: Id, ended: Ended) {
        let Self { log, units, promise, unflushed, now, .. } = self;
        let entry = log.get(id).expect("it was just there");
        let at_once = promise.at_once(&entry.request);
        for (unit, effect) in entry.touched.effects() {
            let unit = &mut units[unit as usize];
            unit.in_flight -= 1;
            if effect == Effect::Zeroes {
                unit.zeroing -= 1;
                unit.zero_ended = *now;
                if ended == Ended::Failed {
                    unit.zero_failed = *now;
                }
            }
            if ended == Ended::Done {
                // A cache's data from before its failed write of the unit may be gone.
                if at_once || entry.submitted > unit.unwritten {
                    unit.current.raise(entry.submitted);
                }
                if at_once {
                    unit.promised(entry.submitted, effect);
                }
            }
        }
        if ended == Ended::Done && !at_once {
            unflushed.push_back((*now, Unflushed::Acknowledged(id)));
        }
    }

    fn end_read(
        &mut self,
        at: Time,
        id: Id,
        ended: Ended,
        data: &[u64],
    ) -> Result<(), Box<Violation>> {
        let index = self.reading.iter().position(|read| read.id == id);
        let mut read = self.reading.swap_remove(index.expect("reads in flight are kept"));
        let entry = self.log.get(id).expect("it was just there");
        let (first, submitted) = (entry.touched.first, entry.submitted);
        let mut result = Ok(());
        for (unit, seen) in (first..).zip(&read.seen) {
            let found = data.get((unit - first) as usize).copied().filter(|_| ended == Ended::Done);
            match found {
                Some(stamp) if self.may_return(unit, seen, submitted, stamp) => {
                    self.learn(unit, *seen, submitted, stamp);
                }
                _ => {
                    result = Err(self.violation(unit, seen, id, at, found));
                    break;
                }
            }
        }
        read.seen.clear();
        self.spare.push(read.seen);
        result?;
        if ended == Ended::Done { self.judge_read(first, data) } else { Ok(()) }
    }

    /// True if a read submitted at `read` may return `stamp` of unit `number` now.
    pub(crate) fn may_return(&self, number: u32, seen: &Seen, read: Tick, stamp: u64) -> bool {
        let unit = &self.units[number as usize];
        if !seen.allows(unit, number, &self.log, read, stamp) {
            return false;
        }
        // Two reads of what recovery left agree, and so do two of a unit that nothing changed.
        let is_left = seen.since() < self.last_cut && self.is_from_before_cut(number, stamp);
        if is_left && unit.left.is_some_and(|left| left != stamp) {
            return false;
        }
        let unchanged = seen.quiet && unit.submitted < read;
        !unchanged || Seen::new(unit).allows(unit, number, &self.log, read, stamp)
    }

    /// True if a power cut now may leave `unit` with `stamp`, 0 for zeroes: every promise would be kept.
    pub fn may_survive(&self, unit: u32, stamp: u64) -> bool {
        let of = &self.units[unit as usize];
        let left = Seen::left(of.durable, of.may_be_zeroed(&of.durable));
        left.allows(of, unit, &self.log, self.now, stamp)
    }

    /// True if what has `stamp` was submitted before the last cut.
    fn is_from_before_cut(&self, number: u32, stamp: u64) -> bool {
        match self.log.stamped(number, stamp) {
            Some(entry) => entry.submitted < self.last_cut,
            None => stamp != 0 || self.units[number as usize].zero_submitted < self.last_cut,
        }
    }

    /// Draws conclusions from a read submitted at `read` that returned `stamp`, as it may.
    fn learn(&mut self, number: u32, seen: Seen, read: Tick, stamp: u64) {
        let cut = self.last_cut;
        if seen.since() < cut && self.is_from_before_cut(number, stamp) {
            self.learn_left(number, stamp);
        }
        let unit = &mut self.units[number as usize];
        if !seen.quiet || unit.submitted >= read || unit.is_unwritten() {
            return;
        }
        // Nothing changed the unit meanwhile: of those that overlapped before, this one stayed.
        if unit.current.base == stamp && unit.current.since > unit.submitted {
            return; // known
        }
        if !unit.current.narrow(stamp, self.now) {
            return;
        }
        // A version that was known and promised stays, and writes that failed since did not happen.
        if unit.durable_base() == Some(stamp) {
            unit.durable.narrow(stamp, self.now);
            return;
        }
        let (failed, at_once) = match self.log.stamped(number, stamp) {
            Some(entry) => (entry.fate == Fate::Failed, self.promise.at_once(&entry.request)),
            // Some zeroes or other. Any other stamp that is forgotten is the base.
            None => (unit.may_be_failed_zeroes(&unit.durable), self.promise == Promise::Full),
        };
        // A failed command promises nothing, though it may be seen until the next cut.
        if failed {
            return;
        }
        if at_once {
            unit.durable.narrow(stamp, self.now);
        } else {
            self.unflushed.push_back((self.now, Unflushed::Seen { unit: number, stamp }));
        }
    }

    /// Recovery left `stamp` in the unit, and it stays.
    fn learn_left(&mut self, number: u32, stamp: u64) {
        let cut = self.last_cut;
        let unit = &mut self.units[number as usize];
        unit.left = Some(stamp);
        unit.current.narrow(stamp, cut);
        unit.durable.narrow(stamp, cut);
        if let Some(lost) = unit.lost.take() {
            let zeroes = unit.may_be_zeroed(&lost.before);
            let kept = Seen::left(lost.before, zeroes);
            let kept = kept.allows(unit, number, &self.log, cut, stamp);
            self.losses.confirmed += u64::from(!kept);
        }
    }

    /// The power is cut. What is in flight will not complete.
    pub fn cut(&mut self, at: Time) {
        let now = self.tick();
        for id in std::mem::take(&mut self.in_flight) {
            let entry = self.log.get_mut(id).expect("it is in flight");
            (entry.ended, entry.ended_at, entry.fate) = (now, at, Fate::Cut);
        }
        for mut read in std::mem::take(&mut self.reading) {
            let entry = self.log.get_mut(read.id).expect("it is in flight");
            (entry.ended, entry.ended_at, entry.fate) = (now, at, Fate::Cut);
            read.seen.clear();
            self.spare.push(read.seen);
        }
        for unit in &mut self.units {
            if unit.zeroing > 0 {
                (unit.zeroing, unit.zero_ended) = (0, now);
            }
            unit.in_flight = 0;
            unit.left = None;
            unit.current = unit.durable;
            (unit.unwritten, unit.given_up) = (Tick::START, Tick::START);
        }
        self.unflushed.clear();
        self.unwritten.clear();
        self.last_cut = now;
        self.cuts.push(PowerCut { tick: now, at, restored: None });
    }

    /// Power is back.
    pub fn restore(&mut self, at: Time) {
        if let Some(cut) = self.cuts.last_mut() {
            cut.restored = Some(at);
        }
    }

    /// The drive has reported that it lacked the energy to keep what it had promised of these units.
    /// Call it between the cut and the first read after it.
    pub fn note_loss_allowed(&mut self, units: impl IntoIterator<Item = u32>) {
        for unit in units {
            self.units[unit as usize].lose();
            self.losses.reported += 1;
            self.excuse(unit);
        }
    }

    /// The drive has reported that it lacked the energy to save where these units lie. It looked for the
    /// newest version that flash holds: what was promised, or something that an earlier recovery had given
    /// up, and anything if zeroes were promised that nothing on flash tells of. Call it together with
    /// [`Oracle::note_loss_allowed`].
    pub fn note_uncertain(&mut self, units: impl IntoIterator<Item = u32>) {
        for number in units {
            self.losses.uncertain += 1;
            self.excuse(number);
            if self.flushes_trims && self.units[number as usize].has_flushed_zeroes() {
                continue;
            }
            let known = self.known(number);
            self.units[number as usize].blur(known);
        }
    }

    /// The known durable content of a unit, or its promise.
    fn known(&self, number: u32) -> Known {
        let unit = &self.units[number as usize];
        let durable = unit.durable;
        if unit.may_be_zeroed(&durable) {
            return Known::Zeroes;
        }
        if durable.has_base() {
            return match (durable.base, self.log.stamped(number, durable.base)) {
                (0, _) => Known::Zeroes,
                (_, Some(entry)) => Known::Write(entry.submitted),
                (stamp, None) => Known::Forgotten(stamp),
            };
        }
        match self.log.submitted_at(durable.floor) {
            Some((_, entry)) if entry.touched.effect(number) == Some(Effect::Stamp) => {
                Known::Write(entry.submitted)
            }
            _ => Known::Zeroes,
        }
    }

    /// A cache that the host talks to has failed to write these units out. Call it before the end of any
    /// command that ended later.
    ///
    /// Writes submitted before may be read while the cache has them, and be gone then: until they
    /// are replaced, reads may return any version that a power cut might leave. A flush must report
    /// that. If it does, by failing, later ones promise none of those writes; if it ends well, all
    /// of them are promised.
    pub fn note_unwritten(&mut self, units: impl IntoIterator<Item = u32>) {
        let now = self.tick();
        for number in units {
            let unit = &mut self.units[number as usize];
            unit.unwritten = now;
            unit.current = unit.durable;
            self.unwritten.push(number);
            for read in &mut self.reading {
                let touched = self.log.get(read.id).expect("it is in flight").touched;
                if touched.units().contains(&number) {
                    read.seen[(number - touched.first) as usize].widen(unit);
                }
            }
        }
    }

    /// Forgets what can no longer matter: commands before the last time that every unit was known.
    /// Costs a pass over the units; call it after reading all of them.
    pub fn compact(&mut self) {
        if !self.reading.is_empty() {
            return;
        }
        let since = |unit: &Unit| unit.current.since.min(unit.durable.since);
        let known = self.units.iter().map(since).min().unwrap_or(self.now);
        self.log.forget(known);
        self.flushes.retain(|flush| flush.completed > known);
        self.cuts.retain(|cut| cut.tick >= known);
    }
}

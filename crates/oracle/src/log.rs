//! Every command, in the order of submission, numbered without gaps.

use std::collections::VecDeque;
use std::ops::Range;

use leyden_sim::Time;

use crate::command::{Effect, Touched};
use crate::{Fate, Id, Request};

/// The oracle's own clock: each call is a tick, so that before and after are never in doubt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Tick(pub(crate) u64);

impl Tick {
    /// Before everything.
    pub(crate) const START: Self = Self(0);
    /// Not yet.
    pub(crate) const NEVER: Self = Self(u64::MAX);
}

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) touched: Touched,
    pub(crate) submitted: Tick,
    pub(crate) submitted_at: Time,
    /// When it was acknowledged, failed, or cut off; [`Tick::NEVER`] while it is in flight.
    pub(crate) ended: Tick,
    pub(crate) ended_at: Time,
    pub(crate) fate: Fate,
}

/// A FLUSH that completed.
#[derive(Clone, Debug)]
pub(crate) struct Flush {
    pub(crate) id: Id,
    /// The units that it covers.
    pub(crate) units: Range<u32>,
    pub(crate) submitted: Tick,
    pub(crate) completed: Tick,
    pub(crate) completed_at: Time,
}

/// A power cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PowerCut {
    pub(crate) tick: Tick,
    pub(crate) at: Time,
    pub(crate) restored: Option<Time>,
}

/// The commands that still matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The number of the first entry less one: numbers begin at 1.
    forgotten: u64,
    /// When the last of those that are forgotten ended.
    last_ended: Tick,
}

impl Log {
    /// Adds a command that has just been submitted.
    pub(crate) fn push(&mut self, entry: Entry) -> Id {
        self.entries.push_back(entry);
        Id(self.forgotten + self.entries.len() as u64)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Entry> {
        let index = id.0.checked_sub(self.forgotten + 1)?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Entry> {
        let index = id.0.checked_sub(self.forgotten + 1)?;
        self.entries.get_mut(usize::try_from(index).ok()?)
    }

    /// The command that stamped `unit` with `stamp`, if one did and it is remembered.
    pub(crate) fn stamped(&self, unit: u32, stamp: u64) -> Option<&Entry> {
        self.get(Id(stamp)).filter(|entry| entry.touched.effect(unit) == Some(Effect::Stamp))
    }

    /// The command submitted at `tick`.
    pub(crate) fn submitted_at(&self, tick: Tick) -> Option<(Id, &Entry)> {
        let index = self.entries.binary_search_by_key(&tick, |entry| entry.submitted).ok()?;
        Some((Id(self.forgotten + 1 + index as u64), &self.entries[index]))
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Id, &Entry)> {
        let first = self.forgotten + 1;
        self.entries.iter().enumerate().map(move |(index, entry)| (Id(first + index as u64), entry))
    }

    /// True if `stamp` was given to a command that is forgotten.
    pub(crate) fn is_forgotten(&self, stamp: u64) -> bool {
        stamp != 0 && stamp <= self.forgotten
    }

    /// True if all commands that are forgotten had ended at `tick`.
    pub(crate) fn had_ended(&self, tick: Tick) -> bool {
        self.last_ended < tick
    }

    /// Forgets the commands at the front that were submitted up to `tick` and have ended.
    pub(crate) fn forget(&mut self, tick: Tick) {
        while let Some(entry) = self.entries.front() {
            if entry.submitted > tick || entry.fate == Fate::InFlight {
                break;
            }
            self.last_ended = self.last_ended.max(entry.ended);
            self.entries.pop_front();
            self.forgotten += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

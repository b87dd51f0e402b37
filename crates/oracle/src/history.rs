//! From ticks back to what happened: fills in a violation. Slow, and only called when there is one.

use leyden_sim::Time;

use crate::log::{Flush, Tick};
use crate::oracle::Oracle;
use crate::view::Seen;
use crate::{Event, Fate, Id, Op, Problem, Promise, Promised, Violation, Why};

/// The most versions and events that a violation lists.
const LISTED: usize = 40;

impl Oracle {
    /// The read `id` must not have returned `found`.
    pub(crate) fn violation(
        &self,
        unit: u32,
        seen: &Seen,
        id: Id,
        completed: Time,
        found: Option<u64>,
    ) -> Box<Violation> {
        let entry = self.log.get(id).expect("the read is in the log");
        let mut violation = self.violation_of(unit, seen, entry.submitted, found);
        (violation.submitted, violation.completed) = (entry.submitted_at, completed);
        violation
    }

    /// `found` is wrong of what had been `seen` at `read`.
    pub(crate) fn violation_of(
        &self,
        unit: u32,
        seen: &Seen,
        read: Tick,
        found: Option<u64>,
    ) -> Box<Violation> {
        let is_allowed = |stamp: &u64| self.may_return(unit, seen, read, *stamp);
        let stamps = self.log.iter().rev().map(|(id, _)| id.0).filter(is_allowed);
        let mut allowed: Vec<u64> = stamps.take(LISTED).collect();
        allowed.extend([seen.view.base, 0].into_iter().filter(is_allowed));
        allowed.sort_unstable();
        allowed.dedup();
        let promised = self.promised(unit, seen.view.floor);
        Box::new(Violation {
            unit,
            problem: self.problem(unit, seen, found, promised.as_ref()),
            found,
            submitted: Time::ZERO,
            completed: Time::ZERO,
            allowed,
            promised,
            history: self.history(unit, read),
        })
    }

    fn problem(
        &self,
        unit: u32,
        seen: &Seen,
        found: Option<u64>,
        promised: Option<&Promised>,
    ) -> Problem {
        let Some(stamp) = found else { return Problem::Unreadable };
        let known = stamp == 0
            || stamp == seen.view.base
            || self.log.stamped(unit, stamp).is_some()
            || self.log.is_forgotten(stamp);
        if !known {
            Problem::NeverWritten
        } else if seen.view.floor <= seen.view.since {
            Problem::Reappeared
        } else if promised.is_some_and(|promised| promised.why == Why::NoCut) {
            Problem::Stale
        } else {
            Problem::Lost
        }
    }

    /// The command submitted at `floor`, and why what it did to `unit` has to be kept.
    fn promised(&self, unit: u32, floor: Tick) -> Option<Promised> {
        let (id, entry) = self.log.submitted_at(floor)?;
        let request = &entry.request;
        let why = if entry.ended > self.last_cut {
            Why::NoCut
        } else if self.promise == Promise::Full {
            Why::Protected
        } else if request.fua && request.op != Op::Trim {
            Why::Fua
        } else if request.plp && self.promise == Promise::Selective {
            Why::Plp
        } else {
            let covers =
                |flush: &&Flush| flush.submitted > entry.ended && flush.units.contains(&unit);
            let flush = self.flushes.iter().find(covers)?;
            let submitted = self.log.get(flush.id).map_or(Time::ZERO, |entry| entry.submitted_at);
            Why::Flushed { submitted, completed: flush.completed_at }
        };
        Some(Promised {
            id,
            op: request.op,
            submitted: entry.submitted_at,
            acknowledged: entry.ended_at,
            why,
        })
    }

    /// Events of `unit` until now, or until the read at tick `read`.
    fn history(&self, unit: u32, read: Tick) -> Vec<Event> {
        let commands = self.log.iter().filter(|(_, entry)| {
            let is_this_read = entry.submitted == read;
            let is_flush = match entry.request.op {
                Op::Flush => true,
                Op::Sync => entry.touched.units().contains(&unit),
                _ => false,
            };
            entry.touched.effect(unit).is_some() || is_flush || is_this_read
        });
        let mut events: Vec<(Tick, Event)> = commands
            .map(|(id, entry)| {
                let ended = (entry.fate != Fate::InFlight).then_some(entry.ended_at);
                let event = Event::Command {
                    id,
                    op: entry.request.op,
                    fua: entry.request.fua,
                    submitted: entry.submitted_at,
                    ended,
                    fate: entry.fate,
                };
                (entry.submitted, event)
            })
            .collect();
        for cut in &self.cuts {
            events.push((cut.tick, Event::Cut(cut.at)));
            events.extend(cut.restored.map(|at| (cut.tick, Event::Restored(at))));
        }
        events.sort_by_key(|(tick, _)| *tick);
        let skip = events.len().saturating_sub(LISTED);
        events.into_iter().skip(skip).map(|(_, event)| event).collect()
    }
}

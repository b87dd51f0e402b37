//! What a drive may be left with: the oracle's allowed versions, at each moment that matters.
//!
//! The promise is defined in `leyden-oracle` and nowhere else. This file only keeps, for each atom, the
//! versions that are worth asking about.
//!
//! Between two ends of flushes (or of writes with force unit access) what is unsettled only grows, and so
//! does what was acknowledged. So a cut just before each such end, and one after everything, stand for all
//! cuts: each state of an earlier moment is there too, with more promises.

use std::collections::BTreeMap;

use leyden_oracle::{Effect, Ended, Id, Op, Oracle, Promise, Request};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

use crate::timeline::{Event, Timeline};

/// Which flushes the drive does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flushes {
    /// All: a lawful drive with a volatile cache.
    All,
    /// All but this one, counted from zero: it is answered and not done.
    Without(usize),
    /// None: a drive that lies. Force unit access is left out, too.
    None,
}

/// An atom that may be one of several versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// The atom.
    pub atom: u32,
    /// The events that made its versions, the newest first; `None` for what was there in the beginning.
    pub versions: Vec<Option<u32>>,
}

/// A moment at which the power may fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The events before it have happened.
    pub at: usize,
    /// What may be lost then, by atom.
    pub unsettled: Vec<Unsettled>,
}

/// The oracle, and what it is asked about.
struct Walk<'a> {
    timeline: &'a Timeline,
    flushes: Flushes,
    oracle: Oracle,
    /// The oracle's numbers of commands, by event.
    ids: Vec<Option<Id>>,
    /// Candidates, in the order of submission.
    candidates: BTreeMap<u32, Vec<Option<u32>>>,
    flushes_seen: usize,
    /// What was there in the beginning is a write to the oracle: for it zeroes are the beginning.
    base: Id,
}

/// The moments at which a cut of the power matters, with everything that may be lost at each.
pub fn cuts(timeline: &Timeline, flushes: Flushes) -> Vec<Cut> {
    cuts_at(timeline, flushes, |_| true)
}

/// As [`cuts`], of the moments that `wanted` names by their event.
pub(crate) fn cuts_at(
    timeline: &Timeline,
    flushes: Flushes,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Cut> {
    let mut walk = Walk::new(timeline, flushes);
    let mut cuts = Vec::new();
    for at in 0..timeline.events().len() {
        if is_moment(timeline, at) && wanted(at) {
            cuts.push(walk.cut(at));
        }
        walk.step(at);
    }
    let end = timeline.events().len();
    if wanted(end) {
        cuts.push(walk.cut(end));
    }
    cuts
}

/// The moments of [`cuts`].
pub(crate) fn moments(timeline: &Timeline) -> Vec<usize> {
    let end = timeline.events().len();
    (0..end).filter(|&at| is_moment(timeline, at)).chain([end]).collect()
}

/// True if event `at` settles something: just before it is when the most can be lost.
fn is_moment(timeline: &Timeline, at: usize) -> bool {
    if at < timeline.begin() {
        return false;
    }
    let (_, event) = timeline.events()[at];
    let Event::Ended { command, is_done: true } = event else { return false };
    match timeline.events()[command].1 {
        Event::Submitted(request) => request.op == Op::Flush || request.fua,
        _ => false,
    }
}

impl<'a> Walk<'a> {
    fn new(timeline: &'a Timeline, flushes: Flushes) -> Self {
        let sectors = timeline.atom_sectors();
        let mut oracle = Oracle::new(timeline.atoms(), sectors, Promise::None);
        let whole = Request {
            op: Op::Write,
            lba: 0,
            sectors: timeline.atoms() * sectors,
            fua: true,
            plp: false,
        };
        let base = oracle.submit(Time::ZERO, whole);
        oracle.complete(Time::ZERO, base, Ended::Done, &[]).expect("a write shows nothing");
        Self {
            timeline,
            flushes,
            oracle,
            ids: vec![None; timeline.events().len()],
            candidates: BTreeMap::new(),
            flushes_seen: 0,
            base,
        }
    }

    fn step(&mut self, at: usize) {
        let (time, event) = self.timeline.events()[at];
        match event {
            Event::Submitted(request) => self.submit(at, time, request),
            Event::Ended { command, is_done } => {
                let Some(id) = self.ids[command] else { return };
                let ended = if is_done { Ended::Done } else { Ended::Failed };
                self.oracle.complete(time, id, ended, &[]).expect("no command here reads");
            }
            Event::Acknowledged(_) => {}
        }
    }

    fn submit(&mut self, at: usize, time: Time, request: Request) {
        if request.op == Op::Flush {
            let number = self.flushes_seen;
            self.flushes_seen += 1;
            let is_done = match self.flushes {
                Flushes::All => true,
                Flushes::Without(ignored) => number != ignored,
                Flushes::None => false,
            };
            if !is_done {
                return; // the oracle does not hear of it
            }
        }
        let fua = request.fua && self.flushes != Flushes::None;
        self.ids[at] = Some(self.oracle.submit(time, Request { fua, ..request }));
        for (atom, _) in request.effects(self.timeline.atom_sectors()) {
            let settled = || vec![self.timeline.newest(atom, at).event];
            self.candidates.entry(atom).or_insert_with(settled).push(Some(at as u32));
        }
    }

    /// What may be lost now, before event `at`.
    fn cut(&mut self, at: usize) -> Cut {
        let Self { timeline, oracle, candidates, base, ids, .. } = self;
        let sectors = timeline.atom_sectors();
        let stamp_of = |atom: u32, event: Option<u32>| {
            let Some(event) = event else { return base.0 };
            let Event::Submitted(request) = timeline.events()[event as usize].1 else {
                unreachable!("versions are made by commands");
            };
            match request.effect(atom, sectors) {
                Some(Effect::Stamp) => ids[event as usize].map_or(0, |id| id.0),
                _ => 0, // the oracle knows zeroes by no number
            }
        };
        candidates.retain(|&atom, versions| {
            versions.retain(|&event| oracle.may_survive(atom, stamp_of(atom, event)));
            versions.len() > 1
        });
        let unsettled = candidates.iter().map(|(&atom, versions)| {
            let versions = versions.iter().rev().copied().collect();
            Unsettled { atom, versions }
        });
        Cut { at, unsettled: unsettled.collect() }
    }
}

//! States that a power cut may leave of a drive: the oracle's allowed versions at each moment that matters.
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

use crate::cut::{Cut, Flushes, Unsettled, Whole};
use crate::state::State;
use crate::timeline::{Event, Timeline};

/// The oracle, and what it is asked about.
struct Walk<'a> {
    timeline: &'a Timeline,
    flushes: Flushes,
    oracle: Oracle,
    /// The oracle's numbers of commands, by event.
    ids: Vec<Option<Id>>,
    /// Candidates, in the order of submission.
    candidates: BTreeMap<u32, Vec<Option<u32>>>,
    /// Commands that are kept or lost as a whole, while something of them may be lost.
    whole: Vec<Whole>,
    flushes_seen: usize,
    /// The initial content is a write to the oracle, which begins with zeroes.
    base: Id,
}

/// The moments at which a cut of the power matters, with everything that may be lost at each.
pub fn cuts(timeline: &Timeline, flushes: Flushes) -> Vec<Cut> {
    cuts_at(timeline, flushes, &|_| true)
}

/// As [`cuts`], of the moments that `wanted` names by their event.
pub(crate) fn cuts_at(
    timeline: &Timeline,
    flushes: Flushes,
    wanted: &dyn Fn(usize) -> bool,
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

/// The first of `states` that a lawful drive is never left in, by its place, and an atom that holds there what it must
/// not.
pub(crate) fn first_unlawful<'a>(
    timeline: &Timeline,
    states: impl Iterator<Item = &'a State>,
) -> Option<(usize, u32)> {
    let moments = moments(timeline);
    // A state allowed at an earlier moment is allowed at the next of these.
    let next = |at: usize| moments[moments.partition_point(|&moment| moment < at)];
    let mut by_moment: BTreeMap<usize, Vec<(usize, &State)>> = BTreeMap::new();
    for (place, state) in states.enumerate() {
        by_moment.entry(next(state.at)).or_default().push((place, state));
    }
    let mut unlawful: Vec<(usize, u32)> = Vec::new();
    for cut in cuts_at(timeline, Flushes::All, &|at| by_moment.contains_key(&at)) {
        let allowed: BTreeMap<u32, &Vec<Option<u32>>> =
            cut.unsettled.iter().map(|unsettled| (unsettled.atom, &unsettled.versions)).collect();
        for &(place, state) in &by_moment[&cut.at] {
            let is_lost = |&&(atom, event): &&(u32, Option<u32>)| {
                let bytes = |event| timeline.version_of(atom, event).map(|it| it.content);
                let versions = allowed.get(&atom);
                !versions
                    .is_some_and(|versions| versions.iter().any(|&it| bytes(it) == bytes(event)))
            };
            unlawful.extend(state.lost.iter().find(is_lost).map(|&(atom, _)| (place, atom)));
            let torn = (!cut.is_whole(state)).then(|| state.lost.first()).flatten();
            unlawful.extend(torn.map(|&(atom, _)| (place, atom)));
        }
    }
    unlawful.into_iter().min()
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
            whole: Vec::new(),
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
            if !self.flushes.does(number) {
                return; // the oracle does not hear of it
            }
        }
        let fua = request.fua && self.flushes != Flushes::None;
        self.ids[at] = Some(self.oracle.submit(time, Request { fua, ..request }));
        let atoms: Vec<u32> =
            request.effects(self.timeline.atom_sectors()).map(|(atom, _)| atom).collect();
        if let [first, .., last] = atoms[..]
            && self.timeline.is_atomic(&request)
        {
            self.whole.push(Whole { event: at as u32, atoms: first..last + 1 });
        }
        for atom in atoms {
            let settled = || vec![self.timeline.newest(atom, at).event];
            self.candidates.entry(atom).or_insert_with(settled).push(Some(at as u32));
        }
    }

    /// Possible losses before event `at`.
    fn cut(&mut self, at: usize) -> Cut {
        let Self { timeline, oracle, candidates, whole, base, ids, .. } = self;
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
        let unsettled: Vec<Unsettled> = unsettled.collect();
        let settled = |whole: &Whole| {
            !unsettled.iter().any(|it| {
                whole.atoms.contains(&it.atom) && it.versions.contains(&Some(whole.event))
            })
        };
        whole.retain(|whole| !settled(whole));
        Cut { at, unsettled, whole: whole.clone(), drives: Vec::new() }
    }
}

#[cfg(test)]
mod twin;

#[cfg(test)]
mod tests {
    use leyden_oracle::Atomic;

    use super::*;

    fn request(op: Op, lba: u64) -> Request {
        Request { op, lba, sectors: u32::from(op == Op::Write), fua: false, plp: false }
    }

    /// Writes sector 1, flushes, and writes it again.
    fn timeline() -> Timeline {
        let mut timeline = Timeline::new(4_096, 512);
        let mut command = |op, byte: u8| {
            let now = timeline.events().last().map_or(Time::ZERO, |(time, _)| *time);
            let data = if op == Op::Write { vec![byte; 512] } else { Vec::new() };
            let command = timeline.submit(now, request(op, 1), &data);
            timeline.end(now + leyden_sim::Span::from_us(1), command, true);
        };
        command(Op::Write, 1);
        command(Op::Flush, 0);
        command(Op::Write, 2);
        timeline
    }

    /// Three sectors at a time, written twice, and one of them once more: whatever is lost of the commands, what is left has
    /// all or nothing of each.
    #[test]
    fn of_an_atomic_command_all_or_nothing_is_left() {
        let atomic = Atomic { block_sectors: 1, normal: (4, 0), power_fail: (4, 0), offset: 0 };
        let mut timeline = Timeline::new(4_096, 512).with_atomic(Some(atomic));
        for (lba, sectors, byte) in [(1, 3, 1), (3, 3, 2), (2, 1, 3), (0, 6, 4)] {
            let now = timeline.events().last().map_or(Time::ZERO, |(time, _)| *time);
            let request = Request { sectors, ..request(Op::Write, lba) };
            let command = timeline.submit(now, request, &vec![byte; 512 * sectors as usize]);
            timeline.end(now + leyden_sim::Span::from_us(1), command, true);
        }
        let cuts = cuts(&timeline, Flushes::All);
        let all = cuts.last().unwrap();
        // The last one is too large to be atomic.
        assert_eq!(all.whole.iter().map(|it| it.event).collect::<Vec<_>>(), [0, 2]);
        let whole = |mut lost: Vec<(u32, Option<u32>)>| {
            all.make_whole(&mut lost);
            lost
        };
        // The first command shows in sector 1, and the second hides it in sector 3: that stays.
        let lost = whole(vec![(1, Some(0)), (2, None), (3, Some(2)), (4, None), (5, None)]);
        assert_eq!(lost, [(1, Some(0)), (2, Some(0)), (3, Some(2)), (4, Some(2)), (5, Some(2))]);
        // Nothing of either: nothing is given back.
        let none = vec![(1, None), (2, None), (3, None), (4, None), (5, None)];
        assert_eq!(whole(none.clone()), none);
        for round in 0..200 {
            let state = crate::choose::choose(all, round, 5);
            assert!(state.is_none_or(|state| all.is_whole(&state)));
        }
        let end = timeline.events().len();
        let torn = State::new(end, vec![(1, Some(0)), (2, None), (3, Some(0))]);
        assert_eq!(first_unlawful(&timeline, [&torn].into_iter()), Some((0, 1)));
    }

    #[test]
    fn flushed_writes_may_not_be_lost() {
        let timeline = timeline();
        let state = |at, event| State::new(at, vec![(1, event)]);
        let end = timeline.events().len();
        // Nothing is lost; the second write is; the first, while it is not flushed.
        let lawful = [State::new(end, Vec::new()), state(end, Some(0)), state(2, None)];
        assert_eq!(first_unlawful(&timeline, lawful.iter()), None);
        // The first write, after the flush.
        let states = [state(2, None), state(end, Some(0)), state(end, None)];
        assert_eq!(first_unlawful(&timeline, states.iter()), Some((2, 1)));
    }
}

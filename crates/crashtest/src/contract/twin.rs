//! A slow twin of the contract: the lawful states of small timelines, from what the promise says in words.
//!
//! Commands come one after the other; the last one may be under way. A command's version of an atom is durable once it
//! has ended well and either had force unit access, or a flush that was submitted after its end has ended well. An atom
//! holds its newest durable version, or any submitted after that. A failed command may have happened; nothing makes
//! it durable.

use std::collections::BTreeSet;

use leyden_oracle::{Op, Request};
use leyden_sim::{Rng, Span, Time};

use super::{cuts, first_unlawful};
use crate::choose::choose;
use crate::cut::Flushes;
use crate::state::State;
use crate::timeline::Timeline;

/// Atoms of a timeline, each of a sector.
const ATOMS: u32 = 3;
/// Commands of a timeline, at most.
const MOST_STEPS: u64 = 7;
/// Rounds in which a moment must have shown all of its states.
const ROUNDS: u64 = 5 + 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Well,
    Failed,
    UnderWay,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    first: u32,
    atoms: u32,
    fua: bool,
    byte: u8,
    end: End,
}

impl Step {
    fn draw(rng: &mut Rng, number: u64, is_last: bool) -> Self {
        let op = match rng.below(8) {
            0..4 => Op::Write,
            4 | 5 => Op::Flush,
            6 => Op::Trim,
            _ => Op::WriteZeroes,
        };
        let first = rng.below(u64::from(ATOMS)) as u32;
        let end = match rng.below(6) {
            0 => End::Failed,
            1 if is_last => End::UnderWay,
            _ => End::Well,
        };
        let fua = matches!(op, Op::Write | Op::WriteZeroes) && rng.below(4) == 0;
        let atoms = 1 + rng.below(u64::from(ATOMS - first)) as u32;
        Self { op, first, atoms, fua, byte: 1 + number as u8, end }
    }

    fn request(&self) -> Request {
        let (lba, sectors) =
            if self.op == Op::Flush { (0, 0) } else { (self.first.into(), self.atoms) };
        Request { op: self.op, lba, sectors, fua: self.fua, plp: false }
    }

    fn changes(&self, atom: u32) -> bool {
        self.op != Op::Flush && (self.first..self.first + self.atoms).contains(&atom)
    }

    /// The content that it leaves in an atom.
    const fn content(&self) -> u8 {
        if matches!(self.op, Op::Write) { self.byte } else { 0 }
    }

    /// Its end settles something.
    fn settles(&self) -> bool {
        self.end == End::Well && (self.op == Op::Flush || self.fua)
    }
}

/// Where each step begins and ends among the events.
fn places(steps: &[Step]) -> Vec<(usize, usize)> {
    (0..steps.len()).map(|at| (2 * at, 2 * at + 1)).collect()
}

/// The values that `atom` may hold after a cut before event `at`; `ignores` are flushes, and
/// commands with force unit access, that are answered and not done.
fn lawful(steps: &[Step], at: usize, atom: u32, ignores: impl Fn(usize) -> bool) -> BTreeSet<u8> {
    let places = places(steps);
    let has_ended = |step: usize| steps[step].end == End::Well && places[step].1 < at;
    let is_flushed = |step: usize| {
        let mut later = step + 1..steps.len();
        later.any(|it| steps[it].op == Op::Flush && has_ended(it) && !ignores(it))
    };
    let is_durable =
        |step: usize| has_ended(step) && (steps[step].fua && !ignores(step) || is_flushed(step));
    let changing = |&step: &usize| steps[step].changes(atom) && places[step].0 < at;
    let all: Vec<usize> = (0..steps.len()).filter(changing).collect();
    let newest = all.iter().rposition(|&step| is_durable(step));
    let base = if newest.is_none() { Some(0) } else { None };
    let from = newest.unwrap_or(0);
    base.into_iter().chain(all[from..].iter().map(|&step| steps[step].content())).collect()
}

fn timeline(steps: &[Step]) -> Timeline {
    let mut timeline = Timeline::new(u64::from(ATOMS) * 512, 512);
    let mut now = Time::ZERO;
    for step in steps {
        let data = match step.op {
            Op::Write => vec![step.byte; step.atoms as usize * 512],
            _ => Vec::new(),
        };
        let command = timeline.submit(now, step.request(), &data);
        now += Span::from_us(1);
        if step.end != End::UnderWay {
            timeline.end(now, command, step.end == End::Well);
        }
        now += Span::from_us(1);
    }
    timeline
}

/// The content of an atom written by an event.
fn content(timeline: &Timeline, atom: u32, event: Option<u32>) -> u8 {
    let version = timeline.version_of(atom, event).expect("a version");
    timeline.store().bytes(version.content)[0]
}

/// The value of an atom in `state`.
fn held(timeline: &Timeline, state: &State, atom: u32) -> u8 {
    let lost = state.lost.iter().find(|(lost, _)| *lost == atom);
    let event = lost.map_or_else(|| timeline.newest(atom, state.at).event, |&(_, event)| event);
    content(timeline, atom, event)
}

fn check(steps: &[Step], flushes: Flushes, ignores: impl Fn(usize) -> bool + Copy) {
    let timeline = timeline(steps);
    let cuts = cuts(&timeline, flushes);
    // Just before each end that settles something, and after everything.
    let settling = steps.iter().zip(places(steps)).filter(|(step, _)| step.settles());
    let moments: Vec<usize> =
        settling.map(|(_, (_, end))| end).chain([timeline.events().len()]).collect();
    assert_eq!(cuts.iter().map(|cut| cut.at).collect::<Vec<_>>(), moments, "{steps:?}");
    for cut in &cuts {
        let allowed: Vec<BTreeSet<u8>> =
            (0..ATOMS).map(|atom| lawful(steps, cut.at, atom, ignores)).collect();
        let states: Vec<State> = (0..ROUNDS).filter_map(|round| choose(cut, round, 3)).collect();
        let shown: BTreeSet<Vec<u8>> = states
            .iter()
            .map(|state| (0..ATOMS).map(|atom| held(&timeline, state, atom)).collect())
            .collect();
        let expected: usize = allowed.iter().map(BTreeSet::len).product();
        for state in &shown {
            let is_lawful = state.iter().zip(&allowed).all(|(it, allowed)| allowed.contains(it));
            assert!(is_lawful, "{state:?} before event {} of {steps:?}: {allowed:?}", cut.at);
        }
        // No more than 64 combinations of versions are all tried.
        let versions: usize = cut.unsettled.iter().map(|it| it.versions.len()).product();
        assert!(
            versions > 64 || shown.len() == expected,
            "{shown:?} before event {} of {steps:?}: {allowed:?}",
            cut.at
        );
        if flushes == Flushes::All {
            assert_eq!(first_unlawful(&timeline, states.iter()), None, "{steps:?}");
            refuses_others(&timeline, cut.at, &allowed);
        }
    }
}

/// A state in which an atom holds another version than it may is not lawful.
fn refuses_others(timeline: &Timeline, at: usize, allowed: &[BTreeSet<u8>]) {
    for atom in 0..ATOMS {
        for version in timeline.versions_before(atom, at) {
            if !allowed[atom as usize].contains(&content(timeline, atom, version.event)) {
                let state = State::new(at, vec![(atom, version.event)]);
                let found = first_unlawful(timeline, [&state].into_iter());
                assert_eq!(found, Some((0, atom)), "{state:?}");
            }
        }
    }
}

#[test]
fn the_contract_allows_what_the_promise_says_and_nothing_else() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed, "small timelines");
        let count = 1 + rng.below(MOST_STEPS);
        let steps: Vec<Step> =
            (0..count).map(|number| Step::draw(&mut rng, number, number + 1 == count)).collect();
        check(&steps, Flushes::All, |_| false);
        check(&steps, Flushes::None, |_| true);
        let flushes: Vec<usize> =
            (0..steps.len()).filter(|&step| steps[step].op == Op::Flush).collect();
        for (number, &ignored) in flushes.iter().enumerate() {
            check(&steps, Flushes::Without(number), |step| step == ignored);
        }
    }
}

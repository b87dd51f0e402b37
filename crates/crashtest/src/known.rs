//! Outcomes that are known without another try: of states in which the file system and the software read what they
//! read in an earlier one.
//!
//! Recovery and check are programs: what they do depends on what they have read so far. If a state holds, in every atom
//! that was read while an earlier state was tried, what that one held, and as much was acknowledged, it ends alike.
//! Clocks, random numbers and what a check keeps between states are not read from the drive: so one of
//! [`SAMPLE`] such states is tried all the same, and one that ends otherwise ends the guessing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::state::{Image, State};
use crate::store::Content;
use crate::timeline::Timeline;
use crate::verdict::{Outcome, Verdict};

/// One of this number of states with a known outcome is tried.
const SAMPLE: u64 = 32;

/// A prediction for a state before it is tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Guess {
    /// Nothing: it is tried.
    Unknown,
    /// It ends so, and is tried to see whether that is right.
    Sampled(Outcome),
    /// It ends so.
    Known(Outcome),
}

/// Atoms with what was read in them, in the order of reading.
type Reads = Vec<(u32, Content)>;

/// Outcomes by what was read: a radix tree.
#[derive(Clone, Debug)]
struct Node {
    /// Reads common to all of its outcomes.
    reads: Reads,
    next: Next,
}

#[derive(Clone, Debug)]
enum Next {
    End(Outcome),
    /// The atom that is read then, and what follows on each of its contents.
    Atom(u32, BTreeMap<Content, Node>),
}

/// The outcomes of states that were tried.
#[derive(Clone, Debug)]
pub(crate) struct Known<'a> {
    timeline: &'a Timeline,
    /// By the number of lines that had been acknowledged.
    roots: BTreeMap<usize, Node>,
    guesses: u64,
    is_refuted: bool,
}

impl<'a> Known<'a> {
    pub(crate) const fn new(timeline: &'a Timeline) -> Self {
        Self { timeline, roots: BTreeMap::new(), guesses: 0, is_refuted: false }
    }

    /// How `state` ends.
    pub(crate) fn guess(&mut self, state: &State) -> Guess {
        if self.is_refuted {
            return Guess::Unknown;
        }
        let acks = self.timeline.acks_before(state.at);
        let Some(root) = self.roots.get(&acks) else { return Guess::Unknown };
        let image = Image::new(self.timeline, state);
        let Some(outcome) = root.find(&image) else { return Guess::Unknown };
        let outcome = outcome.clone();
        self.guesses += 1;
        if self.guesses.is_multiple_of(SAMPLE) {
            Guess::Sampled(outcome)
        } else {
            Guess::Known(outcome)
        }
    }

    /// `state` was tried, and ended so; `reads` are the atoms that were read, in that order. That a check hung says as much
    /// of this machine's load as of the state: of others nothing is guessed from it.
    pub(crate) fn note(&mut self, state: &State, reads: &[u32], outcome: &Outcome) {
        if outcome.verdict == Verdict::Hung {
            return;
        }
        let acks = self.timeline.acks_before(state.at);
        let image = Image::new(self.timeline, state);
        let reads = reads.iter().map(|&atom| (atom, image.content(atom))).collect();
        match self.roots.entry(acks) {
            Entry::Occupied(root) => {
                root.into_mut().insert(reads, outcome);
            }
            Entry::Vacant(place) => {
                place.insert(Node { reads, next: Next::End(outcome.clone()) });
            }
        }
    }

    /// A state of which `guess` was known ended as `outcome`: if that is another verdict, nothing is guessed any more.
    pub(crate) fn compare(&mut self, guess: &Outcome, outcome: &Outcome) {
        self.is_refuted |= guess.verdict != outcome.verdict;
    }

    /// True if a guess was wrong: outcomes depend on more than what is read.
    pub(crate) const fn is_refuted(&self) -> bool {
        self.is_refuted
    }
}

impl Node {
    fn find(&self, image: &Image<'_>) -> Option<&Outcome> {
        let mut node = self;
        loop {
            if node.reads.iter().any(|&(atom, content)| image.content(atom) != content) {
                return None;
            }
            match &node.next {
                Next::End(outcome) => return Some(outcome),
                Next::Atom(atom, children) => node = children.get(&image.content(*atom))?,
            }
        }
    }

    /// Reads come in nearly the same order each time; one that leaves out what all before it read at its place is not kept.
    fn insert(&mut self, reads: Reads, outcome: &Outcome) {
        let of: BTreeMap<u32, Content> = reads.iter().copied().collect();
        let mut passed = BTreeSet::new();
        let mut node = self;
        loop {
            let differs = |&(atom, content): &(u32, Content)| of.get(&atom) != Some(&content);
            if let Some(at) = node.reads.iter().position(differs) {
                let (atom, content) = node.reads[at];
                let Some(&other) = of.get(&atom) else { return };
                passed.extend(node.reads[..at].iter().map(|(atom, _)| *atom));
                passed.insert(atom);
                let rest = Node::rest(reads, &passed, outcome);
                let below = node.reads.split_off(at + 1);
                node.reads.pop();
                let next = std::mem::replace(&mut node.next, Next::Atom(atom, BTreeMap::new()));
                let old = Node { reads: below, next };
                node.next = Next::Atom(atom, BTreeMap::from([(content, old), (other, rest)]));
                return;
            }
            passed.extend(node.reads.iter().map(|(atom, _)| *atom));
            // One that ended with what was read so far is known already.
            let Next::Atom(atom, children) = &mut node.next else { return };
            let Some(content) = of.get(atom) else { return };
            passed.insert(*atom);
            node = match children.entry(*content) {
                Entry::Occupied(child) => child.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(Node::rest(reads, &passed, outcome));
                    return;
                }
            };
        }
    }

    /// The reads beyond those in `passed`.
    fn rest(reads: Reads, passed: &BTreeSet<u32>, outcome: &Outcome) -> Self {
        let reads = reads.into_iter().filter(|(atom, _)| !passed.contains(atom)).collect();
        Self { reads, next: Next::End(outcome.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use leyden_oracle::{Op, Request};
    use leyden_sim::{Rng, Time};

    use super::*;

    /// Eight atoms, each written twice: three versions.
    fn timeline() -> Timeline {
        let mut timeline = Timeline::new(4_096, 512);
        for round in 1..3_u8 {
            for lba in 0..8 {
                let request = Request { op: Op::Write, lba, sectors: 1, fua: false, plp: false };
                timeline.submit(Time::ZERO, request, &[round; 512]);
            }
        }
        timeline
    }

    fn state(timeline: &Timeline, versions: [usize; 8]) -> State {
        let at = timeline.events().len();
        let event =
            |atom: u32, age: usize| timeline.versions_before(atom, at).nth(age).unwrap().event;
        let lost = (0..).zip(versions).filter(|&(_, age)| age > 0);
        State::new(at, lost.map(|(atom, age)| (atom, event(atom, age))).collect())
    }

    /// A program: the content of each atom names the next read; it returns its reads and its outcome.
    fn program(image: &Image<'_>) -> (Vec<u32>, Outcome) {
        let (mut at, mut reads, mut sum) = (0_u32, Vec::new(), 0_u32);
        while at < 8 {
            reads.push(at);
            let byte = u32::from(image.atom(at)[0]);
            sum = sum * 3 + byte;
            at += 1 + byte * (1 + sum % 2);
        }
        let verdict = if sum.is_multiple_of(5) { Verdict::Failed } else { Verdict::Held };
        (reads, Outcome::new(verdict, sum.to_string()))
    }

    #[test]
    fn guesses_are_the_outcomes_of_tries() {
        let timeline = timeline();
        let mut known = Known::new(&timeline);
        let mut rng = Rng::new(1, "known");
        let mut guessed = 0;
        for _ in 0..3_000 {
            let state = state(&timeline, [(); 8].map(|()| rng.below(3) as usize));
            let (mut reads, outcome) = program(&Image::new(&timeline, &state));
            match known.guess(&state) {
                Guess::Unknown => {
                    // Now and then two reads come the other way around.
                    let last = reads.len() - 1;
                    if last > 0 && rng.below(4) == 0 {
                        reads.swap(last, last - 1);
                    }
                    known.note(&state, &reads, &outcome);
                }
                Guess::Known(guess) | Guess::Sampled(guess) => {
                    assert_eq!(guess, outcome);
                    guessed += 1;
                }
            }
        }
        assert!(guessed > 2_000, "{guessed}");
    }

    #[test]
    fn as_much_must_have_been_acknowledged() {
        let mut timeline = timeline();
        let at = timeline.events().len();
        timeline.mark(Time::ZERO, "ack 1\n");
        let mut known = Known::new(&timeline);
        let before = State::new(at, Vec::new());
        known.note(&before, &[1], &Outcome::new(Verdict::Held, ""));
        assert_ne!(known.guess(&before), Guess::Unknown);
        assert_eq!(known.guess(&State::new(at + 1, Vec::new())), Guess::Unknown);
    }

    #[test]
    fn nothing_is_guessed_from_a_check_that_hung() {
        let timeline = timeline();
        let mut known = Known::new(&timeline);
        let state = state(&timeline, [0; 8]);
        known.note(&state, &[3], &Outcome::new(Verdict::Hung, ""));
        assert_eq!(known.guess(&state), Guess::Unknown);
        known.note(&state, &[3], &Outcome::new(Verdict::Held, ""));
        assert_ne!(known.guess(&state), Guess::Unknown);
    }

    #[test]
    fn one_wrong_guess_ends_all() {
        let timeline = timeline();
        let mut known = Known::new(&timeline);
        let state = state(&timeline, [0; 8]);
        let (held, failed) = (Outcome::new(Verdict::Held, ""), Outcome::new(Verdict::Failed, ""));
        known.note(&state, &[3], &held);
        let mut sampled = 0;
        for _ in 0..SAMPLE * 2 {
            if let Guess::Sampled(guess) = known.guess(&state) {
                sampled += 1;
                known.compare(&guess, &held);
            }
        }
        assert_eq!(sampled, 2);
        assert!(!known.is_refuted());
        known.compare(&held, &failed);
        assert_eq!(known.guess(&state), Guess::Unknown);
    }
}

//! Which states are tried next: those that are not repeats of earlier ones.

use std::collections::BTreeMap;

use crate::choose::{choose, is_counting, round_of, spread};
use crate::cut::Cut;
use crate::history::{History, Keys};
use crate::state::State;

/// After so many rounds that bring nothing new, there is nothing new.
const BARREN_MOST: u64 = 4;
/// So few moments all begin with the choice that loses most: the positive control has no more.
const FEW: usize = 16;

/// States, one after the other; the same for the same cuts and seed.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    history: &'a dyn History,
    cuts: &'a [Cut],
    order: Vec<usize>,
    seed: u64,
    round: u64,
    next: usize,
    /// Rounds in a row that brought nothing new, and whether this one did.
    barren: u64,
    is_fertile: bool,
    seen: Seen<'a>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(history: &'a dyn History, cuts: &'a [Cut], seed: u64) -> Self {
        Self {
            history,
            cuts,
            order: spread(cuts.len()),
            seed,
            round: 0,
            next: 0,
            barren: 0,
            is_fertile: false,
            seen: Seen::new(history),
        }
    }

    /// States so far that were like earlier ones.
    pub(crate) const fn repeats(&self) -> u64 {
        self.seen.repeats
    }
}

impl Iterator for Search<'_> {
    type Item = State;

    fn next(&mut self) -> Option<State> {
        loop {
            if self.next == self.order.len() {
                // Repeats say nothing while a moment with few states still counts through them.
                let is_counting = self.cuts.iter().any(|cut| is_counting(cut, self.round));
                self.barren = if self.is_fertile || is_counting { 0 } else { self.barren + 1 };
                if self.barren >= BARREN_MOST {
                    return None;
                }
                (self.next, self.is_fertile, self.round) = (0, false, self.round + 1);
            }
            let cut = &self.cuts[*self.order.get(self.next)?];
            let place = if self.cuts.len() > FEW { self.next } else { 0 };
            let round = round_of(cut, self.round, place);
            self.next += 1;
            let Some(mut state) = choose(cut, round, self.seed) else { continue };
            self.history.normalize(&mut state);
            if self.seen.is_new(&state) {
                self.is_fertile = true;
                return Some(state);
            }
        }
    }
}

/// States that have been tried.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    history: &'a dyn History,
    keys: Box<dyn Keys + 'a>,
    /// The drive's contents, and the number of lines acknowledged: the number of the first such
    /// state.
    firsts: BTreeMap<(u128, usize), usize>,
    repeats: u64,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(history: &'a dyn History) -> Self {
        Self { history, keys: history.keys(), firsts: BTreeMap::new(), repeats: 0 }
    }

    /// False if a state with the same bytes and the same acknowledgements came before.
    pub(crate) fn is_new(&mut self, state: &State) -> bool {
        let next = self.firsts.len();
        self.number(state) == next
    }

    /// The number of the first state with the same bytes and the same acknowledgements; a new one if it is that.
    pub(crate) fn number(&mut self, state: &State) -> usize {
        let acks = self.history.acks_before(state.at);
        let next = self.firsts.len();
        let number = *self.firsts.entry((self.keys.of(state), acks)).or_insert(next);
        self.repeats += u64::from(number != next);
        number
    }

    pub(crate) const fn repeats(&self) -> u64 {
        self.repeats
    }
}

#[cfg(test)]
mod tests {
    use leyden_oracle::{Op, Request};
    use leyden_sim::{Span, Time};

    use super::*;
    use crate::contract::cuts;
    use crate::cut::Flushes;
    use crate::timeline::Timeline;

    /// Repeated contents make repeated states: rounds that bring nothing new are no end.
    #[test]
    fn rounds_alike_do_not_end_the_search_of_a_moment_with_few_states() {
        let mut timeline = Timeline::new(4_096, 512);
        let request = Request { op: Op::Write, lba: 1, sectors: 1, fua: false, plp: false };
        let mut now = Time::ZERO;
        for byte in [3, 1, 1, 1, 1, 1, 1, 2] {
            let command = timeline.submit(now, request, &[byte; 512]);
            now += Span::from_us(1);
            timeline.end(now, command, true);
        }
        let cuts = cuts(&timeline, Flushes::All);
        // Zeroes, ones, twos and threes.
        assert_eq!(Search::new(&timeline, &cuts, 1).count(), 4);
    }

    /// The same bytes are another state once more has been promised of them.
    #[test]
    fn a_state_is_new_after_another_promise() {
        let mut timeline = Timeline::new(4_096, 512);
        let request = Request { op: Op::Write, lba: 1, sectors: 1, fua: false, plp: false };
        let command = timeline.submit(Time::ZERO, request, &[1; 512]);
        timeline.end(Time::ZERO, command, true);
        let before = timeline.events().len();
        timeline.mark(Time::ZERO, "ack 1\n");
        let after = timeline.events().len();
        let mut seen = Seen::new(&timeline);
        for (at, is_new) in [(before, true), (before, false), (after, true), (after, false)] {
            assert_eq!(seen.is_new(&State::new(at, Vec::new())), is_new, "{at}");
        }
        assert_eq!(seen.repeats(), 2);
    }
}

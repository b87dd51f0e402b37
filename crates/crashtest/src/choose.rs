//! Which of all states are tried, and in which order.
//!
//! Moments are spread first: the run is halved again and again. Of each moment, a few states that find most
//! faults come first (nothing unsettled is kept; all of it; a prefix with a torn end; all but one; only one; a random
//! one); then more random ones; if there are few in all, every one of them.

use leyden_sim::Rng;

use crate::cut::{Cut, Unsettled};
use crate::state::State;

/// Rounds over all moments whose choice has a name.
const NAMED: u64 = 5;
/// So many unsettled atoms are many.
const MANY: usize = 8;
/// If a moment has no more states than this, every one of them is tried.
const EXHAUSTED_MOST: u64 = 64;

/// The round whose choice `cut`, at `place` of the order, gets when it has its turn for the `visit`-th time. Of moments
/// with many unsettled atoms another choice comes first for each, random ones among them: many moments and few states
/// would otherwise never see a torn page.
pub(crate) fn round_of(cut: &Cut, visit: u64, place: usize) -> u64 {
    if cut.unsettled.len() < MANY || visit > NAMED {
        return visit;
    }
    (visit + place as u64) % (NAMED + 1)
}

/// The state of moment `cut` in round `round`; `None` if all of its states have had their turn.
pub(crate) fn choose(cut: &Cut, round: u64, seed: u64) -> Option<State> {
    let all = combinations(cut);
    if round >= NAMED && (all == 1 || all <= EXHAUSTED_MOST && round - NAMED >= all) {
        return None;
    }
    if all == 1 && round > 0 {
        return None;
    }
    let mut rng = Rng::new(seed ^ (cut.at as u64).rotate_left(32) ^ round, "crashtest states");
    let is_numbered = round >= NAMED && all <= EXHAUSTED_MOST;
    let pick = match round {
        _ if is_numbered => numbered(cut, round - NAMED),
        _ if cut.drives.is_empty() => picked(cut, round, &mut rng),
        _ => by_drive(cut, round, &mut rng),
    };
    let lost = cut.unsettled.iter().zip(pick).filter(|&(_, pick)| pick > 0);
    let lost = lost.map(|(unsettled, pick)| (unsettled.atom, unsettled.versions[pick]));
    let mut lost = lost.collect();
    cut.make_whole(&mut lost);
    Some(State::new(cut.at, lost))
}

/// The choice of round `round` for what one drive may lose: the place of the version that each atom keeps.
fn picked(cut: &Cut, round: u64, rng: &mut Rng) -> Vec<usize> {
    match round {
        0 => cut.unsettled.iter().map(|unsettled| unsettled.versions.len() - 1).collect(),
        1 => vec![0; cut.unsettled.len()],
        2 => prefix(cut, rng),
        3 | 4 => {
            let one = rng.below(cut.unsettled.len() as u64) as usize;
            let versions = |at: usize| cut.unsettled[at].versions.len();
            let is_lost = |at: usize| (at == one) == (round == 3);
            (0..cut.unsettled.len())
                .map(|at| if is_lost(at) { versions(at) - 1 } else { 0 })
                .collect()
        }
        _ => random(cut, rng),
    }
}

/// The choice for several drives: all of them lose everything, or nothing; one alone loses everything; then all drives or some,
/// each what it may lose alone.
fn by_drive(cut: &Cut, round: u64, rng: &mut Rng) -> Vec<usize> {
    if round < 2 {
        return picked(cut, round, rng);
    }
    let mut drives = cut.drives.clone();
    drives.sort_unstable();
    drives.dedup();
    let one = drives[rng.below(drives.len() as u64) as usize];
    let do_all_fail = rng.below(2) == 0;
    let mut pick = vec![0; cut.unsettled.len()];
    for drive in drives {
        let fails = if round < NAMED { drive == one } else { do_all_fail || rng.below(2) == 0 };
        if !fails {
            continue;
        }
        let own: Vec<usize> = (0..pick.len()).filter(|place| cut.drives[*place] == drive).collect();
        let unsettled = own.iter().map(|place| cut.unsettled[*place].clone()).collect();
        let alone = Cut { at: cut.at, unsettled, whole: Vec::new(), drives: Vec::new() };
        let round = if round < NAMED { 0 } else { rng.below(NAMED + 1) };
        for (place, picked) in own.into_iter().zip(picked(&alone, round, rng)) {
            pick[place] = picked;
        }
    }
    pick
}

/// True while `cut` has so few states that each of them gets its turn, and round `round` is not the last of these turns.
pub(crate) fn is_counting(cut: &Cut, round: u64) -> bool {
    let all = combinations(cut);
    (2..=EXHAUSTED_MOST).contains(&all) && round < NAMED + all
}

/// How many states a moment has, or many.
fn combinations(cut: &Cut) -> u64 {
    let count = |all: u64, versions: usize| all.saturating_mul(versions as u64);
    cut.unsettled.iter().map(|unsettled| unsettled.versions.len()).fold(1, count)
}

/// Every state of a moment, once; `None` if it has more than `most`.
pub(crate) fn every_state(cut: &Cut, most: usize) -> Option<Vec<State>> {
    let all = combinations(cut);
    if all > most as u64 || all == u64::MAX {
        return None;
    }
    let mut states = vec![State::new(cut.at, Vec::new())];
    for unsettled in &cut.unsettled {
        let with = |state: &State| {
            let all = unsettled.versions.iter().enumerate();
            let all = all.map(|(place, version)| {
                let mut state = state.clone();
                if place > 0 {
                    state.lost.push((unsettled.atom, *version));
                }
                state
            });
            all.collect::<Vec<State>>()
        };
        states = states.iter().flat_map(with).collect();
    }
    Some(states)
}

/// The state with this number, of all that a moment has.
fn numbered(cut: &Cut, mut number: u64) -> Vec<usize> {
    let digit = |unsettled: &Unsettled| {
        let base = unsettled.versions.len() as u64;
        let digit = number % base;
        number /= base;
        digit as usize
    };
    cut.unsettled.iter().map(digit).collect()
}

/// A drive that writes out in order: the commands before a random one are kept, and a random part of it.
fn prefix(cut: &Cut, rng: &mut Rng) -> Vec<usize> {
    let versions = cut.unsettled.iter().flat_map(|unsettled| &unsettled.versions);
    let mut commands: Vec<u32> = versions.filter_map(|event| *event).collect();
    commands.sort_unstable();
    commands.dedup();
    let torn = commands[rng.below(commands.len() as u64) as usize];
    let is_torn = |unsettled: &&Unsettled| unsettled.versions.contains(&Some(torn));
    let parts = cut.unsettled.iter().filter(is_torn).count() as u64;
    let mut kept_parts = rng.below(parts + 1);
    let mut pick = |unsettled: &Unsettled| {
        let mut has_part = false;
        if unsettled.versions.contains(&Some(torn)) && kept_parts > 0 {
            (kept_parts, has_part) = (kept_parts - 1, true);
        }
        let is_kept = |event: &Option<u32>| match *event {
            None => true,
            Some(event) => event < torn || event == torn && has_part,
        };
        let oldest = unsettled.versions.len() - 1;
        unsettled.versions.iter().position(is_kept).unwrap_or(oldest)
    };
    cut.unsettled.iter().map(&mut pick).collect()
}

/// Each atom any of its versions; few, half or most of them the newest.
fn random(cut: &Cut, rng: &mut Rng) -> Vec<usize> {
    let kept_of_32 = [2, 8, 16, 24, 30][rng.below(5) as usize];
    let mut pick = |unsettled: &Unsettled| {
        if rng.below(32) < kept_of_32 {
            return 0;
        }
        1 + rng.below(unsettled.versions.len() as u64 - 1) as usize
    };
    cut.unsettled.iter().map(&mut pick).collect()
}

/// The numbers below `count`, spread: the last, then the middle, then the quarters.
pub(crate) fn spread(count: usize) -> Vec<usize> {
    let bits = usize::BITS - count.saturating_sub(1).leading_zeros();
    let reversed = |number: usize| {
        if bits == 0 { 0 } else { number.reverse_bits() >> (usize::BITS - bits) }
    };
    (0..1_usize << bits)
        .map(reversed)
        .filter(|&number| number < count)
        .map(|number| count - 1 - number)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn cut(versions: &[&[Option<u32>]]) -> Cut {
        let unsettled = (0..).zip(versions);
        let unsettled = unsettled.map(|(atom, of)| Unsettled { atom, versions: of.to_vec() });
        Cut { at: 100, unsettled: unsettled.collect(), whole: Vec::new(), drives: Vec::new() }
    }

    #[test]
    fn drives_fail_all_or_some_and_each_keeps_a_choice_of_its_own() {
        let mut cut = cut(&[[Some(3), Some(2), None].as_slice(); 12]);
        cut.drives = (0..12).map(|atom| atom / 4).collect();
        let (mut failing, mut wholly, mut partly) = (BTreeSet::new(), BTreeSet::new(), 0);
        for round in 0..200 {
            let lost = choose(&cut, round, 7).unwrap().lost;
            let of = |drive| lost.iter().filter(|(atom, _)| atom / 4 == drive).collect::<Vec<_>>();
            let each = [0, 1, 2].map(of);
            failing.insert([0, 1, 2].map(|drive| !each[drive].is_empty()));
            wholly.insert([0, 1, 2].map(|drive| {
                each[drive].len() == 4 && each[drive].iter().all(|(_, event)| event.is_none())
            }));
            let parts = each.iter().filter(|lost| (1..4).contains(&lost.len())).count();
            partly += usize::from(parts == 3);
        }
        assert!(partly > 5, "{partly} states have a part of each drive");
        assert_eq!(failing.len(), 8, "any of the drives fail: {failing:?}");
        assert_eq!(wholly.len(), 8, "and lose all, or something: {wholly:?}");
    }

    #[test]
    fn a_moment_with_few_states_gets_all_of_them_and_no_more() {
        let cut = cut(&[&[Some(3), Some(1), None], &[Some(2), None]]);
        let states = (0..).map_while(|round| choose(&cut, round, 7));
        let different: BTreeSet<_> = states.map(|state| state.lost).collect();
        assert_eq!(different.len(), 6);
    }

    #[test]
    fn each_moment_gets_each_choice_and_large_neighbours_another_one_first() {
        let large = cut(&[[Some(3), None].as_slice(); MANY]);
        let small = cut(&[&[Some(3), None]]);
        for place in 0..10 {
            let rounds = |cut| (0..9).map(move |visit| round_of(cut, visit, place));
            assert_ne!(round_of(&large, 0, place), round_of(&large, 0, place + 1));
            assert_eq!(rounds(&large).collect::<BTreeSet<_>>(), (0..9).collect());
            assert!(rounds(&small).eq(0..9));
        }
    }

    #[test]
    fn every_state_of_a_moment_is_one_of_its_combinations_or_there_are_too_many() {
        let small = cut(&[&[Some(3), Some(1), None], &[Some(2), None]]);
        let lost: BTreeSet<_> =
            every_state(&small, 6).unwrap().into_iter().map(|state| state.lost).collect();
        assert_eq!(lost.len(), 6);
        assert_eq!(every_state(&small, 5), None);
        // More than can be counted.
        assert_eq!(every_state(&cut(&[[Some(3), None].as_slice(); 70]), usize::MAX), None);
    }

    #[test]
    fn a_settled_moment_is_one_state() {
        let settled = cut(&[]);
        assert_eq!(choose(&settled, 0, 1), Some(State::new(100, Vec::new())));
        assert_eq!(choose(&settled, 1, 1), None);
    }

    #[test]
    fn a_prefix_keeps_no_command_behind_the_torn_one() {
        let versions: Vec<Vec<Option<u32>>> = (0..20).map(|at| vec![Some(at / 4), None]).collect();
        let cut = cut(&versions.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for seed in 0..200 {
            let lost = choose(&cut, 2, seed).unwrap().lost;
            let kept: Vec<u32> =
                (0..20).filter(|atom| !lost.iter().any(|l| l.0 == *atom)).collect();
            assert!(kept.iter().copied().eq(0..kept.len() as u32), "{kept:?}");
        }
    }

    #[test]
    fn all_but_one_and_only_one() {
        let versions: Vec<Vec<Option<u32>>> = (0..20).map(|at| vec![Some(at), None]).collect();
        let cut = cut(&versions.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let lost = |round| choose(&cut, round, 5).unwrap().lost.len();
        assert_eq!([lost(0), lost(1), lost(3), lost(4)], [20, 0, 1, 19]);
    }

    #[test]
    fn moments_are_spread_and_none_is_left_out() {
        assert_eq!(spread(5), [4, 0, 2, 3, 1]);
        for count in 0..40 {
            let mut all = spread(count);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }
}

//! The queue against its slow twin, a list.

use super::*;
use proptest::prelude::*;

/// Units of the drive.
const BOUND: u32 = 3_000;

/// The shape that a channel has by default.
const MERGING: Shape = Shape { merging: true, most_units: 255 };

/// The slow twin: a list in order of arrival, searched from the front.
struct Twin {
    ranges: Vec<(u64, u64, u64, Time)>, // first, end, place, since
    next_place: u64,
    limit: usize,
    shape: Shape,
}

impl Twin {
    fn holds(&self, unit: u64) -> bool {
        self.ranges.iter().any(|&(first, end, ..)| (first..end).contains(&unit))
    }

    fn drop_surplus(&mut self) -> u64 {
        let surplus = self.ranges.len().saturating_sub(self.limit);
        self.ranges.drain(..surplus).map(|(first, end, ..)| end - first).sum()
    }

    fn add(&mut self, hint: Hint, since: Time) -> Added {
        let first = u64::from(hint.first_unit());
        let units: Vec<u64> = (first..first + u64::from(hint.units())).collect();
        let new: Vec<u64> = units.iter().copied().filter(|&unit| !self.holds(unit)).collect();
        let repeated_units = (units.len() - new.len()) as u64;
        for run in new.chunk_by(|a, b| a + 1 == *b) {
            for range in run.chunks(self.shape.most_units as usize) {
                self.insert(range[0], range[range.len() - 1] + 1, since);
            }
        }
        Added { repeated_units, dropped_units: self.drop_surplus() }
    }

    fn insert(&mut self, mut first: u64, mut end: u64, mut since: Time) {
        let mut place = self.next_place;
        let Shape { merging, most_units } = self.shape;
        let most = u64::from(most_units);
        let left = self.ranges.iter().position(|range| range.1 == first);
        if let Some(at) = left.filter(|&at| merging && end - self.ranges[at].0 <= most) {
            (first, _, place, since) = self.ranges.remove(at);
        }
        let right = self.ranges.iter().position(|range| range.0 == end);
        if let Some(at) = right.filter(|&at| merging && self.ranges[at].1 - first <= most) {
            let range = self.ranges.remove(at);
            end = range.1;
            if range.2 < place {
                (place, since) = (range.2, range.3);
            }
        }
        self.next_place += u64::from(place == self.next_place);
        let at = self.ranges.partition_point(|range| (range.2, range.0) < (place, first));
        self.ranges.insert(at, (first, end, place, since));
    }

    fn withdraw(&mut self, first: u64, end: u64) -> (u64, u64) {
        let waited = (first..end).filter(|&unit| self.holds(unit)).count() as u64;
        let cut = |&(a, b, place, since): &(u64, u64, u64, Time)| {
            [(a, b.min(first), place, since), (a.max(end), b, place, since)]
        };
        self.ranges = self.ranges.iter().flat_map(cut).filter(|range| range.0 < range.1).collect();
        (waited, self.drop_surplus())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32, u8),
    Withdraw(u64, u64),
    Pop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Short ranges that touch often; long ones that do not fit together; the end of the scale.
    let place = prop_oneof![4 => 0_u32..60, 1 => 0_u32..2_000, 1 => BOUND - 31..BOUND];
    let length = prop_oneof![4 => 1_u8..6, 1 => 1_u8..=255];
    let fit = |first: u32, units: u8| (BOUND - 1 - first).min(u32::from(units) - 1) as u8 + 1;
    let add = (place.clone(), length).prop_map(move |(at, n)| Step::Add(at, fit(at, n)));
    let withdraw =
        (place, 1_u64..40).prop_map(|(at, n)| Step::Withdraw(at.into(), u64::from(at) + n));
    let step = prop_oneof![4 => add, 3 => withdraw, 1 => Just(Step::Pop)];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn behaves_like_a_list(
        steps in steps(),
        limit in prop_oneof![1_u32..20, Just(200)],
        merging: bool,
        most_units in prop_oneof![Just(255_u32), 1_u32..40],
    ) {
        let shape = Shape { merging, most_units };
        let mut queue = RangeQueue::new(limit, shape);
        queue.reserve(BOUND.into());
        let mut twin = Twin { ranges: Vec::new(), next_place: 0, limit: limit as usize, shape };
        for (i, step) in steps.into_iter().enumerate() {
            let since = Time::from_ns(i as u64);
            match step {
                Step::Add(first, units) => {
                    let hint = Hint::new(first, NonZeroU8::new(units).unwrap());
                    prop_assert_eq!(queue.add(hint, since), twin.add(hint, since));
                }
                Step::Withdraw(first, end) => {
                    prop_assert_eq!(queue.withdraw(first, end), twin.withdraw(first, end));
                }
                Step::Pop => {
                    let range = (!twin.ranges.is_empty()).then(|| twin.ranges.remove(0));
                    let range = range.map(|(first, end, _, since)| (first, end - first, since));
                    let popped = queue.pop().map(|(hint, since)| {
                        (u64::from(hint.first_unit()), u64::from(hint.units()), since)
                    });
                    prop_assert_eq!(popped, range);
                }
            }
            prop_assert_eq!(queue.len(), twin.ranges.len());
            prop_assert_eq!(queue.oldest_since(), twin.ranges.first().map(|range| range.3));
            prop_assert!(twin.ranges.iter().all(|range| range.1 - range.0 <= u64::from(most_units)));
            let units = twin.ranges.iter().map(|range| range.1 - range.0).sum::<u64>();
            prop_assert_eq!(queue.units(), units);
        }
    }
}

#[test]
fn many_ranges_are_found_again() {
    let mut queue = RangeQueue::new(1_000, MERGING);
    queue.reserve(3_000);
    for first in 0..1_000 {
        queue.add(Hint::new(first * 3, NonZeroU8::MIN), Time::ZERO);
    }
    assert_eq!((queue.len(), queue.units()), (1_000, 1_000));
    assert_eq!(queue.withdraw(0, 2_000), (667, 0));
    assert_eq!(queue.withdraw(2_001, 2_002), (1, 0));
    assert_eq!(queue.pop().map(|(hint, _)| hint.first_unit()), Some(2_004));
}

#[test]
fn neighbours_merge_until_a_hint_is_full() {
    let mut queue = RangeQueue::new(10, MERGING);
    queue.reserve(1_000);
    let hint = |first, units| Hint::new(first, NonZeroU8::new(units).unwrap());
    for first in (0..400).step_by(4) {
        queue.add(hint(first, 4), Time::ZERO);
    }
    let sent: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(hint, _)| hint).collect();
    assert_eq!(sent, [hint(0, 252), hint(252, 148)]);
}

/// A length byte that counts sectors (Zombie Chasing, section 4.1) names 31 whole units: seven of the
/// micro-benchmark's writes of 16 KiB.
#[test]
fn short_hints_take_fewer_neighbours_and_long_ranges_are_cut() {
    let shape = Shape { merging: true, most_units: 31 };
    let hint = |first, units| Hint::new(first, NonZeroU8::new(units).unwrap());
    let sent = |shape, added: &[Hint]| {
        let mut queue = RangeQueue::new(100, shape);
        queue.reserve(1_000);
        for &hint in added {
            queue.add(hint, Time::ZERO);
        }
        std::iter::from_fn(move || queue.pop()).map(|(hint, _)| hint).collect::<Vec<_>>()
    };
    let writes: Vec<Hint> = (0..40).step_by(4).map(|first| hint(first, 4)).collect();
    assert_eq!(sent(shape, &writes), [hint(0, 28), hint(28, 12)]);
    assert_eq!(sent(Shape { merging: false, ..shape }, &writes), writes);
    // Cut where it is too long, and only there; the short end takes what follows it.
    let long = [hint(200, 70), hint(270, 5)];
    assert_eq!(sent(shape, &long), [hint(200, 31), hint(231, 31), hint(262, 13)]);
    let cut = [hint(200, 31), hint(231, 31), hint(262, 8), hint(270, 5)];
    assert_eq!(sent(Shape { merging: false, ..shape }, &long), cut);
}

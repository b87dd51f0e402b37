//! What happens next: a priority queue ordered by `(time, sequence)`.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the queue's shape.
///
/// Most events lie one of a few fixed spans ahead of the clock (a read, a program, a transfer), and
/// events of one span are scheduled in the order in which they happen. So there are a few *lanes*,
/// queues in ascending order: an event goes to the end of the first lane that ends before it, and
/// to a heap if there is none. The next event is the first of one of the lanes or of the heap.
///
/// Sequences have 64 bits, so a queue that serves a million events a second for years does not run out.
///
/// ```
/// use leyden_sim::{EventQueue, Time};
/// let mut queue = EventQueue::<u32>::default();
/// queue.schedule(Time::from_ns(7), 2);
/// queue.schedule(Time::from_ns(7), 3);
/// queue.schedule(Time::from_ns(3), 1);
/// assert_eq!(queue.next_time(), Some(Time::from_ns(3)));
/// let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
/// assert_eq!(order, [1, 2, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    lanes: [VecDeque<(Key, E)>; LANES],
    /// The last time that went into each lane.
    tails: [u64; LANES],
    /// What fits no lane.
    heap: BinaryHeap<Reverse<Heaped<E>>>,
    /// The least key of each lane, then of the heap; [`NONE`] if empty.
    heads: [Key; LANES + 1],
    /// The least of `heads`, and which of them it is.
    first: (Key, usize),
    sequence: u64,
}

/// Time in the upper half, sequence in the lower: one comparison orders by both.
type Key = u128;

/// One for each span that events of the flash lie ahead, and some to spare.
const LANES: usize = 6;
/// No key.
const NONE: Key = Key::MAX;

/// An event in the heap, ordered by its key alone.
#[derive(Clone, Copy, Debug)]
struct Heaped<E>(Key, E);

impl<E> PartialEq for Heaped<E> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<E> Eq for Heaped<E> {}
impl<E> PartialOrd for Heaped<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Heaped<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            lanes: std::array::from_fn(|_| VecDeque::new()),
            tails: [0; LANES],
            heap: BinaryHeap::new(),
            heads: [NONE; LANES + 1],
            first: (NONE, LANES),
            sequence: 0,
        }
    }
}

impl<E: Copy> EventQueue<E> {
    /// Adds `event` at `time`.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: E) {
        let time = time.as_ns();
        let key = Key::from(time) << 64 | Key::from(self.sequence);
        self.sequence += 1;
        // At equal times the later sequence is the larger key.
        let lane = self.tails.iter().position(|&tail| tail <= time).unwrap_or(LANES);
        if lane < LANES {
            self.lanes[lane].push_back((key, event));
            self.tails[lane] = time;
        } else {
            self.heap.push(Reverse(Heaped(key, event)));
        }
        self.heads[lane] = self.heads[lane].min(key);
        if key < self.first.0 {
            self.first = (key, lane);
        }
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (!self.is_empty()).then(|| time_of(self.first.0))
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let (key, lane) = self.first;
        let event = if lane < LANES {
            let (_, event) = self.lanes[lane].pop_front()?;
            self.heads[lane] = self.lanes[lane].front().map_or(NONE, |&(key, _)| key);
            event
        } else {
            let Reverse(Heaped(_, event)) = self.heap.pop()?;
            self.heads[lane] = self.heap.peek().map_or(NONE, |Reverse(heaped)| heaped.0);
            event
        };
        let mut first = (self.heads[0], 0);
        for lane in 1..=LANES {
            let head = self.heads[lane];
            first = if head < first.0 { (head, lane) } else { first };
        }
        self.first = first;
        Some((time_of(key), event))
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum::<usize>() + self.heap.len()
    }

    /// True if nothing is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.0 == NONE
    }

    /// Forgets everything pending (the power is gone).
    pub fn clear(&mut self) {
        *self = Self { sequence: self.sequence, ..Self::default() };
    }
}

#[inline]
const fn time_of(key: Key) -> Time {
    Time::from_ns((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Against the slow twin: a stable sort by time.
        #[test]
        fn pops_like_a_stable_sort(times in proptest::collection::vec(0_u64..50, 0..200)) {
            let mut queue = EventQueue::default();
            let mut twin: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            for &(time, id) in &twin {
                queue.schedule(Time::from_ns(time), id);
            }
            twin.sort_by_key(|&(time, _)| time);
            let popped: Vec<_> =
                std::iter::from_fn(|| queue.pop()).map(|(t, id)| (t.as_ns(), id)).collect();
            proptest::prop_assert_eq!(popped, twin);
        }

        /// Scheduled and popped in turn, with the spans of a flash and others.
        #[test]
        fn pops_the_first_of_what_is_pending(
            steps in proptest::collection::vec((0_usize..8, 0_u64..9, proptest::bool::ANY), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let mut twin = std::collections::BTreeSet::new();
            let mut now = 0;
            for (id, (span, jitter, pop)) in (0_u32..).zip(steps) {
                let time = now + [0, 5, 10, 60, 700, 3_500, 9_000, 100 * jitter][span];
                queue.schedule(Time::from_ns(time), id);
                twin.insert((time, id));
                if pop {
                    let popped = queue.pop().map(|(time, id)| (time.as_ns(), id));
                    proptest::prop_assert_eq!(popped, twin.pop_first());
                    now = popped.map_or(now, |(time, _)| time);
                }
                proptest::prop_assert_eq!(queue.len(), twin.len());
                let next = queue.next_time().map(Time::as_ns);
                proptest::prop_assert_eq!(next, twin.first().map(|&(time, _)| time));
            }
            queue.clear();
            proptest::prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}

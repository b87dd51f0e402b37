//! What happens next: a priority queue ordered by `(time, sequence)`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::marker::PhantomData;

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the queue's shape.
///
/// Most events lie one of a few fixed spans ahead of the clock (a read, a program, a transfer), and
/// events of one span are scheduled in the order in which they happen. So there are a few *lanes*,
/// queues in ascending order: an event goes to the end of the first lane that ends before it, and
/// to a heap if there is none. The next event is the first of one of the lanes or of the heap.
///
/// Time, sequence and event share one 128-bit key: one comparison orders both.
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
    /// Keys: time in bits 127:64, sequence in 63:24, event in 23:0.
    lanes: [VecDeque<u128>; LANES],
    /// The last key that went into each lane.
    tails: [u128; LANES],
    /// What fits no lane.
    heap: BinaryHeap<Reverse<u128>>,
    /// The least key of each lane, then of the heap; [`NONE`] if empty.
    heads: [u128; LANES + 1],
    /// The least of `heads`, and which of them it is.
    first: (u128, usize),
    sequence: u64,
    event: PhantomData<E>,
}

/// One for each span that events of the flash lie ahead, and some to spare.
const LANES: usize = 6;
/// No key.
const NONE: u128 = u128::MAX;

/// What an event queue can hold: something small that says what happens, like a die's number.
pub trait Event: Copy {
    /// As a number of at most 24 bits.
    fn to_bits(self) -> u32;
    /// From the number that [`Event::to_bits`] gave.
    fn from_bits(bits: u32) -> Self;
}

impl Event for u32 {
    #[inline]
    fn to_bits(self) -> u32 {
        self
    }
    #[inline]
    fn from_bits(bits: u32) -> Self {
        bits
    }
}

const EVENT_BITS: u32 = 24;

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            lanes: std::array::from_fn(|_| VecDeque::new()),
            tails: [0; LANES],
            heap: BinaryHeap::new(),
            heads: [NONE; LANES + 1],
            first: (NONE, LANES),
            sequence: 0,
            event: PhantomData,
        }
    }
}

impl<E: Event> EventQueue<E> {
    /// Adds `event` at `time`.
    ///
    /// # Panics
    /// If `event` does not fit in 24 bits, or after 2^40 events.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: E) {
        let event = event.to_bits();
        assert!(event >> EVENT_BITS == 0, "event {event} is too large");
        assert!(self.sequence >> (64 - EVENT_BITS) == 0, "too many events");
        let low = self.sequence << EVENT_BITS | u64::from(event);
        self.sequence += 1;
        let key = u128::from(time.as_ns()) << 64 | u128::from(low);
        let lane = self.tails.iter().position(|&tail| tail < key).unwrap_or(LANES);
        if lane < LANES {
            self.lanes[lane].push_back(key);
            self.tails[lane] = key;
        } else {
            self.heap.push(Reverse(key));
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
        if self.is_empty() {
            return None;
        }
        let (key, lane) = self.first;
        self.heads[lane] = if lane < LANES {
            self.lanes[lane].pop_front();
            self.lanes[lane].front().copied().unwrap_or(NONE)
        } else {
            self.heap.pop();
            self.heap.peek().map_or(NONE, |&Reverse(key)| key)
        };
        let mut first = (self.heads[0], 0);
        for lane in 1..=LANES {
            let head = self.heads[lane];
            first = if head < first.0 { (head, lane) } else { first };
        }
        self.first = first;
        Some((time_of(key), E::from_bits(key as u32 & ((1 << EVENT_BITS) - 1))))
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
const fn time_of(key: u128) -> Time {
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

    #[test]
    #[should_panic(expected = "too large")]
    fn refuses_events_that_do_not_fit() {
        EventQueue::<u32>::default().schedule(Time::ZERO, 1 << 24);
    }
}

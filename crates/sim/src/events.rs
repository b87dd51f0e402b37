//! What happens next: a priority queue ordered by `(time, sequence)`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the heap's shape.
///
/// Time, sequence and event share one 128-bit key: one comparison orders both, and a heap of them
/// stays in the nearest cache.
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
    /// Time in bits 127:64, sequence in 63:24, event in 23:0.
    heap: BinaryHeap<Reverse<u128>>,
    sequence: u64,
    event: PhantomData<E>,
}

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
        Self { heap: BinaryHeap::new(), sequence: 0, event: PhantomData }
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
        self.heap.push(Reverse(u128::from(time.as_ns()) << 64 | u128::from(low)));
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|&Reverse(key)| time_of(key))
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse(key) = self.heap.pop()?;
        Some((time_of(key), E::from_bits(key as u32 & ((1 << EVENT_BITS) - 1))))
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forgets everything pending (the power is gone).
    pub fn clear(&mut self) {
        self.heap.clear();
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
    }

    #[test]
    #[should_panic(expected = "too large")]
    fn refuses_events_that_do_not_fit() {
        EventQueue::<u32>::default().schedule(Time::ZERO, 1 << 24);
    }
}

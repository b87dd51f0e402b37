//! What happens next: a priority queue ordered by `(time, sequence)`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the heap's shape.
///
/// ```
/// use leyden_sim::{EventQueue, Time};
/// let mut queue = EventQueue::default();
/// queue.schedule(Time::from_ns(7), 'b');
/// queue.schedule(Time::from_ns(7), 'c');
/// queue.schedule(Time::from_ns(3), 'a');
/// assert_eq!(queue.next_time(), Some(Time::from_ns(3)));
/// let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, e)| e).collect();
/// assert_eq!(order, "abc");
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    /// Time in the high half, sequence in the low half: one comparison orders both.
    key: u128,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds `event` at `time`.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: E) {
        let key = u128::from(time.as_ns()) << 64 | u128::from(self.sequence);
        self.sequence += 1;
        self.heap.push(Reverse(Entry { key, event }));
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| Time::from_ns((entry.key >> 64) as u64))
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse(entry) = self.heap.pop()?;
        Some((Time::from_ns((entry.key >> 64) as u64), entry.event))
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Forgets everything pending (the power is gone).
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Against the slow twin: a stable sort by time.
        #[test]
        fn pops_like_a_stable_sort(times in proptest::collection::vec(0_u64..50, 0..200)) {
            let mut queue = EventQueue::default();
            let mut twin: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            for &(time, id) in &twin {
                queue.schedule(Time::from_ns(time), id);
            }
            twin.sort_by_key(|&(time, _)| time);
            let popped: Vec<_> =
                std::iter::from_fn(|| queue.pop()).map(|(t, id)| (t.as_ns(), id)).collect();
            proptest::prop_assert_eq!(popped, twin);
        }
    }
}

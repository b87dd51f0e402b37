//! What happens next: a priority queue ordered by `(time, sequence)`.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the queue's shape.
///
/// Most events lie one of a few fixed spans ahead of the clock (a read, a program, a transfer), and
/// events of one span are scheduled in the order in which they happen. So there are a few *lanes*,
/// queues in ascending order: an event goes to the end of the lane that its scheduler names, or of
/// the first one that ends before it, and to a heap if there is none. The next event is the first of
/// one of the lanes or of the heap.
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
    lanes: [Lane<E>; LANES],
    /// The last time that went into each lane.
    tails: [u64; LANES],
    /// What fits no lane.
    heap: BinaryHeap<Reverse<Entry<E>>>,
    /// The time of the first event of each lane, then of the heap; [`NEVER`] if there is none.
    heads: [u64; LANES + 1],
    /// The time of the first of all, and the lane that it is in, or the heap.
    first: u64,
    first_lane: usize,
    len: usize,
    sequence: u64,
}

/// One for each span that events of the flash lie ahead, and some to spare.
const LANES: usize = 6;
/// Later than all events, but for one at the end of time.
const NEVER: u64 = u64::MAX;

/// An event that is pending, ordered by its time and sequence alone.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.sequence).cmp(&(other.time, other.sequence))
    }
}

/// A queue in ascending order, in a ring whose size is a power of two.
#[derive(Clone, Debug)]
struct Lane<E> {
    ring: Vec<Entry<E>>,
    /// Places of the first event and after the last, going on past the end of the ring: what of them
    /// lies within it is meant.
    first: usize,
    end: usize,
}

impl<E: Copy> Lane<E> {
    #[inline]
    fn push(&mut self, entry: Entry<E>) {
        if self.end.wrapping_sub(self.first) == self.ring.len() {
            self.grow(entry);
        }
        let mask = self.ring.len() - 1;
        self.ring[self.end & mask] = entry;
        self.end = self.end.wrapping_add(1);
    }

    /// Takes the first event, which there is, and says when the next one happens.
    #[inline]
    fn pop(&mut self) -> (E, u64) {
        let mask = self.ring.len() - 1;
        let event = self.ring[self.first & mask].event;
        self.first = self.first.wrapping_add(1);
        let next = self.ring[self.first & mask].time;
        (event, if self.first == self.end { NEVER } else { next })
    }

    fn first(&self) -> Option<&Entry<E>> {
        let is_empty = self.first == self.end;
        (!is_empty).then(|| &self.ring[self.first & (self.ring.len() - 1)])
    }

    /// Makes room; `filler` is put where nothing is yet.
    #[cold]
    fn grow(&mut self, filler: Entry<E>) {
        let size = self.ring.len();
        self.ring.rotate_left(if size == 0 { 0 } else { self.first & (size - 1) });
        (self.first, self.end) = (0, size);
        self.ring.resize((size * 2).max(16), filler);
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            lanes: std::array::from_fn(|_| Lane { ring: Vec::new(), first: 0, end: 0 }),
            tails: [0; LANES],
            heap: BinaryHeap::new(),
            heads: [NEVER; LANES + 1],
            first: NEVER,
            first_lane: LANES,
            len: 0,
            sequence: 0,
        }
    }
}

impl<E: Copy> EventQueue<E> {
    /// How many lanes there are to name.
    pub const LANES: usize = LANES;

    /// Adds `event` at `time`.
    #[inline]
    pub fn schedule(&mut self, time: Time, event: E) {
        self.schedule_in(0, time, event);
    }

    /// Adds `event` at `time`. Events that lie the same span ahead had better name the same lane, of
    /// the few there are ([`EventQueue::LANES`]); only the simulator's speed depends on it.
    #[inline]
    pub fn schedule_in(&mut self, lane: usize, time: Time, event: E) {
        let time = time.as_ns();
        let entry = Entry { time, sequence: self.sequence, event };
        self.sequence += 1;
        // At equal times the later sequence comes after.
        let lane = if self.tails[lane] <= time { lane } else { self.lane_for(time) };
        if lane < LANES {
            self.tails[lane] = time;
            self.lanes[lane].push(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
        self.heads[lane] = self.heads[lane].min(time);
        if time < self.first || self.len == 0 {
            (self.first, self.first_lane) = (time, lane);
        }
        self.len += 1;
    }

    /// The first lane that ends before `time`, or else the heap.
    fn lane_for(&self, time: u64) -> usize {
        self.tails.iter().position(|&tail| tail <= time).unwrap_or(LANES)
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (self.len > 0).then_some(Time::from_ns(self.first))
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_until(Time::MAX)
    }

    /// Takes the next event, if it happens at or before `now`.
    #[inline]
    pub fn pop_until(&mut self, now: Time) -> Option<(Time, E)> {
        let time = self.next_time().filter(|&time| time <= now)?;
        let lane = self.first_lane;
        let (event, head) = if lane < LANES {
            self.lanes[lane].pop()
        } else {
            let Reverse(first) = self.heap.pop()?;
            (first.event, self.heap.peek().map_or(NEVER, |Reverse(next)| next.time))
        };
        self.heads[lane] = head;
        self.len -= 1;
        self.find_first();
        Some((time, event))
    }

    /// Finds out what is first now.
    #[inline]
    fn find_first(&mut self) {
        // Times alone, as a rule: sequences matter only if the first one of the least and the last one
        // are not the same.
        let (mut least, mut first, mut last) = (self.heads[0], 0, 0);
        for lane in 1..=LANES {
            let head = self.heads[lane];
            first = if head < least { lane } else { first };
            last = if head <= least { lane } else { last };
            least = least.min(head);
        }
        self.first = least;
        self.first_lane = if first == last { first } else { self.first_of(least) };
    }

    /// Of several lanes that begin at `time`, the one whose event was scheduled first; any, if they
    /// are empty.
    fn first_of(&self, time: u64) -> usize {
        let lanes = self.lanes.iter().map(Lane::first);
        let heads = lanes.chain([self.heap.peek().map(|Reverse(entry)| entry)]);
        let heads = (0..).zip(heads).filter_map(|(lane, head)| Some((head?, lane)));
        heads.filter(|(head, _)| head.time == time).min().map_or(LANES, |(_, lane)| lane)
    }

    /// How many events are pending.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if nothing is pending.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets everything pending (the power is gone).
    pub fn clear(&mut self) {
        *self = Self { sequence: self.sequence, ..Self::default() };
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
            let mut twin: Vec<(u64, u32)> = times.iter().copied().zip(0..).collect();
            for &(time, id) in &twin {
                queue.schedule_in(id as usize % LANES, Time::from_ns(time), id);
            }
            twin.sort_by_key(|&(time, _)| time);
            let popped: Vec<_> =
                std::iter::from_fn(|| queue.pop()).map(|(t, id)| (t.as_ns(), id)).collect();
            proptest::prop_assert_eq!(popped, twin);
        }

        /// Also at the end of time, where a lane that is empty looks alike.
        #[test]
        fn pops_what_happens_at_the_end_of_time(lanes in proptest::collection::vec(0..LANES, 0..9)) {
            let mut queue = EventQueue::default();
            for (id, &lane) in (0_u32..).zip(&lanes) {
                queue.schedule_in(lane, Time::MAX, id);
            }
            let popped = std::iter::from_fn(|| queue.pop()).map(|(_, id)| id);
            proptest::prop_assert!(popped.eq(0..lanes.len() as u32));
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
                queue.schedule_in(span % LANES, Time::from_ns(time), id);
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

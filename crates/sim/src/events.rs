//! Pending events: a priority queue ordered by `(time, sequence)`.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Time;

/// Pending events. Two events at the same time leave in the order they were scheduled, so that a
/// run's outcome never depends on the queue's shape.
///
/// Most events lie one of a few fixed spans ahead of the clock (a read, a program, a transfer), and
/// events of one span are scheduled in the order in which they happen. So there are a few *lanes*,
/// queues in ascending order: an event goes to the end, or near it, of the lane that its scheduler names,
/// or of the first one where it may, and to a heap if there is none. The next event is the first of
/// one of the lanes or of the heap.
///
/// Sequences have 61 bits, so a queue that serves a million events a second for years does not run out.
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
    /// Events that fit no lane.
    heap: BinaryHeap<Reverse<Heaped<E>>>,
    /// The least key of each lane, then of the heap; [`NONE`] if empty.
    heads: [Key; LANES + 1],
    /// The least of `heads`.
    first: Key,
    sequence: u64,
}

/// Time in the upper half, sequence and lane in the lower: one comparison orders by all of them, and the least key
/// says where it is. Sequences differ, so the lane decides nothing.
type Key = u128;

/// One for each span that events of the flash lie ahead, and some to spare.
const LANES: usize = 6;
/// How many events of a lane may have to make way for a new one.
const NEAR: usize = 8;
/// Bits of a key that say the lane; the heap is the last one.
const LANE_BITS: u32 = 3;
/// No key: no sequence gets that far.
const NONE: Key = Key::MAX;

/// A queue in ascending order, in a ring whose size is a power of two.
#[derive(Clone, Debug)]
struct Lane<E> {
    ring: Vec<(Key, E)>,
    /// Places of the first event and after the last, going on past the end of the ring: what of them
    /// lies within it is meant.
    first: usize,
    end: usize,
    /// The key of the last event, if there is any.
    last: Key,
}

impl<E: Copy> Lane<E> {
    /// Adds an event at the end, or a few places before it. False if there is no room, or if its place is
    /// farther away.
    #[inline(always)]
    fn push(&mut self, key: Key, event: E) -> bool {
        if self.len() == self.ring.len() {
            return false;
        }
        if self.len() > 0 && self.last > key {
            return self.insert(key, event);
        }
        let mask = self.ring.len() - 1;
        self.ring[self.end & mask] = (key, event);
        self.end = self.end.wrapping_add(1);
        self.last = key;
        true
    }

    /// Adds an event before the last one, where there is room for one more.
    #[inline(never)]
    fn insert(&mut self, key: Key, event: E) -> bool {
        let mask = self.ring.len() - 1;
        let mut at = self.end;
        while at != self.first && self.ring[at.wrapping_sub(1) & mask].0 > key {
            at = at.wrapping_sub(1);
            if self.end.wrapping_sub(at) > NEAR {
                return false;
            }
        }
        let mut hole = self.end;
        while hole != at {
            let before = hole.wrapping_sub(1);
            self.ring[hole & mask] = self.ring[before & mask];
            hole = before;
        }
        self.ring[at & mask] = (key, event);
        self.end = self.end.wrapping_add(1);
        true
    }

    /// Takes the first event, which there is, and says which key is the first then.
    #[inline]
    fn pop(&mut self) -> (E, Key) {
        let mask = self.ring.len() - 1;
        let (_, event) = self.ring[self.first & mask];
        self.first = self.first.wrapping_add(1);
        let head = self.ring[self.first & mask].0;
        (event, if self.first == self.end { NONE } else { head })
    }

    const fn len(&self) -> usize {
        self.end.wrapping_sub(self.first)
    }

    /// Makes room, if there is none; `filler` is put where nothing is yet.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, filler: (Key, E)) {
        let size = self.ring.len();
        if self.len() < size {
            return;
        }
        self.ring.rotate_left(if size == 0 { 0 } else { self.first & (size - 1) });
        (self.first, self.end) = (0, size);
        self.ring.resize((size * 2).max(16), filler);
    }
}

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
            lanes: std::array::from_fn(|_| Lane { ring: Vec::new(), first: 0, end: 0, last: 0 }),
            heap: BinaryHeap::new(),
            heads: [NONE; LANES + 1],
            first: NONE,
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
    // Always inlined: callers name the lane by a constant.
    #[inline(always)]
    pub fn schedule_in(&mut self, lane: usize, time: Time, event: E) {
        let key =
            Key::from(time.as_ns()) << 64 | Key::from(self.sequence << LANE_BITS | lane as u64);
        // At equal times the later sequence is the larger key.
        self.sequence += 1;
        if self.lanes[lane].push(key, event) {
            self.note(lane, key);
        } else {
            self.schedule_elsewhere(lane, key, event);
        }
    }

    /// Adds an event that `lane`, where it should go, has no place for: there, if room is all it takes, or to
    /// the first lane that has one, or else to the heap.
    #[cold]
    #[inline(never)]
    fn schedule_elsewhere(&mut self, lane: usize, key: Key, event: E) {
        for lane in std::iter::once(lane).chain(0..LANES) {
            self.lanes[lane].make_room((key, event));
            let key = in_lane(key, lane);
            if self.lanes[lane].push(key, event) {
                return self.note(lane, key);
            }
        }
        let key = in_lane(key, LANES);
        self.heap.push(Reverse(Heaped(key, event)));
        self.note(LANES, key);
    }

    /// An event with `key` was added to a lane, or to the heap.
    #[inline(always)]
    fn note(&mut self, lane: usize, key: Key) {
        if key < self.heads[lane] {
            self.heads[lane] = key;
            self.first = self.first.min(key);
        }
    }

    /// When the next event happens.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (!self.is_empty()).then(|| time_of(self.first))
    }

    /// The same, or [`Time::MAX`] if nothing is pending: cheaper to ask, where events at the end of time do
    /// not matter.
    #[inline]
    pub const fn next_time_or_max(&self) -> Time {
        time_of(self.first) // also of `NONE`
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_until(Time::MAX)
    }

    /// Takes the next event, if it happens at or before `now`.
    // Always inlined, as all that each event passes: in a program with several kinds of drive the compiler would not, and
    // what comes of it would go through memory.
    #[inline(always)]
    pub fn pop_until(&mut self, now: Time) -> Option<(Time, E)> {
        let time = time_of(self.first);
        if time > now || self.is_empty() {
            return None;
        }
        let lane = lane_of(self.first);
        let event = if lane < LANES {
            let (event, head) = self.lanes[lane].pop();
            self.heads[lane] = head;
            event
        } else {
            self.pop_heap()?
        };
        // In pairs, so that the comparisons need not wait for each other.
        let pair = |lane: usize| self.heads[lane].min(self.heads[lane + 1]);
        self.first = pair(0).min(pair(2)).min(pair(4).min(self.heads[LANES]));
        Some((time, event))
    }

    #[inline(never)]
    fn pop_heap(&mut self) -> Option<E> {
        let Reverse(Heaped(_, event)) = self.heap.pop()?;
        self.heads[LANES] = self.heap.peek().map_or(NONE, |Reverse(heaped)| heaped.0);
        Some(event)
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum::<usize>() + self.heap.len()
    }

    /// True if nothing is pending.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first as u64 == NONE as u64 // the sequence tells
    }

    /// Forgets everything pending (the power is gone).
    pub fn clear(&mut self) {
        *self = Self { sequence: self.sequence, ..Self::default() };
    }
}

/// `key`, with another lane.
const fn in_lane(key: Key, lane: usize) -> Key {
    key >> LANE_BITS << LANE_BITS | lane as Key
}

/// The lane of a key that there is.
#[inline]
const fn lane_of(key: Key) -> usize {
    key as usize & ((1 << LANE_BITS) - 1)
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
                queue.schedule_in(id as usize % LANES, Time::from_ns(time), id);
            }
            twin.sort_by_key(|&(time, _)| time);
            let popped: Vec<_> =
                std::iter::from_fn(|| queue.pop()).map(|(t, id)| (t.as_ns(), id)).collect();
            proptest::prop_assert_eq!(popped, twin);
        }

        /// Also at the end of time, which must not look like no event.
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

//! `fifo`: in order of arrival.

use leyden_sim::{Links, List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// In order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fifo {}

/// No slot: one that was in this place has been taken out.
const GONE: u32 = u32::MAX;

/// A queue in a ring, so that what comes next is known some slots ahead. A slot leaves it from the middle in O(1):
/// its place stays, empty, until it is the first or the ring is full.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct FifoQueue {
    /// A power of two of places, more than there are slots.
    ring: Vec<u32>,
    /// The place of each slot that is in the queue.
    places: Vec<u32>,
    /// Places of the first slot and after the last, going on past the end of the ring: what of them lies within it
    /// is meant.
    first: u32,
    end: u32,
}

/// A queue as it is saved: a list through the slots.
#[derive(Serialize, Deserialize)]
struct Saved {
    links: Links,
    queue: List,
}

impl TryFrom<Saved> for FifoQueue {
    type Error = &'static str;

    fn try_from(saved: Saved) -> Result<Self, Self::Error> {
        let slots = saved.links.len();
        let mut queue = Self::new(slots);
        for (count, slot) in (0..).zip(saved.links.iter(saved.queue)) {
            if slot >= slots || count >= slots {
                return Err("a queue of slots leads nowhere, or in a circle");
            }
            queue.push(SlotId(slot));
        }
        Ok(queue)
    }
}

impl From<FifoQueue> for Saved {
    fn from(queue: FifoQueue) -> Self {
        let mut saved =
            Self { links: Links::new(queue.places.len() as u32), queue: List::default() };
        for slot in queue.waiting() {
            saved.links.push_back(&mut saved.queue, slot);
        }
        saved
    }
}

impl FifoQueue {
    pub(super) fn new(slots: u32) -> Self {
        let room = (slots as usize * 2).next_power_of_two();
        let (ring, places) = (vec![GONE; room], vec![0; slots as usize]);
        Self { ring, places, first: 0, end: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, slot: SlotId) {
        if (self.end.wrapping_sub(self.first)) as usize == self.ring.len() {
            self.close_up();
        }
        self.places[slot.index()] = self.end;
        *self.place_mut(self.end) = slot.0;
        self.end = self.end.wrapping_add(1);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: SlotId) {
        let place = self.place_mut(self.places[slot.index()]);
        debug_assert_eq!(*place, slot.0, "{slot:?} is not in the queue");
        *place = GONE;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        while self.first != self.end {
            let slot = *self.place_mut(self.first);
            self.first = self.first.wrapping_add(1);
            if slot != GONE {
                return Some(SlotId(slot));
            }
        }
        None
    }

    /// The slots in the first so many places.
    #[inline]
    pub(super) fn ahead(&self, places: u32) -> impl Iterator<Item = SlotId> + '_ {
        let mask = self.ring.len() - 1;
        let places = 0..places.min(self.end.wrapping_sub(self.first));
        let slots =
            places.map(move |place| self.ring[self.first.wrapping_add(place) as usize & mask]);
        slots.filter(|&slot| slot != GONE).map(SlotId)
    }

    pub(super) fn fits(&self, slots: u32) -> bool {
        self.places.len() == slots as usize
    }

    #[inline]
    fn place_mut(&mut self, place: u32) -> &mut u32 {
        let mask = self.ring.len() - 1;
        &mut self.ring[place as usize & mask]
    }

    /// The slots in the queue, in order.
    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.ahead(u32::MAX).map(|slot| slot.0)
    }

    /// Gives the room of places that are empty back.
    #[cold]
    #[inline(never)]
    fn close_up(&mut self) {
        let waiting: Vec<u32> = self.waiting().collect();
        (self.first, self.end) = (0, 0);
        for slot in waiting {
            self.push(SlotId(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a vector. Saved and loaded somewhere in between.
        #[test]
        fn behaves_like_a_vector(
            steps in proptest::collection::vec((0_u8..4, 0_u32..16), 0..200),
            saved in 0_usize..200,
        ) {
            let mut queue = FifoQueue::new(16);
            let mut twin: Vec<u32> = Vec::new();
            for (at, (step, slot)) in steps.into_iter().enumerate() {
                if at == saved {
                    let json = serde_json::to_string(&queue).unwrap();
                    queue = serde_json::from_str(&json).unwrap();
                }
                prop_assert_eq!(queue.waiting().collect::<Vec<_>>(), twin.clone());
                match step {
                    0 if twin.contains(&slot) => {
                        queue.remove(SlotId(slot));
                        twin.retain(|&other| other != slot);
                    }
                    0..=2 if !twin.contains(&slot) => {
                        queue.push(SlotId(slot));
                        twin.push(slot);
                    }
                    _ => {
                        let first = (!twin.is_empty()).then(|| SlotId(twin.remove(0)));
                        prop_assert_eq!(queue.pop(), first);
                    }
                }
            }
            while let Some(slot) = queue.pop() {
                prop_assert_eq!(slot.0, twin.remove(0));
            }
            prop_assert!(twin.is_empty());
        }
    }

    #[test]
    fn a_damaged_list_is_refused() {
        for (links, queue) in [
            ("[[4294967295,1],[0,0]]", "{\"first\":0,\"last\":1}"),
            ("[[4294967295,7]]", "{\"first\":0,\"last\":7}"),
        ] {
            let saved = format!("{{\"links\":{{\"links\":{links}}},\"queue\":{queue}}}");
            let loaded: Result<FifoQueue, _> = serde_json::from_str(&saved);
            assert!(loaded.unwrap_err().to_string().contains("leads nowhere"), "{saved}");
        }
    }
}

//! `fifo`: in order of arrival.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// In order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fifo {}

/// No slot: the end of the queue.
const NONE: u32 = u32::MAX;

/// A doubly linked queue through the slots, so that a trimmed page leaves it in O(1).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FifoQueue {
    /// Previous and next slot of each slot.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
}

impl FifoQueue {
    pub(super) fn new(slots: u32) -> Self {
        Self { links: vec![(NONE, NONE); slots as usize], first: NONE, last: NONE }
    }

    #[inline]
    pub(super) fn push(&mut self, slot: SlotId) {
        self.links[slot.index()] = (self.last, NONE);
        if self.last == NONE {
            self.first = slot.0;
        } else {
            self.links[self.last as usize].1 = slot.0;
        }
        self.last = slot.0;
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: SlotId) {
        let (previous, next) = self.links[slot.index()];
        if previous == NONE {
            self.first = next;
        } else {
            self.links[previous as usize].1 = next;
        }
        if next == NONE {
            self.last = previous;
        } else {
            self.links[next as usize].0 = previous;
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        let first = SlotId((self.first != NONE).then_some(self.first)?);
        self.remove(first);
        Some(first)
    }

    pub(super) fn fits(&self, slots: u32) -> bool {
        self.links.len() == slots as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a vector.
        #[test]
        fn behaves_like_a_vector(steps in proptest::collection::vec((0_u8..4, 0_u32..16), 0..200)) {
            let mut queue = FifoQueue::new(16);
            let mut twin: Vec<u32> = Vec::new();
            for (step, slot) in steps {
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
}

//! `fifo`: in order of arrival.

use leyden_sim::{Links, List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SlotId;

/// In order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fifo {}

/// A queue through the slots, so that a trimmed page leaves it in O(1).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FifoQueue {
    links: Links,
    queue: List,
}

impl FifoQueue {
    pub(super) fn new(slots: u32) -> Self {
        Self { links: Links::new(slots), queue: List::default() }
    }

    #[inline]
    pub(super) fn push(&mut self, slot: SlotId) {
        self.links.push_back(&mut self.queue, slot.0);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: SlotId) {
        self.links.remove(&mut self.queue, slot.0);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<SlotId> {
        self.links.pop_front(&mut self.queue).map(SlotId)
    }

    pub(super) fn fits(&self, slots: u32) -> bool {
        self.links.len() == slots
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

//! A binary heap that can also change or remove what is in the middle of it.
//!
//! **Invariants**: no item's key is less than its parent's; `position` names the place of every
//! identifier that is in the heap, and of no other.

use serde::{Deserialize, Serialize};

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

/// Identifiers from a fixed range, the one with the least key first. O(log n) per change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IndexedHeap<K> {
    items: Vec<(K, u32)>,
    /// Where in `items` each identifier is.
    position: Vec<u32>,
}

impl<K: Copy + Ord> IndexedHeap<K> {
    /// An empty heap for identifiers below `ids`.
    pub(super) fn new(ids: u32) -> Self {
        Self { items: Vec::new(), position: vec![ABSENT; ids as usize] }
    }

    /// The identifier with the least key.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.items.first().map(|&(_, id)| id)
    }

    /// Puts `id` in under `key`, or gives it another key.
    #[inline]
    pub(super) fn set(&mut self, id: u32, key: K) {
        let mut at = self.position[id as usize] as usize;
        if at == ABSENT as usize {
            at = self.items.len();
            self.items.push((key, id));
        } else {
            self.items[at].0 = key;
        }
        self.restore_order(at);
    }

    /// Takes `id` out, if it is in.
    #[inline]
    pub(super) fn remove(&mut self, id: u32) {
        let at = self.position[id as usize];
        if at == ABSENT {
            return;
        }
        self.position[id as usize] = ABSENT;
        self.items.swap_remove(at as usize);
        if (at as usize) < self.items.len() {
            self.restore_order(at as usize);
        }
    }

    /// True if this is a heap for identifiers below `ids`.
    pub(super) fn fits(&self, ids: u32) -> bool {
        let placed = |(at, &(_, id)): (usize, &(K, u32))| {
            self.position.get(id as usize).is_some_and(|&position| position as usize == at)
        };
        self.position.len() == ids as usize && self.items.iter().enumerate().all(placed)
    }

    /// Moves the item at `at`, whose key may be anything, to where it belongs.
    #[inline]
    fn restore_order(&mut self, mut at: usize) {
        let item = self.items[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.items[parent].0 <= item.0 {
                break;
            }
            self.place(at, self.items[parent]);
            at = parent;
        }
        loop {
            let mut child = 2 * at + 1;
            if child >= self.items.len() {
                break;
            }
            if child + 1 < self.items.len() && self.items[child + 1].0 < self.items[child].0 {
                child += 1;
            }
            if item.0 <= self.items[child].0 {
                break;
            }
            self.place(at, self.items[child]);
            at = child;
        }
        self.place(at, item);
    }

    #[inline]
    fn place(&mut self, at: usize, item: (K, u32)) {
        self.items[at] = item;
        self.position[item.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a list that is searched.
        #[test]
        fn behaves_like_a_list(steps in proptest::collection::vec((0_u8..4, 0_u32..24, 0_u32..12), 0..300)) {
            let mut heap = IndexedHeap::new(24);
            let mut twin: Vec<((u32, u32), u32)> = Vec::new();
            for (i, (step, id, key)) in steps.into_iter().enumerate() {
                twin.retain(|&(_, other)| other != id);
                if step == 0 {
                    heap.remove(id);
                } else {
                    // Unique keys: which of two equal ones comes first is not promised.
                    let key = (key, i as u32);
                    heap.set(id, key);
                    twin.push((key, id));
                }
                prop_assert_eq!(heap.first(), twin.iter().min().map(|&(_, id)| id));
                prop_assert!(heap.fits(24));
            }
            while let Some(id) = heap.first() {
                prop_assert_eq!(twin.iter().min().map(|&(_, id)| id), Some(id));
                heap.remove(id);
                twin.retain(|&(_, other)| other != id);
            }
            prop_assert!(twin.is_empty());
        }
    }
}

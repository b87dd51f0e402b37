//! Doubly linked lists through one array: taking an item out of the middle costs as little as out of the
//! front, and nothing is allocated.

use serde::{Deserialize, Serialize};

/// No item: the end of a list.
const NONE: u32 = u32::MAX;
/// The link of an item that is in no list.
const ABSENT: u32 = u32::MAX - 1;

/// The links of items, each of which is in one list at most.
///
/// ```
/// use leyden_sim::{Links, List};
/// let (mut links, mut list) = (Links::new(10), List::default());
/// [7, 3, 5].into_iter().for_each(|item| links.push_back(&mut list, item));
/// links.remove(&mut list, 3);
/// assert_eq!(links.iter(list).collect::<Vec<_>>(), [7, 5]);
/// assert!(links.contains(5) && !links.contains(3));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Links {
    /// Previous and next item of each.
    links: Vec<(u32, u32)>,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl List {
    /// The first item.
    #[inline]
    pub fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The last item.
    #[inline]
    pub fn last(self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// True if nothing is in it.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.first == NONE
    }
}

impl Links {
    /// Items 0 to `items`, in no list. Items are less than `u32::MAX - 1`.
    pub fn new(items: u32) -> Self {
        Self { links: vec![(ABSENT, ABSENT); items as usize] }
    }

    /// How many items there are.
    pub fn len(&self) -> u32 {
        self.links.len() as u32
    }

    /// True if there are no items at all.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// True if `item` is in a list.
    #[inline]
    pub fn contains(&self, item: u32) -> bool {
        self.links[item as usize].0 != ABSENT
    }

    /// Puts `item`, which is in no list, at the end of `list`.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, item: u32) {
        debug_assert!(!self.contains(item), "{item} is in a list");
        self.links[item as usize] = (list.last, NONE);
        match list.last {
            NONE => list.first = item,
            last => self.links[last as usize].1 = item,
        }
        list.last = item;
    }

    /// Takes `item`, which is in `list`, out.
    #[inline]
    pub fn remove(&mut self, list: &mut List, item: u32) {
        debug_assert!(self.contains(item), "{item} is in no list");
        let (previous, next) = std::mem::replace(&mut self.links[item as usize], (ABSENT, ABSENT));
        match previous {
            NONE => list.first = next,
            previous => self.links[previous as usize].1 = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.links[next as usize].0 = previous,
        }
    }

    /// Takes the first item of `list` out.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let first = list.first()?;
        self.remove(list, first);
        Some(first)
    }

    /// The items of `list`, in order. A list that was loaded may lead to an item that is none, which is its last then, or in a
    /// circle.
    pub fn iter(&self, list: List) -> impl Iterator<Item = u32> + '_ {
        let next = |item: &u32| {
            self.links.get(*item as usize).map(|link| link.1).filter(|&next| next != NONE)
        };
        std::iter::successors(list.first(), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against the slow twin: two queues that share the items.
        #[test]
        fn behave_like_queues(steps in proptest::collection::vec((0_u32..12, 0_usize..2, 0_u8..3), 0..200)) {
            let mut links = Links::new(12);
            let mut lists = [List::default(); 2];
            let mut twins = [VecDeque::new(), VecDeque::new()];
            for (item, at, what) in steps {
                let is_in = twins.iter().position(|twin| twin.contains(&item));
                match (what, is_in) {
                    (0, _) => prop_assert_eq!(links.pop_front(&mut lists[at]), twins[at].pop_front()),
                    (_, Some(other)) => {
                        links.remove(&mut lists[other], item);
                        twins[other].retain(|&kept| kept != item);
                    }
                    (_, None) => {
                        links.push_back(&mut lists[at], item);
                        twins[at].push_back(item);
                    }
                }
                for (list, twin) in lists.iter().zip(&twins) {
                    prop_assert_eq!(&links.iter(*list).collect::<VecDeque<_>>(), twin);
                    prop_assert_eq!((list.first(), list.last()), (twin.front().copied(), twin.back().copied()));
                    prop_assert_eq!(list.is_empty(), twin.is_empty());
                }
                for item in 0..12 {
                    prop_assert_eq!(links.contains(item), twins.iter().any(|twin| twin.contains(&item)));
                }
            }
        }
    }
}

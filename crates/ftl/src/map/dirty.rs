//! The mapping pages that differ from what flash holds, least recently used first.

use serde::{Deserialize, Serialize};

use super::MapPage;

/// No page: the end of the list.
const NONE: u32 = u32::MAX;
/// The link of a page that is not in the list.
const ABSENT: u32 = u32::MAX - 1;

/// A set of mapping pages in the order of use: a doubly linked list through one entry per page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DirtySet {
    /// Previous (used before) and next (used after) page of each.
    links: Vec<(u32, u32)>,
    oldest: u32,
    newest: u32,
    len: u32,
}

impl DirtySet {
    pub(super) fn new(pages: u32) -> Self {
        Self { links: vec![(ABSENT, ABSENT); pages as usize], oldest: NONE, newest: NONE, len: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Pages that could be in the set.
    pub(super) fn capacity(&self) -> u32 {
        self.links.len() as u32
    }

    #[inline]
    pub(super) fn contains(&self, page: MapPage) -> bool {
        self.links[page.index()].0 != ABSENT
    }

    /// Makes `page` the most recently used. True if it was in the set already.
    #[inline]
    pub(super) fn use_page(&mut self, page: MapPage) -> bool {
        if self.newest == page.0 {
            return true;
        }
        let was_in = self.remove(page);
        self.links[page.index()] = (self.newest, NONE);
        match self.newest {
            NONE => self.oldest = page.0,
            newest => self.links[newest as usize].1 = page.0,
        }
        self.newest = page.0;
        self.len += 1;
        was_in
    }

    /// Takes `page` out. True if it was in.
    #[inline]
    pub(super) fn remove(&mut self, page: MapPage) -> bool {
        let (previous, next) = self.links[page.index()];
        if previous == ABSENT {
            return false;
        }
        match previous {
            NONE => self.oldest = next,
            previous => self.links[previous as usize].1 = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.links[next as usize].0 = previous,
        }
        self.links[page.index()] = (ABSENT, ABSENT);
        self.len -= 1;
        true
    }

    /// The pages, least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = MapPage> + '_ {
        let next = |page: &u32| Some(self.links[*page as usize].1).filter(|&next| next != NONE);
        std::iter::successors(Some(self.oldest).filter(|&page| page != NONE), next).map(MapPage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a vector.
        #[test]
        fn behaves_like_a_vector(steps in proptest::collection::vec((any::<bool>(), 0_u32..8), 0..200)) {
            let mut set = DirtySet::new(8);
            let mut twin: Vec<u32> = Vec::new();
            for (insert, page) in steps {
                let was_in = twin.contains(&page);
                twin.retain(|&other| other != page);
                if insert {
                    twin.push(page);
                    prop_assert_eq!(set.use_page(MapPage(page)), was_in);
                } else {
                    prop_assert_eq!(set.remove(MapPage(page)), was_in);
                }
                prop_assert_eq!(set.iter().map(|page| page.0).collect::<Vec<_>>(), twin.clone());
                prop_assert_eq!(set.len() as usize, twin.len());
                prop_assert!((0..8).all(|page| set.contains(MapPage(page)) == twin.contains(&page)));
            }
        }
    }
}

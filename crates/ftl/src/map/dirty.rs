//! The mapping pages that differ from what flash holds, least recently used first.

use leyden_sim::{Links, List};
use serde::{Deserialize, Serialize};

use super::MapPage;

/// A set of mapping pages in the order of use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DirtySet {
    links: Links,
    by_use: List,
    len: u32,
}

impl DirtySet {
    pub(super) fn new(pages: u32) -> Self {
        Self { links: Links::new(pages), by_use: List::default(), len: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Pages that could be in the set.
    pub(super) fn capacity(&self) -> u32 {
        self.links.len()
    }

    #[inline]
    pub(super) fn contains(&self, page: MapPage) -> bool {
        self.links.contains(page.0)
    }

    /// Makes `page` the most recently used. True if it was in the set already.
    #[inline]
    pub(super) fn use_page(&mut self, page: MapPage) -> bool {
        if self.by_use.last() == Some(page.0) {
            return true;
        }
        let was_in = self.remove(page);
        self.links.push_back(&mut self.by_use, page.0);
        self.len += 1;
        was_in
    }

    /// Takes `page` out. True if it was in.
    #[inline]
    pub(super) fn remove(&mut self, page: MapPage) -> bool {
        let was_in = self.links.contains(page.0);
        if was_in {
            self.links.remove(&mut self.by_use, page.0);
            self.len -= 1;
        }
        was_in
    }

    /// The pages, least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = MapPage> + '_ {
        self.links.iter(self.by_use).map(MapPage)
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

//! Where a zone's data lies: sets of blocks, and which stretch of the zone lies where in them.
//!
//! A *set* is a matrix of blocks: one lane for each of the zone's dies, some levels deep. Its pages are
//! numbered across the lanes first, so that neighbouring pages of a zone go to different dies. Pages are
//! used in the order of their numbers, each once.
//!
//! An *extent* says that the zone's data from a unit on lies from a page on. A zone that is written
//! without interruption has one extent for each set. There are more where a page was padded because
//! somebody waited for it, where a program was torn or failed, and where a set was given up.
//!
//! **Invariants**: extents are in the order of their first units, and cover everything below `end`.

use leyden_nand::{BlockId, DieId, Geometry, Ppa, Ppn};
use serde::{Deserialize, Serialize};

/// A matrix of blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) lanes: u32,
    /// Level by level; `None` where the block was given back, unwritten.
    pub(super) blocks: Vec<Option<BlockId>>,
    /// The next page to use.
    pub(super) next: u32,
    /// Pages that may be used.
    pub(super) pages: u32,
}

impl Set {
    pub(super) fn new(lanes: u32, blocks: Vec<BlockId>, geometry: &Geometry) -> Self {
        let pages = blocks.len() as u32 * geometry.pages_per_block();
        Self { lanes, blocks: blocks.into_iter().map(Some).collect(), next: 0, pages }
    }

    /// Where page `number` lies.
    #[inline]
    pub(super) fn page(&self, number: u32, geometry: &Geometry) -> Ppn {
        let (row, lane) = (number / self.lanes, number % self.lanes);
        let per_block = geometry.pages_per_block();
        let block = self.blocks[(row / per_block * self.lanes + lane) as usize];
        geometry.page(block.expect("a page in use"), row % per_block)
    }

    /// The dies of its lanes.
    pub(super) fn lane_dies(&self, geometry: &Geometry) -> impl Iterator<Item = DieId> {
        let lanes = self.blocks.iter().take(self.lanes as usize).flatten();
        lanes.map(|&block| geometry.die_of(block))
    }

    /// Pages of lane `lane` among the first `number`.
    pub(super) fn rows(&self, lane: u32, number: u32) -> u32 {
        (number + self.lanes - 1 - lane) / self.lanes
    }

    /// Whether flash of this shape has such a set. Each page that may be used has its block.
    fn fits(&self, geometry: &Geometry) -> bool {
        let per_block = geometry.pages_per_block();
        let known = |block: &Option<BlockId>| block.is_none_or(|it| it.0 < geometry.blocks());
        let levels = (self.blocks.len() as u32).checked_div(self.lanes);
        let pages =
            levels.map_or(0, |levels| u64::from(levels * self.lanes) * u64::from(per_block));
        let is_begun = |at: usize| {
            let (level, lane) = (at as u32 / self.lanes, at as u32 % self.lanes);
            u64::from(self.rows(lane, self.pages)) > u64::from(level) * u64::from(per_block)
        };
        self.lanes > 0
            && self.next <= self.pages
            && u64::from(self.pages) <= pages
            && self.blocks.iter().all(known)
            && (0..).zip(&self.blocks).all(|(at, block)| block.is_some() || !is_begun(at))
    }

    /// Closes the set, and gives back the blocks that are not begun.
    pub(super) fn close(&mut self, geometry: &Geometry) -> Vec<BlockId> {
        let per_block = geometry.pages_per_block();
        let begun = (self.next.div_ceil(per_block * self.lanes) * self.lanes) as usize;
        self.pages = self.next;
        let unwritten = begun.min(self.blocks.len());
        let mut unused: Vec<BlockId> = self.blocks.drain(unwritten..).flatten().collect();
        // The last level may have lanes without a page in use.
        let Some(last) = unwritten.checked_sub(self.lanes as usize) else { return unused };
        let before = last as u32 / self.lanes * per_block;
        for lane in 0..self.lanes {
            if self.rows(lane, self.next) <= before {
                unused.extend(self.blocks[last + lane as usize].take());
            }
        }
        unused
    }
}

/// A stretch of the zone's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extent {
    /// Its first unit, from the zone's beginning.
    pub(super) first: u32,
    /// The set that it lies in.
    pub(super) set: u32,
    /// The page of the set that the first unit begins.
    pub(super) page: u32,
}

/// Where a zone's data lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    pub(super) sets: Vec<Set>,
    extents: Vec<Extent>,
    /// Units that lie somewhere.
    end: u32,
    /// Pages that were used, in all sets: their order, by which a scan tells which copy is newer.
    pub(super) order: u32,
}

impl Body {
    /// Sets of which it is not known yet what they hold.
    pub(super) fn with_sets(sets: Vec<Set>, order: u32) -> Self {
        Self { sets, order, ..Self::default() }
    }

    /// The set that is being filled.
    #[inline]
    pub(super) fn open_set(&self) -> Option<&Set> {
        self.sets.last().filter(|set| set.next < set.pages)
    }

    /// True if the data lies in order from the first page on.
    pub(super) fn is_regular(&self) -> bool {
        matches!(self.extents[..], [] | [Extent { first: 0, set: 0, page: 0 }])
    }

    pub(super) const fn end(&self) -> u32 {
        self.end
    }

    /// Uses the next page of the open set. Its number, and the set's.
    ///
    /// # Panics
    /// If no set is open.
    #[inline]
    pub(super) fn take_page(&mut self) -> (u32, u32) {
        let last = self.sets.len() as u32 - 1;
        let set = self.sets.last_mut().expect("a set is open");
        assert!(set.next < set.pages, "a page of a full set");
        set.next += 1;
        self.order += 1;
        (last, set.next - 1)
    }

    /// `units` units from `first` on lie in page `page` of `set`.
    #[inline]
    pub(super) fn place(&mut self, first: u32, units: u32, (set, page): (u32, u32), per_page: u32) {
        let end = first + units;
        if first == self.end {
            if !self.extents.last().is_some_and(|last| goes_on(last, first, set, page, per_page)) {
                self.extents.push(Extent { first, set, page });
            }
            self.end = end;
            return;
        }
        // Data that is programmed again: what follows it lies where it did.
        let rest = (end < self.end).then(|| {
            let (extent, page) = self.find(end, per_page);
            Extent { first: end, set: extent.set, page }
        });
        let from = self.extents.partition_point(|extent| extent.first < first);
        let to = self.extents.partition_point(|extent| extent.first < end);
        let starts_there = self.extents.get(to).is_some_and(|extent| extent.first == end);
        let new = std::iter::once(Extent { first, set, page });
        let new: Vec<_> = new.chain(rest.filter(|_| !starts_there)).collect();
        self.extents.splice(from..to, new);
        self.end = self.end.max(end);
    }

    /// The extent that unit `unit` lies in, and its page.
    #[inline]
    fn find(&self, unit: u32, per_page: u32) -> (Extent, u32) {
        let at = self.extents.partition_point(|extent| extent.first <= unit) - 1;
        let extent = self.extents[at];
        (extent, extent.page + (unit - extent.first) / per_page)
    }

    /// Where `unit` lies.
    ///
    /// # Panics
    /// If it lies nowhere.
    #[inline]
    pub(super) fn lies(&self, unit: u32, geometry: &Geometry) -> Ppa {
        assert!(unit < self.end, "unit {unit} of {} on flash", self.end);
        let per_page = geometry.units_per_page();
        let (extent, page) = self.find(unit, per_page);
        let page = self.sets[extent.set as usize].page(page, geometry);
        Ppa(geometry.first_unit(page).0 + (unit - extent.first) % per_page)
    }

    /// Forgets where the data from `unit` on lies.
    pub(super) fn truncate(&mut self, unit: u32) {
        if unit < self.end {
            self.end = unit;
            self.extents.retain(|extent| extent.first < unit);
        }
    }

    /// Whether a zone of `capacity` units on flash of this shape can have this body.
    pub(super) fn fits(&self, geometry: &Geometry, capacity: u32) -> bool {
        let per_page = geometry.units_per_page();
        if self.end > capacity || !self.sets.iter().all(|set| set.fits(geometry)) {
            return false;
        }
        // Where each extent ends, the last one with the zone.
        let ends = self.extents.iter().skip(1).map(|extent| extent.first).chain([self.end]);
        let mut begin = 0;
        for (extent, end) in self.extents.iter().zip(ends) {
            let Some(set) = self.sets.get(extent.set as usize) else { return false };
            let pages = u64::from(end.saturating_sub(extent.first).div_ceil(per_page));
            let is_in_set = u64::from(extent.page) + pages <= u64::from(set.next);
            if extent.first != begin || end <= begin || !is_in_set {
                return false;
            }
            begin = end;
        }
        begin == self.end
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.sets.iter().flat_map(|set| set.blocks.iter().copied().flatten())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let set = |set: &Set| size_of_val(set) + size_of_val(set.blocks.as_slice());
        size_of_val(self)
            + size_of_val(self.extents.as_slice())
            + self.sets.iter().map(set).sum::<usize>()
    }
}

/// True if what begins at `first`, in `page` of `set`, continues `last`.
#[inline]
fn goes_on(last: &Extent, first: u32, set: u32, page: u32, per_page: u32) -> bool {
    let units = first - last.first;
    last.set == set && units.is_multiple_of(per_page) && last.page + units / per_page == page
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_nand::Config;
    use leyden_sim::Bytes;
    use proptest::prelude::*;

    fn geometry() -> Geometry {
        let config = Config {
            channels: 1,
            dies_per_channel: 4,
            blocks_per_plane: 8,
            pages_per_block: 8,
            ..Config::default()
        };
        config.geometry(Bytes::new(4096)).unwrap()
    }

    proptest! {
        /// Against a list of where each unit was put last.
        #[test]
        fn units_lie_where_they_were_put(
            steps in proptest::collection::vec((0_u32..4, 1_u32..=2, any::<bool>()), 1..30),
        ) {
            let geometry = geometry();
            let blocks = [0, 8, 16, 1, 9, 17].map(BlockId).to_vec();
            let mut body = Body::default();
            body.sets.push(Set::new(3, blocks, &geometry));
            let mut twin: Vec<Ppa> = Vec::new();
            let mut pages: Vec<(u32, u32)> = Vec::new(); // first, units
            for (back, units, again) in steps {
                let place = body.take_page();
                let first_unit = geometry.first_unit(body.sets[0].page(place.1, &geometry)).0;
                let known = pages.len().checked_sub(1 + back as usize).filter(|_| again);
                let (first, units) = match known {
                    Some(at) => pages[at],
                    None => (twin.len() as u32, units),
                };
                if known.is_none() {
                    pages.push((first, units));
                }
                body.place(first, units, place, geometry.units_per_page());
                for unit in 0..units {
                    let at = (first + unit) as usize;
                    twin.resize(twin.len().max(at + 1), Ppa(0));
                    twin[at] = Ppa(first_unit + unit);
                }
                for (unit, place) in twin.iter().enumerate() {
                    prop_assert_eq!(body.lies(unit as u32, &geometry), *place);
                }
            }
        }
    }

    #[test]
    fn an_uninterrupted_zone_has_one_extent_and_gives_back_what_is_not_begun() {
        let geometry = geometry();
        let mut body = Body::default();
        body.sets.push(Set::new(2, [0, 8, 1, 9].map(BlockId).to_vec(), &geometry));
        for page in 0..10 {
            let place = body.take_page();
            body.place(page * 2, 2, place, 2);
        }
        assert!(body.is_regular());
        assert_eq!((body.sets[0].rows(0, 5), body.sets[0].rows(1, 5)), (3, 2));
        assert_eq!(body.sets[0].close(&geometry), [BlockId(1), BlockId(9)]);
        assert!(body.open_set().is_none());
    }

    #[test]
    fn a_closed_set_gives_back_lanes_without_a_page_in_use() {
        let geometry = geometry();
        let closed_after = |pages| {
            let mut set = Set::new(2, [0, 8, 1, 9].map(BlockId).to_vec(), &geometry);
            set.next = pages;
            let unused = set.close(&geometry);
            assert!(set.fits(&geometry), "{set:?}");
            unused
        };
        let per_block = geometry.pages_per_block();
        assert_eq!(closed_after(0), [0, 8, 1, 9].map(BlockId));
        assert_eq!(closed_after(1), [1, 9, 8].map(BlockId));
        assert_eq!(closed_after(2), [1, 9].map(BlockId));
        assert_eq!(closed_after(2 * per_block + 1), [BlockId(9)]);
        assert_eq!(closed_after(4 * per_block), []);
    }
}

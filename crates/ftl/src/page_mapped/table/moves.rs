//! Copies that the mapping table on flash does not know of: what they were copied from must stay.
//!
//! With part of the table protected, a mapping page that garbage collection alone has changed need
//! not be dirty: the page on flash points to where the data was copied from, and that is as good as
//! the copy until its block is erased. So a victim is erased only when each mapping page that its
//! copies have changed has become dirty since, for whatever reason: from then on capacitors protect
//! it, or flash holds it. Mostly the host's writes see to that meanwhile. If the die needs the block
//! before, the pages that are missing are written back.
//!
//! Invariant: a block is *covered* if no mapping page that flash might have to do with after a power
//! cut points into it.

use leyden_nand::{BlockId, DieId};
use serde::{Deserialize, Serialize};

use crate::map::MapPage;

/// Moves that keep blocks from being erased.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::page_mapped) struct Moves {
    /// How often each mapping page has become dirty. Empty if copies make pages dirty themselves, or
    /// nothing does.
    times_dirty: Vec<u32>,
    /// For each block the pages that its copies have changed, and how often they had been dirty then.
    moved: Vec<Vec<(MapPage, u32)>>,
    /// Dies that wait for room under the limit of dirty pages, to cover a block.
    waiting: Vec<DieId>,
}

impl Moves {
    pub(super) fn new(pages: u32, blocks: u32) -> Self {
        Self {
            times_dirty: vec![0; pages as usize],
            moved: vec![Vec::new(); blocks as usize],
            waiting: Vec::new(),
        }
    }

    /// True if copies are left to become known.
    #[inline]
    pub(super) fn are_kept(&self) -> bool {
        !self.times_dirty.is_empty()
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.times_dirty.len() == other.times_dirty.len() && self.moved.len() == other.moved.len()
    }

    /// A unit of `page`, which is not dirty, was copied out of `block`.
    #[inline]
    pub(super) fn moved(&mut self, block: BlockId, page: MapPage) {
        let entry = (page, self.times_dirty[page.index()]);
        let moved = &mut self.moved[block.index()];
        if moved.last() != Some(&entry) {
            moved.push(entry);
        }
    }

    /// `page` has become dirty.
    #[inline]
    pub(super) fn dirtied(&mut self, page: MapPage) {
        if let Some(times) = self.times_dirty.get_mut(page.index()) {
            *times = times.wrapping_add(1);
        }
    }

    /// A page that keeps `block` from being erased, if there is one.
    pub(super) fn keeps(&mut self, block: BlockId) -> Option<MapPage> {
        let moved = self.moved.get_mut(block.index())?;
        while let Some(&(page, times)) = moved.last() {
            if self.times_dirty[page.index()] == times {
                return Some(page);
            }
            moved.pop();
        }
        None
    }

    /// `die` waits for mapping pages to be written back.
    pub(super) fn wait(&mut self, die: DieId) {
        if !self.waiting.contains(&die) {
            self.waiting.push(die);
        }
    }

    /// The dies that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<DieId> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_kept_until_every_page_has_been_dirty() {
        let mut moves = Moves::new(3, 2);
        let (block, other) = (BlockId(0), BlockId(1));
        moves.dirtied(MapPage(1)); // before: does not count
        moves.moved(block, MapPage(0));
        moves.moved(block, MapPage(1));
        moves.moved(block, MapPage(0));
        assert_eq!(moves.keeps(other), None);
        assert_eq!(moves.keeps(block), Some(MapPage(0)));
        moves.dirtied(MapPage(0));
        assert_eq!(moves.keeps(block), Some(MapPage(1)));
        moves.dirtied(MapPage(1));
        assert_eq!(moves.keeps(block), None);
        moves.moved(block, MapPage(1)); // its next life
        assert_eq!(moves.keeps(block), Some(MapPage(1)));
    }
}

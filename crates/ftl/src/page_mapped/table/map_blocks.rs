//! The blocks of mapping pages on flash, and the collection of those blocks.
//!
//! Each die has a few blocks for the mapping pages whose number is its own modulo the dies; data never
//! lies there. A mapping page is written from DRAM, so collecting one of these blocks reads nothing:
//! what is still current in it is written again, as it is now, and is clean with that.

use std::collections::VecDeque;

use leyden_nand::{BlockId, Content, DieId, Geometry, Health, Medium, Ppn};
use serde::{Deserialize, Serialize};

use crate::map::{MapPage, MapStore};
use crate::page_mapped::data::{BlockState, Blocks};

/// One die's blocks for mapping pages, and what it has to write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MapDie {
    open: Option<BlockId>,
    full: Vec<BlockId>,
    /// Being emptied: to be erased, or retired if a program in it failed.
    victims: Vec<(BlockId, bool)>,
    /// Pages to move out of them.
    copies: VecDeque<MapPage>,
    /// Pages to write back.
    queue: VecDeque<MapPage>,
}

impl MapDie {
    fn has_work(&self) -> bool {
        !(self.queue.is_empty() && self.copies.is_empty() && self.victims.is_empty())
    }
}

/// The next operation of a die for a block whose pages are all outdated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Emptied {
    /// Erase it.
    Erase(BlockId),
    /// Retire it: a program in it failed.
    Retire(BlockId),
}

/// The blocks of mapping pages. Empty if no mapping page is written while the power is on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MapBlocks {
    dies: Vec<MapDie>,
    /// By block: how many of its pages are current.
    current: Vec<u32>,
}

impl MapBlocks {
    /// The blocks that `medium` holds mapping pages in; none of them is current yet.
    pub(super) fn new<C: Content>(medium: &Medium<C>, blocks: &Blocks, are_used: bool) -> Self {
        let geometry = medium.geometry();
        let (dies, count) = if are_used { (geometry.dies(), geometry.blocks()) } else { (0, 0) };
        let mut map_blocks =
            Self { dies: vec![MapDie::default(); dies as usize], current: vec![0; count as usize] };
        let all = (0..geometry.blocks()).map(BlockId);
        for block in all.filter(|&block| blocks.state(block) == BlockState::Map) {
            let die = &mut map_blocks.dies[geometry.die_of(block).index()];
            if medium.is_poisoned(block) {
                die.victims.push((block, false));
            } else if medium.health(block) == Health::Failing {
                die.victims.push((block, true));
            } else if medium.next_page(block).is_some() {
                die.open = Some(block);
            } else {
                die.full.push(block);
            }
        }
        map_blocks
    }

    /// True if no mapping page is written while the power is on.
    #[inline]
    pub(super) fn are_unused(&self) -> bool {
        self.dies.is_empty()
    }

    /// Dies that have something to write.
    pub(super) fn busy_dies(&self) -> impl Iterator<Item = DieId> + '_ {
        (0..).map(DieId).zip(&self.dies).filter_map(|(id, die)| die.has_work().then_some(id))
    }

    /// True if `die` has something to write.
    #[inline]
    pub(super) fn has_work(&self, die: DieId) -> bool {
        self.dies[die.index()].has_work()
    }

    /// The die whose blocks hold `page`.
    #[inline]
    pub(super) fn die_of(&self, page: MapPage) -> DieId {
        DieId(page.0 % self.dies.len() as u32)
    }

    /// Has `page` written back; returns the die that will.
    pub(super) fn queue(&mut self, page: MapPage) -> DieId {
        let die = self.die_of(page);
        self.dies[die.index()].queue.push_back(page);
        die
    }

    /// The page at `place` is current.
    pub(super) fn add(&mut self, geometry: &Geometry, place: Ppn) {
        self.current[geometry.block_of_page(place).index()] += 1;
    }

    /// The page at `place` is current no more.
    pub(super) fn remove(&mut self, geometry: &Geometry, place: Ppn) {
        self.current[geometry.block_of_page(place).index()] -= 1;
    }

    /// A block of `die` that holds nothing current any more.
    pub(super) fn take_emptied(&mut self, die: DieId) -> Option<Emptied> {
        let victims = &mut self.dies[die.index()].victims;
        let at = victims.iter().position(|&(block, _)| self.current[block.index()] == 0)?;
        let (block, failed) = victims.remove(at);
        Some(if failed { Emptied::Retire(block) } else { Emptied::Erase(block) })
    }

    /// The page that `die` writes next, and whether it is only moved: copies first, since a block waits
    /// for them. Pages that need not be written any more are dropped. `is_early` says which page has to
    /// wait for older data on its way.
    pub(super) fn next(
        &mut self,
        die: DieId,
        store: &MapStore,
        geometry: &Geometry,
        is_early: impl Fn(MapPage) -> bool,
    ) -> Option<(MapPage, bool)> {
        let state = &mut self.dies[die.index()];
        while let Some(&page) = state.copies.front() {
            let place = store.place(page).map(|place| geometry.block_of_page(place));
            if !store.is_handed(page)
                && place.is_some_and(|place| state.victims.iter().any(|&(block, _)| block == place))
            {
                return Some((page, true));
            }
            state.copies.pop_front();
        }
        while let Some(&page) = state.queue.front() {
            if store.is_wanted(page) {
                return (!is_early(page)).then_some((page, false));
            }
            state.queue.pop_front();
        }
        None
    }

    /// The page that [`MapBlocks::next`] has named is written now.
    pub(super) fn take(&mut self, die: DieId, is_copy: bool) {
        let state = &mut self.dies[die.index()];
        if is_copy {
            state.copies.pop_front();
        } else {
            state.queue.pop_front();
        }
    }

    /// Where `die`'s next mapping page goes; chooses a block to collect when the last one is opened.
    pub(super) fn place<C: Content>(
        &mut self,
        die: DieId,
        store: &MapStore,
        medium: &Medium<C>,
        blocks: &mut Blocks,
    ) -> Option<Ppn> {
        let state = &mut self.dies[die.index()];
        if let Some(open) = state.open {
            if let Some(page) = medium.next_page(open) {
                return Some(page);
            }
            state.full.push(open);
            state.open = None;
        }
        let block = blocks.take_kept(die, BlockState::Map).or_else(|| {
            // Failed programs have used up the reserve, and the failed blocks' pages must move before they can retire.
            let is_failing = state.victims.iter().any(|&(_, failed)| failed);
            is_failing.then(|| blocks.borrow_from_data(die, BlockState::Map)).flatten()
        })?;
        state.open = Some(block);
        if state.victims.is_empty() {
            self.choose_victim(die, store, medium, blocks);
        }
        medium.next_page(block)
    }

    /// If the blocks kept back are used up but for one, chooses the full block with the fewest current
    /// pages, and has those moved.
    fn choose_victim<C: Content>(
        &mut self,
        die: DieId,
        store: &MapStore,
        medium: &Medium<C>,
        blocks: &Blocks,
    ) {
        if blocks.kept_for_map(die) > 1 {
            return;
        }
        let full = &mut self.dies[die.index()].full;
        let least = (0..full.len()).min_by_key(|&at| self.current[full[at].index()]);
        let Some(at) = least else { return };
        let victim = full.remove(at);
        self.empty(die, victim, false, store, medium);
    }

    /// Has the current pages of `victim` moved, and then erases it, or retires it if it `failed`.
    fn empty<C: Content>(
        &mut self,
        die: DieId,
        victim: BlockId,
        failed: bool,
        store: &MapStore,
        medium: &Medium<C>,
    ) {
        let state = &mut self.dies[die.index()];
        state.victims.push((victim, failed));
        let pages =
            medium.meta_pages(victim).map(|(place, page)| (place, MapPage(page.number as u32)));
        let current = pages.filter(|&(place, page)| store.place(page) == Some(place));
        state.copies.extend(current.map(|(_, page)| page));
    }

    /// The program of `page` in `block` failed. If it `was_moved`, it is moved again, else written back.
    pub(super) fn failed<C: Content>(
        &mut self,
        die: DieId,
        block: BlockId,
        page: MapPage,
        was_moved: bool,
        store: &MapStore,
        medium: &Medium<C>,
    ) {
        let state = &mut self.dies[die.index()];
        if was_moved {
            state.copies.push_front(page);
        } else {
            state.queue.push_front(page);
        }
        if state.open == Some(block) {
            state.open = None;
        }
        self.empty(die, block, true, store, medium);
    }

    /// After a power cut: goes on with emptying blocks.
    pub(super) fn resume<C: Content>(
        &mut self,
        store: &MapStore,
        medium: &Medium<C>,
        blocks: &Blocks,
    ) {
        for die in (0..self.dies.len() as u32).map(DieId) {
            for (block, failed) in std::mem::take(&mut self.dies[die.index()].victims) {
                self.empty(die, block, failed, store, medium);
            }
            self.choose_victim(die, store, medium, blocks);
        }
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.dies.len() == other.dies.len() && self.current.len() == other.current.len()
    }
}

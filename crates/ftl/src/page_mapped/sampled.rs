//! The state of a drive in use, drawn instead of reached.
//!
//! **What lives here**: how such a state is laid down, in all rooms at once. **What doesn't**: how many
//! units of each block are valid in it. The caller gives these counts ([`DieShare`]), from the theory
//! of a workload and a victim policy.
//!
//! Every logical unit is mapped, each to a place drawn at random, so that neighbours lie in blocks that have
//! nothing to do with each other. Each die has closed blocks, one that is filled in part (a part that differs
//! from die to die, as dies do not collect in step), and as many free ones as make it collect. Nothing is
//! counted: no operation was made.
//!
//! **Speed**: 1 TiB has 200 million units. Laid down in the order of their places they access the map at
//! random, and the other way round the out-of-band areas. So they are dealt out in batches ([`Deal`]). The
//! places of a batch lie in a few hundred blocks, and are shuffled in a near cache; its logical units are
//! spread over all addresses, in ascending order. The map is written for some batches at once, whose logical
//! units are neighbours: a cache line at a time.

use std::ops::Range;

use leyden_nand::{BlockId, BlockUse, Content, DieId, Geometry, Lpn, PageKind, Ppa};
use leyden_sim::{Rng, Time};
use thiserror::Error;

use super::data::{BlockState, unit_of};
use super::ftl::Ftl;
use super::table::Step;
use crate::place::StreamId;

/// Units of a batch: their places, and what lies there, are to fit in a near cache.
const BATCH_UNITS: u32 = 1 << 18;
/// Batches that the map is written for at once: the entries of a cache line.
const BATCHES_AT_ONCE: usize = 16;
/// The one stream.
const STREAM: StreamId = StreamId(0);
/// The version of all data: there is one copy of each unit.
const VERSION: u64 = 1;

/// The contents that the closed blocks of a die are to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DieShare {
    /// How many there are.
    pub blocks: u32,
    /// How many units a block has.
    pub units_per_block: u32,
    /// How many units are valid in all of them.
    pub valid_units: u64,
}

/// The drive cannot hold its logical units, or its mapping pages, and collect: too many of its blocks are
/// bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the blocks that are not bad have no room for a steady state")]
pub struct NoRoom;

/// How the blocks of the drive that hold data are used.
struct Plan {
    /// By die: closed blocks.
    closed: Vec<u32>,
    /// By die: pages written of the open block.
    open_pages: Vec<u32>,
}

/// A state that is being laid down.
pub(super) struct Sampling<'a, C: Content> {
    pub(super) ftl: &'a mut Ftl<C>,
}

impl<C: Content> Sampling<'_, C> {
    /// Lays the state down ([`Ftl::fill_sampled`]).
    pub(super) fn run(
        &mut self,
        mut valid: impl FnMut(&DieShare) -> Vec<u32>,
    ) -> Result<(), NoRoom> {
        assert!(self.ftl.is_idle() && self.ftl.map().mapped() == 0, "a drive in use");
        assert_eq!(self.ftl.next_version, VERSION, "a drive in use");
        assert_eq!(self.ftl.data.streams().count(), 1, "which stream would be whose?");
        let plan = self.plan().ok_or(NoRoom)?;
        let mut rng = Rng::new(self.ftl.medium.seed(), "ftl.sampled");
        self.lay_blocks(&plan, &mut valid, &mut rng);
        self.deal_units(&mut rng);
        self.ftl.next_version = VERSION + 1;
        self.lay_table()
    }

    /// How many blocks are free where collections begin, as far as the closed blocks are enough.
    fn plan(&self) -> Option<Plan> {
        let geometry = self.ftl.geometry();
        let dies = geometry.dies();
        let units = u64::from(self.ftl.map().len());
        let pages = |die: u32| ((2 * die + 1) * geometry.pages_per_block()) / (2 * dies);
        let mut open_pages: Vec<u32> = (0..dies).map(pages).collect();
        let in_open: u64 = open_pages.iter().copied().map(u64::from).sum();
        if in_open * u64::from(geometry.units_per_page()) * 2 > units {
            open_pages.fill(0); // hardly any data at all
        }
        let soft = self.ftl.config.gc.soft_free_blocks.max(1);
        (1..=soft).rev().find_map(|free| {
            let closed = |die| self.ftl.blocks().free(die).saturating_sub(free + 1);
            let closed: Vec<u32> = (0..dies).map(|die| closed(DieId(die))).collect();
            let plan = Plan { closed, open_pages: open_pages.clone() };
            (plan.valid_units(geometry, units) <= plan.room(geometry)).then_some(plan)
        })
    }

    /// Makes blocks of each die closed, open or free, and ranks them.
    fn lay_blocks(
        &mut self,
        plan: &Plan,
        valid: &mut impl FnMut(&DieShare) -> Vec<u32>,
        rng: &mut Rng,
    ) {
        let geometry = *self.ftl.geometry();
        let total = plan.valid_units(&geometry, self.ftl.map().len().into());
        let all_closed: u64 = plan.closed.iter().copied().map(u64::from).sum();
        let up_to = |closed: u64| {
            (u128::from(total) * u128::from(closed) / u128::from(all_closed.max(1))) as u64
        };
        let mut before = 0;
        for die in (0..geometry.dies()).map(DieId) {
            let (blocks, pages) = (plan.closed[die.index()], plan.open_pages[die.index()]);
            let valid_units = up_to(before + u64::from(blocks)) - up_to(before);
            before += u64::from(blocks);
            self.lay_erases(die);
            let share =
                DieShare { blocks, units_per_block: geometry.units_per_block(), valid_units };
            self.lay_closed(die, &share, &valid(&share), rng);
            if pages > 0 {
                let open = self.lay_block(die, pages);
                self.ftl.data.lay_block(open, pages * geometry.units_per_page(), false);
            }
        }
    }

    /// Every block of `die` has been used and erased; but not more often than it may be.
    fn lay_erases(&mut self, die: DieId) {
        let first = self.ftl.geometry().first_block(die).0;
        let once = u32::from(self.ftl.endurance_cycles != 1);
        for block in (first..first + self.ftl.geometry().blocks_per_die()).map(BlockId) {
            if self.ftl.blocks().state(block) != BlockState::Bad {
                self.ftl.medium.lay_erases(block, once);
            }
        }
    }

    fn lay_closed(&mut self, die: DieId, share: &DieShare, valid: &[u32], rng: &mut Rng) {
        let sum: u64 = valid.iter().copied().map(u64::from).sum();
        assert!(valid.iter().all(|&units| units <= share.units_per_block));
        assert_eq!((valid.len(), sum), (share.blocks as usize, share.valid_units), "{share:?}");
        let pages = self.ftl.geometry().pages_per_block();
        let mut blocks: Vec<BlockId> =
            (0..share.blocks).map(|_| self.lay_block(die, pages)).collect();
        // In a drive in use no order of blocks is that of their filling. And a batch of units, which
        // comes from neighbouring blocks, must not be one of a certain age.
        shuffle(&mut blocks, rng);
        for (block, &units) in blocks.into_iter().zip(valid) {
            self.ftl.data.lay_block(block, units, true);
        }
    }

    /// Writes the first `pages` pages of a free block of `die`.
    fn lay_block(&mut self, die: DieId, pages: u32) -> BlockId {
        let page = self.ftl.data.blocks_mut().allocate(&self.ftl.medium, die, STREAM);
        let page = page.expect("a block that was planned for");
        let block = self.ftl.geometry().block_of_page(page);
        let used_for = BlockUse { kind: PageKind::Data, stream: STREAM.0 };
        self.ftl.medium.lay_block(block, pages, used_for);
        block
    }

    /// Deals all logical units out to the valid units of the blocks.
    fn deal_units(&mut self, rng: &mut Rng) {
        let deal = Deal::new(self.ftl.map().len(), rng.next_u64());
        let geometry = *self.ftl.geometry();
        // Neighbouring blocks of the walk are on different dies.
        let walk = (0..geometry.blocks_per_die()).flat_map(|index| {
            (0..geometry.dies()).map(move |die| BlockId(geometry.first_block(DieId(die)).0 + index))
        });
        let mut blocks = walk
            .filter(|&block| self.ftl.data.valid_in_block(block) > 0)
            .collect::<Vec<_>>()
            .into_iter();
        let mut places = Vec::new();
        for first in (0..deal.batches).step_by(BATCHES_AT_ONCE) {
            let batches = first..deal.batches.min(first + BATCHES_AT_ONCE as u32);
            let mut from = 0;
            for batch in batches.clone() {
                let to = from + deal.count(batch) as usize;
                while places.len() < to {
                    let block = blocks.next().expect("as many places as logical units");
                    self.draw_places(block, rng, &mut places);
                }
                shuffle(&mut places[from..to], rng);
                for (group, &place) in (0..).zip(&places[from..to]) {
                    let lpn = deal.group(group).lpn(batch);
                    let unit = (lpn, C::default());
                    self.ftl.medium.write_units(place, VERSION, std::iter::once(unit));
                }
                from = to;
            }
            self.map_units(&deal, batches, &places[..from]);
            places.drain(..from);
        }
        assert!(places.is_empty() && blocks.next().is_none(), "more places than logical units");
    }

    /// Maps the units of `batches` to `places`, one batch after the other.
    fn map_units(&mut self, deal: &Deal, batches: Range<u32>, mut places: &[Ppa]) {
        let mut by_batch = Vec::with_capacity(BATCHES_AT_ONCE);
        for batch in batches {
            let (of_batch, others) = places.split_at(deal.count(batch) as usize);
            by_batch.push((batch, of_batch));
            places = others;
        }
        // The first batch has a unit of every group.
        for group in 0..by_batch[0].1.len() {
            let members = deal.group(group as u32);
            for &(batch, places) in &by_batch {
                if let Some(&place) = places.get(group) {
                    self.ftl.data.found(members.lpn(batch), Some(place));
                }
            }
        }
    }

    /// Draws which units of `block` are valid: any of those written, each as likely as any other
    /// (selection sampling: Knuth, The Art of Computer Programming, section 3.4.2, algorithm S).
    fn draw_places(&mut self, block: BlockId, rng: &mut Rng, places: &mut Vec<Ppa>) {
        let geometry = self.ftl.medium.geometry();
        let first = geometry.page(block, 0);
        let written = self.ftl.medium.written_pages(block) * geometry.units_per_page();
        let mut wanted = self.ftl.data.valid_in_block(block);
        for unit in 0..written {
            if rng.below(u64::from(written - unit)) < u64::from(wanted) {
                let place = unit_of(geometry, first, unit);
                self.ftl.data.lay_unit(place);
                places.push(place);
                wanted -= 1;
            }
        }
    }

    fn lay_table(&mut self) -> Result<(), NoRoom> {
        let mut step = Step {
            now: Time::ZERO,
            medium: &mut self.ftl.medium,
            data: &mut self.ftl.data,
            programs: &mut self.ftl.programs,
            next_version: self.ftl.next_version,
            has_retired: false,
        };
        if self.ftl.table.lay_pages(&mut step) { Ok(()) } else { Err(NoRoom) }
    }
}

impl Plan {
    /// Of `units` in all, those that are valid in closed blocks.
    fn valid_units(&self, geometry: &Geometry, units: u64) -> u64 {
        let open: u64 = self.open_pages.iter().copied().map(u64::from).sum();
        units - open * u64::from(geometry.units_per_page())
    }

    /// How many may be such that a block has a page of garbage: else none is worth collecting.
    fn room(&self, geometry: &Geometry) -> u64 {
        let most = geometry.units_per_block() + 1 - geometry.units_per_page();
        let blocks: u64 = self.closed.iter().copied().map(u64::from).sum();
        (blocks * u64::from(most)).saturating_sub(1)
    }
}

/// Which logical units are dealt out in which batch. Neighbours form groups of as many as there are batches,
/// and of each group a batch has one.
struct Deal {
    lpns: u32,
    batches: u32,
    seed: u64,
}

impl Deal {
    fn new(lpns: u32, seed: u64) -> Self {
        Self { lpns, batches: lpns.div_ceil(BATCH_UNITS), seed }
    }

    /// How many units `batch` has: the last group is smaller than others, and not of every batch.
    const fn count(&self, batch: u32) -> u32 {
        self.lpns / self.batches + (batch < self.lpns % self.batches) as u32
    }

    #[inline]
    fn group(&self, group: u32) -> Group {
        let first = group * self.batches;
        let size = self.batches.min(self.lpns - first);
        let drawn = mixed(self.seed ^ u64::from(group)) >> 32;
        Group { first, size, turn: ((u64::from(size) * drawn) >> 32) as u32 }
    }
}

/// Neighbouring logical units, one for each batch.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    size: u32,
    /// Which of them the first batch has. The others follow, round and round.
    turn: u32,
}

impl Group {
    #[inline]
    const fn lpn(self, batch: u32) -> Lpn {
        let at = batch + self.turn;
        Lpn(self.first + if at < self.size { at } else { at - self.size })
    }
}

/// Bits without a pattern (the finalizer of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
#[inline]
const fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Puts `items` in a random order (Fisher and Yates).
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_unit_is_dealt_out_once(lpns in 1_u32..5_000, batches in 1_u32..50, seed: u64) {
            let deal = Deal { lpns, batches: batches.min(lpns), seed };
            let mut dealt = vec![0; lpns as usize];
            for batch in 0..deal.batches {
                let all: Vec<_> = (0..deal.count(batch)).map(|group| deal.group(group).lpn(batch)).collect();
                prop_assert!(all.is_sorted());
                for lpn in &all {
                    dealt[lpn.index()] += 1;
                }
            }
            prop_assert!(dealt.iter().all(|&times| times == 1));
        }
    }
}

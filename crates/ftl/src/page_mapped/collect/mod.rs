//! Garbage collection of one die, a step at a time.
//!
//! A collection reads the pages of its victim that hold valid units, gathers full pages of them,
//! programs those on the same die, and erases the victim when nothing in it is valid. Each step is one operation, so that
//! the host's operations go between them. Units that do not fill a page wait for the next victim's, and so does their block.

mod pace;
mod rescue;
mod victim;

use leyden_nand::{BlockId, BlockUse, Content, DieId, Geometry, Medium, PageKind, Ppa, Ppn};
use leyden_sim::{Rng, Time};
use serde::{Deserialize, Serialize};

use crate::gc::Chooser;
use crate::page_mapped::UNITS_AHEAD;
use crate::page_mapped::data::{BlockState, Data};
use crate::page_mapped::programs::{NO_VERSION, ProgramCause, Programs};
use crate::page_mapped::stats::FtlStats;
use crate::page_mapped::table::TableWriter;
use crate::place::StreamId;
use crate::{GcConfig, Pace};

/// The effect of a step of garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcStep {
    /// Started an operation: the die is busy.
    Started,
    /// There is nothing to do, or nothing that can be done.
    Nothing,
}

/// One die's collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Collection {
    /// The block being emptied, and the next of its pages to look at.
    victim: Option<(BlockId, u32)>,
    /// Up to which page of the victim map entries have been brought near.
    warmed: u32,
    /// Where its data goes.
    dest: StreamId,
    #[serde(skip)]
    is_rescue: bool, // all of it goes there, zombies too: no further block is opened
    /// Units read and not yet programmed, by stream.
    staged: Vec<Vec<Ppa>>,
    /// Blocks all of whose pages have been looked at, to be erased when nothing in them is valid.
    emptied: Vec<BlockId>,
    /// The last step found nothing to do, and nothing has changed on the die since.
    #[serde(skip)]
    is_stuck: bool,
    #[serde(skip)]
    has_closed: bool, // a move for wear has given up pages, and the host has written nothing since
}

impl Collection {
    /// Begins to empty `victim` into `dest`.
    fn begin(&mut self, victim: BlockId, dest: StreamId, is_rescue: bool) {
        (self.victim, self.warmed, self.dest) = (Some((victim, 0)), 0, dest);
        self.is_rescue = is_rescue;
    }

    /// True if nothing is under way: no victim, no copies waiting.
    #[inline]
    fn is_idle(&self) -> bool {
        self.victim.is_none() && self.emptied.is_empty()
    }
}

/// The drive's parts that a collection works on.
pub(in crate::page_mapped) struct Around<'a, C: Content> {
    pub(in crate::page_mapped) medium: &'a mut Medium<C>,
    pub(in crate::page_mapped) data: &'a mut Data,
    pub(in crate::page_mapped) programs: &'a mut Programs,
    pub(in crate::page_mapped) table: &'a mut TableWriter,
    pub(in crate::page_mapped) stats: &'a mut FtlStats,
}

impl<C: Content> Around<'_, C> {
    fn units_per_page(&self) -> u32 {
        self.medium.geometry().units_per_page()
    }
}

/// The collections of all dies.
#[derive(Clone, Debug)]
pub(in crate::page_mapped) struct Collector {
    policy: Chooser,
    soft_free_blocks: u32,
    hard_free_blocks: u32,
    pace: Pace,
    dies: Vec<Collection>,
    /// Dies whose collection is stuck.
    stuck_dies: u32,
    /// Nothing goes on in the drive, and the host waits: room is made whatever it costs.
    is_desperate: bool,
}

/// The collections at rest, to save and load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::page_mapped) struct CollectorState {
    dies: Vec<Collection>,
    victim_rng: Rng,
}

impl Collector {
    /// Nothing is under way on `dies` dies, but for `poisoned` blocks, which hold nothing and are to be
    /// erased.
    pub(in crate::page_mapped) fn new(
        config: &GcConfig,
        policy: Chooser,
        geometry: &Geometry,
        streams: u8,
        poisoned: impl Iterator<Item = BlockId>,
    ) -> Self {
        let collection = Collection {
            victim: None,
            warmed: 0,
            dest: StreamId(0),
            is_rescue: false,
            staged: vec![Vec::new(); usize::from(streams)],
            emptied: Vec::new(),
            is_stuck: false,
            has_closed: false,
        };
        let mut dies = vec![collection; geometry.dies() as usize];
        for block in poisoned {
            dies[geometry.die_of(block).index()].emptied.push(block);
        }
        Self {
            policy,
            soft_free_blocks: config.soft_free_blocks,
            hard_free_blocks: config.hard_free_blocks,
            pace: config.pace,
            dies,
            stuck_dies: 0,
            is_desperate: false,
        }
    }

    /// The victim policy, with what it will draw next.
    pub(in crate::page_mapped) const fn policy(&self) -> &Chooser {
        &self.policy
    }

    /// True if the policy asks how long before they come true hints are given.
    pub(in crate::page_mapped) fn asks_for_lead(&self) -> bool {
        self.policy.asks_for_lead()
    }

    /// True if a collection should begin on `die`.
    #[inline]
    fn is_due<C: Content>(&self, die: DieId, data: &Data, medium: &Medium<C>) -> bool {
        data.blocks().free(die) <= self.soft_free_blocks
            || self.hard_free_blocks == 0 && is_out_of_pages(die, data, medium)
    }

    /// True if `die` has, or should have, a collection under way.
    #[inline]
    pub(in crate::page_mapped) fn wants<C: Content>(
        &self,
        die: DieId,
        data: &Data,
        medium: &Medium<C>,
    ) -> bool {
        self.is_due(die, data, medium) || !self.dies[die.index()].is_idle()
    }

    /// Does the next step of `die`'s collection, if there is one to do.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline(always)]
    pub(in crate::page_mapped) fn step<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> GcStep {
        if self.dies[die.index()].is_stuck
            || !self.wants(die, around.data, around.medium)
                && around.data.blocks().next_failing(die).is_none()
        {
            return GcStep::Nothing;
        }
        self.step_wanted(now, die, around)
    }

    #[inline(never)]
    fn step_wanted<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> GcStep {
        if self.erase_emptied(now, die, around) || self.program_copies(now, die, false, around) {
            return GcStep::Started;
        }
        loop {
            if self.read_next(now, die, around) {
                return GcStep::Started;
            }
            // Looked at all of the victim: it may be free of valid units already.
            if self.erase_emptied(now, die, around) || self.end_move(now, die, around) {
                return GcStep::Started;
            }
            if self.waits_for_mapping(die, around) || !self.choose_victim(now, die, around) {
                break;
            }
        }
        // No victim to be had: what waits for a full page waits in vain.
        if self.padding_helps(die, around) && self.program_copies(now, die, true, around) {
            return GcStep::Started;
        }
        if self.is_desperate && self.rescue(now, die, around) {
            return GcStep::Started;
        }
        if !self.policy.depends_on_time() {
            let was = std::mem::replace(&mut self.dies[die.index()].is_stuck, true);
            self.stuck_dies += u32::from(!was);
        }
        GcStep::Nothing
    }

    /// Something has changed on `die` that its collection may depend on.
    #[inline]
    pub(in crate::page_mapped) fn unstick(&mut self, die: DieId) {
        if self.stuck_dies > 0 {
            let was = std::mem::take(&mut self.dies[die.index()].is_stuck);
            self.stuck_dies -= u32::from(was);
        }
    }

    /// The same for the die of `block`.
    #[inline]
    pub(in crate::page_mapped) fn unstick_die_of(
        &mut self,
        geometry: &Geometry,
        block: Option<BlockId>,
    ) {
        if self.stuck_dies > 0
            && let Some(block) = block
        {
            self.unstick(geometry.die_of(block));
        }
    }

    /// The stream that `die`'s collection writes to, and the pages it may still need there.
    #[inline]
    pub(in crate::page_mapped) fn needs(
        &self,
        die: DieId,
        data: &Data,
        geometry: &Geometry,
    ) -> Option<(StreamId, u32)> {
        let collection = &self.dies[die.index()];
        let (victim, _) = collection.victim?;
        // Its valid units, and the odd units of the victim before it.
        let odd = geometry.units_per_page() - 1;
        Some((collection.dest, geometry.pages_for(data.valid_in_block(victim) + odd)))
    }

    /// The valid units in blocks of `die` that wait to be erased, and the units that wait for a page.
    pub(in crate::page_mapped) fn waiting_units(&self, die: DieId, data: &Data) -> (u32, u32) {
        let collection = &self.dies[die.index()];
        let valid = collection.emptied.iter().map(|&block| data.valid_in_block(block)).sum();
        (valid, collection.staged.iter().map(|units| units.len() as u32).sum())
    }

    /// Erases a block that has been emptied, or retires it if it is failing.
    #[inline]
    fn erase_emptied<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> bool {
        // As a rule there is none; whether it is urgent is not worth asking then.
        !self.dies[die.index()].emptied.is_empty() && self.erase_next_emptied(now, die, around)
    }

    #[inline(never)]
    fn erase_next_emptied<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> bool {
        // Copies that wait to change the map still point to what they were copied from.
        if around.table.has_copies_waiting(die) {
            return false;
        }
        while let Some(block) = self.take_erasable(die, around) {
            // Units that were overwritten since they were read must not be taken for what is written
            // in their place next.
            let geometry = around.medium.geometry();
            for staged in &mut self.dies[die.index()].staged {
                staged.retain(|&unit| geometry.block_of(unit) != block);
            }
            if around.data.blocks().state(block) == BlockState::Failing {
                around.data.blocks_mut().retire(block);
                around.medium.retire(block);
            } else {
                around.medium.erase(now, block);
                return true;
            }
        }
        false
    }

    /// A block that has been emptied and may be erased. If the die is short of blocks, what keeps one
    /// from being erased is seen to.
    #[inline]
    fn take_erasable<C: Content>(
        &mut self,
        die: DieId,
        around: &mut Around<'_, C>,
    ) -> Option<BlockId> {
        let urgent = self.is_desperate || self.is_urgent(die, around.data, around.medium);
        let emptied = &mut self.dies[die.index()].emptied;
        for at in 0..emptied.len() {
            let block = emptied[at];
            let is_empty = around.data.valid_in_block(block) == 0;
            let is_free = is_empty
                && (around.table.is_covered(block) || urgent && around.table.cover(die, block));
            if is_free {
                return Some(emptied.remove(at));
            }
        }
        None
    }

    /// True if a block of `die` is empty and waits for mapping pages only: no other need be collected.
    fn waits_for_mapping<C: Content>(&self, die: DieId, around: &Around<'_, C>) -> bool {
        let mut emptied = self.dies[die.index()].emptied.iter();
        around.table.keeps_copies() && emptied.any(|&block| around.data.valid_in_block(block) == 0)
    }

    /// Programs a page of staged units, if a stream has a full one (or any, if `pad`). The last page of a move for
    /// wear is padded.
    fn program_copies<C: Content>(
        &mut self,
        now: Time,
        die: DieId,
        pad: bool,
        around: &mut Around<'_, C>,
    ) -> bool {
        let units_per_page = around.units_per_page() as usize;
        let ended_move = self.ended_move(die, around.data);
        for (stream, staged) in (0..).map(StreamId).zip(&mut self.dies[die.index()].staged) {
            let pad = pad || ended_move == Some(stream);
            if staged.len() < units_per_page && !pad {
                continue;
            }
            // The host may have overwritten some since they were read; mostly it has not.
            if staged.iter().any(|&unit| !around.data.is_valid(unit)) {
                staged.retain(|&unit| around.data.is_valid(unit));
            }
            let count = staged.len().min(units_per_page);
            if count == 0 || (count < units_per_page && !pad) {
                continue;
            }
            Self::prepare(die, stream, around);
            let page = around.data.blocks_mut().allocate(around.medium, die, stream);
            let Some(page) = page else { continue };
            Self::program(now, page, stream, &staged[..count], around);
            if count == staged.len() {
                staged.clear();
            } else {
                staged.drain(..count);
            }
            return true;
        }
        false
    }

    /// Programs `units`, which lie elsewhere, in `page` of `stream`.
    fn program<C: Content>(
        now: Time,
        page: Ppn,
        stream: StreamId,
        units: &[Ppa],
        around: &mut Around<'_, C>,
    ) {
        let Around { medium, data, programs, stats, .. } = around;
        let (tag, sources) = programs.insert(ProgramCause::Gc, NO_VERSION, units.len());
        let count = units.len() as u32;
        let first = medium.geometry().first_unit(page).0;
        for ((unit, &from), source) in (first..).map(Ppa).zip(units).zip(sources) {
            *source = from.0;
            let lpn = medium.copy_unit(from, unit).expect("a valid unit without an owner");
            stats.gc.copied_zombie_units += u64::from(data.zombies().contains(lpn));
        }
        stats.gc.copied_units += u64::from(count);
        stats.padded_units += u64::from(medium.geometry().units_per_page() - count);
        let used_for = BlockUse { kind: PageKind::Data, stream: stream.0 };
        medium.program(now, page, count, used_for, tag);
    }

    /// Reads the victim's next page that holds valid units; if there is none, the victim is emptied.
    #[inline(always)]
    fn read_next<C: Content>(&mut self, now: Time, die: DieId, around: &mut Around<'_, C>) -> bool {
        let collection = &mut self.dies[die.index()];
        let Some((victim, from)) = collection.victim else {
            return false;
        };
        let geometry = around.medium.geometry();
        let (next, end) = (geometry.page(victim, from), around.medium.written_pages(victim));
        let end = geometry.first_unit(geometry.page(victim, end));
        if let Some(unit) = around.data.first_valid(geometry.first_unit(next), end) {
            let page = geometry.page_of(unit);
            let units = geometry.units_per_page();
            let valid = around.data.count_valid_in(geometry.first_unit(page), units);
            let index = from + (page.0 - next.0);
            Self::expect_ahead(collection, victim, index, around);
            collection.victim = Some((victim, index + 1));
            around.medium.read(now, page, valid, false, 0);
            return true;
        }
        collection.victim = None;
        collection.emptied.push(victim);
        false
    }

    /// Brings the map entries near that the copies from page `index` of `victim` on will change.
    #[inline]
    fn expect_ahead<C: Content>(
        collection: &mut Collection,
        victim: BlockId,
        index: u32,
        around: &Around<'_, C>,
    ) {
        if index < collection.warmed {
            return;
        }
        let geometry = around.medium.geometry();
        collection.warmed =
            (index + geometry.pages_for(UNITS_AHEAD)).min(geometry.pages_per_block());
        let first = geometry.first_unit(geometry.page(victim, index));
        let count = (collection.warmed - index) * geometry.units_per_page();
        around.medium.expect_lpn(Ppa(first.0 + count));
        around.data.each_valid_in(first, count, |unit| {
            around.medium.lpn(unit).into_iter().for_each(|lpn| around.data.map().expect(lpn));
        });
    }

    /// A page of the victim has been read: its valid units are to be programmed.
    #[inline]
    pub(in crate::page_mapped) fn stage_copies<C: Content>(
        &mut self,
        page: Ppn,
        die: DieId,
        data: &mut Data,
        medium: &Medium<C>,
    ) {
        let first = medium.geometry().first_unit(page);
        let is_apart = data.zombies().are_kept() && !self.dies[die.index()].is_rescue;
        if let Some(stream) = data.streams().zombie().filter(|_| is_apart) {
            self.stage_apart(first, die, stream, data, medium);
            return;
        }
        let collection = &mut self.dies[die.index()];
        let staged = &mut collection.staged[collection.dest.index()];
        data.each_valid_in(first, medium.geometry().units_per_page(), |unit| staged.push(unit));
    }

    /// Units of a page of copies whose program failed are copied again.
    pub(in crate::page_mapped) fn stage_again(&mut self, die: DieId, stream: StreamId, from: Ppa) {
        self.dies[die.index()].staged[stream.index()].push(from);
    }

    /// The collections at rest.
    pub(in crate::page_mapped) fn state(&self) -> CollectorState {
        CollectorState { dies: self.dies.clone(), victim_rng: self.policy.rng().clone() }
    }

    /// True if `state` is of this shape.
    pub(in crate::page_mapped) fn fits(&self, state: &CollectorState) -> bool {
        state.dies.len() == self.dies.len()
            && state.dies.iter().zip(&self.dies).all(|(saved, die)| {
                saved.staged.len() == die.staged.len() && saved.dest.index() < die.staged.len()
            })
    }

    /// Takes over a state that fits.
    pub(in crate::page_mapped) fn restore(&mut self, state: CollectorState) {
        self.dies = state.dies;
        self.policy.set_rng(state.victim_rng);
        self.stuck_dies = 0;
    }
}

/// True if a stream of the host's has no page left on `die` that it may have, where dies collect on
/// demand only (Zombie Chasing, section 4.1: "when clean flash blocks run out").
fn is_out_of_pages<C: Content>(die: DieId, data: &Data, medium: &Medium<C>) -> bool {
    data.blocks().free(die) < 2
        && (0..data.streams().of_host())
            .map(StreamId)
            .any(|stream| data.blocks().open_pages(medium, die, stream) == 0)
}

//! Garbage collection of one die, a step at a time.
//!
//! A collection reads the pages of its victim that hold valid units, gathers full pages of them,
//! programs those on the same die, and erases the victim when nothing in it is valid. Each step is
//! one operation, so that the host's operations go between them. Units that do not fill a page wait
//! for the next victim's; their block waits with them, so nothing is lost if the power fails.

use leyden_nand::{BlockId, Content, DieId, Kind, Operation, Ppa, Ppn};
use leyden_sim::Time;
use leyden_sim::canary::{Canary, is_planted};
use serde::{Deserialize, Serialize};

use super::blocks::BlockState;
use super::ftl::{Ftl, ProgramCause, WARM_UNITS};
use super::inflight::NO_VERSION;
use crate::place::StreamId;

/// What a step of garbage collection did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcStep {
    /// Started an operation: the die is busy.
    Started,
    /// There is nothing to do, or nothing that can be done.
    Nothing,
}

/// One die's collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Collection {
    /// The block being emptied, and the next of its pages to look at.
    victim: Option<(BlockId, u32)>,
    /// Up to which page of the victim map entries have been brought near.
    warmed: u32,
    /// Where its data goes.
    dest: StreamId,
    /// Units read and not yet programmed, by stream.
    staged: Vec<Vec<Ppa>>,
    /// Blocks all of whose pages have been looked at, to be erased when nothing in them is valid.
    emptied: Vec<BlockId>,
    /// Pages of copies that are programmed and wait to change the map: what they were copied from
    /// must not be written anew before.
    pub(crate) at_gate: u32,
    /// The last step found nothing to do, and nothing has changed on the die since.
    #[serde(skip)]
    pub(crate) is_stuck: bool,
}

impl Collection {
    pub(crate) fn new(streams: u8) -> Self {
        let staged = vec![Vec::new(); usize::from(streams)];
        Self {
            victim: None,
            warmed: 0,
            dest: StreamId(0),
            staged,
            emptied: Vec::new(),
            at_gate: 0,
            is_stuck: false,
        }
    }

    /// Forgets what DRAM held.
    pub(crate) fn lose_power(&mut self) {
        *self = Self::new(self.staged.len() as u8);
    }

    /// Has `block` erased, which holds nothing.
    pub(crate) fn erase_again(&mut self, block: BlockId) {
        self.emptied.push(block);
    }

    pub(crate) fn fits(&self, streams: u8) -> bool {
        self.staged.len() == usize::from(streams) && self.dest.0 < streams
    }

    /// True if nothing is under way: no victim, no copies waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.victim.is_none() && self.emptied.is_empty()
    }
}

impl<C: Content> Ftl<C> {
    /// True if `die` is so short of free blocks that collecting goes before the host's writes.
    #[inline]
    pub fn gc_is_urgent(&self, die: DieId) -> bool {
        self.blocks.free(die) <= self.hard_free_blocks || self.is_out_of_pages(die)
    }

    /// True if a collection should begin on `die`.
    #[inline]
    fn is_due(&self, die: DieId) -> bool {
        self.blocks.free(die) <= self.soft_free_blocks || self.is_out_of_pages(die)
    }

    /// True if `die` has, or should have, a collection under way.
    #[inline]
    pub fn wants_collection(&self, die: DieId) -> bool {
        self.is_due(die) || !self.collections[die.index()].is_idle()
    }

    /// True if `die` collects on demand only, and a stream of the host's has no page left that it may
    /// have (Zombie Chasing, section 4.1: "when clean flash blocks run out").
    #[inline]
    fn is_out_of_pages(&self, die: DieId) -> bool {
        let mut streams = (0..self.streams.of_host()).map(StreamId);
        self.hard_free_blocks == 0
            && self.blocks.free(die) < 2
            && streams.any(|stream| self.blocks.open_pages(die, stream) == 0)
    }

    /// Does the next step of `die`'s collection, if there is one to do.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline]
    pub fn gc_step(&mut self, now: Time, die: DieId) -> GcStep {
        if self.collections[die.index()].is_stuck
            || !self.wants_collection(die) && self.blocks.next_failing(die).is_none()
        {
            return GcStep::Nothing;
        }
        if self.erase_emptied(now, die) || self.program_copies(now, die, false) {
            return GcStep::Started;
        }
        loop {
            if self.read_next(now, die) {
                return GcStep::Started;
            }
            // Looked at all of the victim: it may be free of valid units already.
            if self.erase_emptied(now, die) {
                return GcStep::Started;
            }
            if self.waits_for_mapping(die) || !self.choose_victim(now, die) {
                break;
            }
        }
        // No victim to be had: what waits for a full page waits in vain.
        if self.padding_helps(die) && self.program_copies(now, die, true) {
            return GcStep::Started;
        }
        if !self.policy.depends_on_time() {
            let was = std::mem::replace(&mut self.collections[die.index()].is_stuck, true);
            self.stuck_dies += u32::from(!was);
        }
        GcStep::Nothing
    }

    /// Something has changed on `die` that its collection may depend on.
    #[inline]
    pub(crate) fn unstick(&mut self, die: DieId) {
        if self.stuck_dies > 0 {
            let was = std::mem::take(&mut self.collections[die.index()].is_stuck);
            self.stuck_dies -= u32::from(was);
        }
    }

    /// True if there is no block to open, or the host needs one and padding frees more than it costs.
    ///
    /// It does if more blocks wait than streams: two of them wait for the same page, so at least one
    /// was nearly all garbage. It also does if going round is out of the question, even with the
    /// garbage that padding makes: each block that waits had more than a page of garbage then.
    fn padding_helps(&self, die: DieId) -> bool {
        let waiting = self.collections[die.index()].emptied.len();
        let streams = u32::from(self.streams.count());
        let garbage = self.index.garbage_units(die)
            + u64::from(streams) * u64::from(self.geometry.units_per_page());
        let goes_round = garbage > u64::from(self.geometry.units_per_block());
        self.blocks.free(die) == 0
            || (self.gc_is_urgent(die) && waiting > if goes_round { streams as usize } else { 1 })
    }

    /// The stream that `die`'s collection writes to, and the pages it may still need there.
    #[inline]
    pub(crate) fn collection_needs(&self, die: DieId) -> Option<(StreamId, u32)> {
        let collection = &self.collections[die.index()];
        let (victim, _) = collection.victim?;
        let units = self.geometry.units_per_page();
        // Whatever is valid in it, and the odd units of the victim before it.
        let pages = (self.blocks.valid(victim) + units - 1).div_ceil(units);
        Some((collection.dest, pages))
    }

    /// The valid units in blocks of `die` that wait to be erased, and the units that wait for a page.
    pub(crate) fn waiting_units(&self, die: DieId) -> (u32, u32) {
        let collection = &self.collections[die.index()];
        let valid = collection.emptied.iter().map(|&block| self.blocks.valid(block)).sum();
        (valid, collection.staged.iter().map(|units| units.len() as u32).sum())
    }

    /// Erases a block that has been emptied, or retires it if it is failing.
    fn erase_emptied(&mut self, now: Time, die: DieId) -> bool {
        if self.collections[die.index()].at_gate > 0 {
            return false;
        }
        while let Some(block) = self.take_erasable(die) {
            // Units that were overwritten since they were read must not be taken for what is written
            // in their place next.
            for staged in &mut self.collections[die.index()].staged {
                staged.retain(|&unit| self.geometry.block_of(unit) != block);
            }
            if self.blocks.state(block) == BlockState::Failing {
                self.blocks.retire(block);
            } else {
                self.flash.submit(now, Operation { kind: Kind::Erase(block), bytes: 0, tag: 0 });
                return true;
            }
        }
        false
    }

    /// A block that has been emptied and may be erased. If the die is short of blocks, what keeps one
    /// from being erased is seen to.
    #[inline]
    fn take_erasable(&mut self, die: DieId) -> Option<BlockId> {
        if self.collections[die.index()].emptied.is_empty() {
            return None; // as a rule; whether it is urgent is not worth asking then
        }
        let urgent = self.gc_is_urgent(die);
        for at in 0..self.collections[die.index()].emptied.len() {
            let block = self.collections[die.index()].emptied[at];
            let is_free = self.blocks.valid(block) == 0
                && (self.moves.keeps(block).is_none()
                    || is_planted(Canary::ErasedBeforeMapped)
                    || urgent && self.cover(die, block));
            if is_free {
                return Some(self.collections[die.index()].emptied.remove(at));
            }
        }
        None
    }

    /// True if a block of `die` is empty and only waits for mapping pages before it is erased: there
    /// is no need to collect another one.
    fn waits_for_mapping(&mut self, die: DieId) -> bool {
        self.moves.are_kept()
            && self.collections[die.index()]
                .emptied
                .iter()
                .any(|&block| self.blocks.valid(block) == 0)
    }

    /// Programs a page of staged units, if a stream has a full one (or any, if `pad`).
    fn program_copies(&mut self, now: Time, die: DieId, pad: bool) -> bool {
        let units_per_page = self.geometry.units_per_page() as usize;
        for stream in 0..self.streams.count() {
            let staged = &mut self.collections[die.index()].staged[usize::from(stream)];
            if staged.len() < units_per_page && !pad {
                continue;
            }
            // The host may have overwritten some since they were read.
            staged.retain(|&unit| self.validity.get(unit));
            let count = staged.len().min(units_per_page);
            if count == 0 || (count < units_per_page && !pad) {
                continue;
            }
            let Some(page) = self.blocks.allocate(die, StreamId(stream)) else {
                continue;
            };
            let tag = self.inflight.insert(ProgramCause::Gc, NO_VERSION);
            let first = self.geometry.first_unit(page).0;
            let mut moved = Vec::new(); // stays empty, and so unallocated, but for a canary
            for (i, from) in staged.drain(..count).enumerate() {
                self.inflight.sources_mut(tag)[i] = from.0;
                let lpn = self.media.lpn(from).expect("a valid unit without an owner");
                let (version, content) = (self.media.version(from), self.media.content(from));
                self.stats.gc_zombie_units += u64::from(self.zombies.contains(lpn));
                self.media.write(Ppa(first + i as u32), lpn, version, content);
                if is_planted(Canary::MappedBeforeCopied) {
                    moved.push(i as u32);
                }
            }
            for unit in moved {
                self.commit(now, page, unit);
            }
            self.stats.gc_units += count as u64;
            self.submit_program(now, page, tag, count as u32);
            return true;
        }
        false
    }

    /// Reads the victim's next page that holds valid units. If there is none, the victim has been
    /// emptied.
    fn read_next(&mut self, now: Time, die: DieId) -> bool {
        let Some((victim, from)) = self.collections[die.index()].victim else {
            return false;
        };
        let units = self.geometry.units_per_page();
        for index in from..self.blocks.written_pages(victim) {
            let page = self.geometry.page(victim, index);
            let valid = self.validity.count_in(self.geometry.first_unit(page), units);
            if valid > 0 {
                self.warm_ahead(die, victim, index);
                self.collections[die.index()].victim = Some((victim, index + 1));
                let bytes = valid * self.geometry.unit_bytes();
                self.flash.submit(now, Operation { kind: Kind::Read(page), bytes, tag: 0 });
                return true;
            }
        }
        let collection = &mut self.collections[die.index()];
        collection.victim = None;
        collection.emptied.push(victim);
        false
    }

    /// Brings the map entries near that the copies from page `index` of `victim` on will change.
    #[inline]
    fn warm_ahead(&mut self, die: DieId, victim: BlockId, index: u32) {
        let collection = &mut self.collections[die.index()];
        if index < collection.warmed {
            return;
        }
        let units = self.geometry.units_per_page();
        let end = (index + WARM_UNITS.div_ceil(units)).min(self.geometry.pages_per_block());
        collection.warmed = end;
        let first = self.geometry.first_unit(self.geometry.page(victim, index));
        let ahead = self.validity.valid_in(first, (end - index) * units);
        self.map.warm(ahead.filter_map(|unit| self.media.lpn(unit)));
    }

    /// A page of the victim has been read: its valid units are to be programmed.
    #[inline]
    pub(crate) fn stage_copies(&mut self, page: Ppn, die: DieId) {
        let first = self.geometry.first_unit(page);
        if let Some(stream) = self.streams.zombie().filter(|_| self.zombies.are_kept()) {
            self.stage_apart(first, die, stream);
            return;
        }
        let collection = &mut self.collections[die.index()];
        let staged = &mut collection.staged[collection.dest.index()];
        staged.extend(self.validity.valid_in(first, self.geometry.units_per_page()));
    }

    /// The same, zombies to `stream`: as far as it has room, the rest goes with the others.
    fn stage_apart(&mut self, first: Ppa, die: DieId, stream: StreamId) {
        let dest = self.collections[die.index()].dest;
        for unit in (first.0..first.0 + self.geometry.units_per_page()).map(Ppa) {
            if !self.validity.get(unit) {
                continue;
            }
            let lpn = self.media.lpn(unit).expect("a valid unit without an owner");
            let apart = self.zombies.contains(lpn) && self.has_room_apart(die, stream, dest);
            let to = if apart { stream } else { dest };
            self.collections[die.index()].staged[to.index()].push(unit);
        }
    }

    /// True if `stream` has a page for one more unit of `die`. Opens a block for it if that leaves
    /// `dest` room for all that is left of the victim.
    fn has_room_apart(&mut self, die: DieId, stream: StreamId, dest: StreamId) -> bool {
        let collection = &self.collections[die.index()];
        let pages = |units: usize| (units as u32).div_ceil(self.geometry.units_per_page());
        if pages(collection.staged[stream.index()].len() + 1) <= self.blocks.open_pages(die, stream)
        {
            return true;
        }
        let victim = collection.victim.map_or(0, |(victim, _)| self.blocks.valid(victim));
        let left = pages(collection.staged[dest.index()].len() + victim as usize);
        let leaves_room = self.blocks.free(die) > 1 || left <= self.blocks.open_pages(die, dest);
        // A stream has one open block: what is left of it must be used first.
        leaves_room
            && self.blocks.open_pages(die, stream) == 0
            && self.blocks.open_next(die, stream).is_some()
    }

    /// A page of copies has been programmed: what is still valid has moved.
    #[inline]
    pub(crate) fn end_copies(&mut self, now: Time, die: DieId, page: Ppn, tag: u32, failed: bool) {
        let stream = self.blocks.stream(self.geometry.block_of_page(page));
        for unit in 0..self.geometry.units_per_page() {
            let Some(from) = self.source(tag, unit).map(Ppa) else {
                continue;
            };
            if failed {
                self.collections[die.index()].staged[stream.index()].push(from);
            } else if self.validity.get(from) {
                // Not overwritten meanwhile: the map still points to where it came from.
                self.commit_copy(now, page, unit, from);
                if is_planted(Canary::LostGcMapUpdate) {
                    let lpn = self.media.lpn(from).expect("it was valid");
                    self.map.set(lpn, from);
                }
            }
        }
        self.end_program(now, page, tag);
    }

    /// Chooses the next victim of `die`, if it needs one and one is worth it.
    fn choose_victim(&mut self, now: Time, die: DieId) -> bool {
        let free = self.blocks.free(die);
        let failing = self.blocks.next_failing(die);
        let victim = if self.is_due(die) { self.worthwhile_victim(now, die) } else { None };
        // Emptying a failing block gains nothing and costs up to a block: only from plenty.
        let victim = victim.or(failing.filter(|&block| free >= 2 && self.has_room_for(die, block)));
        let Some(victim) = victim else { return false };
        if self.index.contains(victim) {
            self.index.remove(victim);
        }
        self.blocks.collect(victim);
        self.stats.collections += 1;
        self.stats.victim_valid_units += u64::from(self.blocks.valid(victim));
        let dest = self.streams.for_gc(self.blocks.stream(victim));
        let collection = &mut self.collections[die.index()];
        (collection.victim, collection.warmed, collection.dest) = (Some((victim, 0)), 0, dest);
        true
    }

    /// The policy's choice, or else the least utilised block, if collecting it makes room.
    fn worthwhile_victim(&mut self, now: Time, die: DieId) -> Option<BlockId> {
        let choice = self.policy.victim(&self.index, die, now)?;
        if self.is_worthwhile(die, choice) {
            return Some(choice);
        }
        let least = self.index.least_utilised(die)?;
        self.is_worthwhile(die, least).then_some(least)
    }

    /// True if collecting `block` makes room, or takes its die closer to a block that does.
    fn is_worthwhile(&self, die: DieId, block: BlockId) -> bool {
        let gains_page = self.geometry.units_per_block() - self.blocks.valid(block)
            >= self.geometry.units_per_page();
        // A policy that does not look at utilisation may have to go round; it gets somewhere as
        // long as there is more than a block of garbage.
        let goes_round = self.index.garbage_units(die) > u64::from(self.geometry.units_per_block());
        gains_page && self.has_room_for(die, block)
            || goes_round && self.has_room_to_go_on(die, block)
    }

    /// True if `die` has pages for all of `block`'s valid units.
    fn has_room_for(&self, die: DieId, block: BlockId) -> bool {
        let (dest, staged) = self.joins(die, block);
        self.has_room(die, dest, staged + self.blocks.valid(block))
    }

    /// True if `die` has pages for all of `block`'s valid units, and going round with it gets
    /// somewhere. Odd units that no further victim's can join are padded in the end: if that makes
    /// as much garbage as the block had, going round would never end.
    fn has_room_to_go_on(&self, die: DieId, block: BlockId) -> bool {
        let (dest, staged) = self.joins(die, block);
        let valid = self.blocks.valid(block);
        let units = (staged + valid).next_multiple_of(self.geometry.units_per_page());
        let padding = units - staged - valid;
        let gains = padding == 0 || self.geometry.units_per_block() - valid > padding;
        let next = if gains { 0 } else { self.geometry.units_per_block() };
        self.has_room(die, dest, staged + valid + next)
    }

    /// The stream of `block`'s copies, and how many units wait there for a full page.
    fn joins(&self, die: DieId, block: BlockId) -> (StreamId, u32) {
        let dest = self.streams.for_gc(self.blocks.stream(block));
        (dest, self.collections[die.index()].staged[dest.index()].len() as u32)
    }

    /// True if `die` has pages for `units` more units of `stream`.
    fn has_room(&self, die: DieId, stream: StreamId, units: u32) -> bool {
        let free_pages = self.blocks.free(die) * self.geometry.pages_per_block();
        let pages = units.div_ceil(self.geometry.units_per_page());
        pages <= self.blocks.open_pages(die, stream) + free_pages
    }
}

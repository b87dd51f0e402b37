//! The data room: where each logical page lies, which units are valid, and what each block is worth.
//!
//! **What lives here**: the mapping table in DRAM, a bit for each valid unit, the blocks and their
//! pools, the index of victims, and what the host has announced. They change together or not at all.
//! **What doesn't**: what of the table goes to flash ([`super::table`]), and who moves data
//! ([`super::collect`]).
//!
//! **Invariants** (held to by [`Data::check`])
//! - A unit is valid exactly if the map points to it; a block's count is that of its valid units.
//! - The victim index holds the closed blocks and no others, ranked by what they hold. It alone counts
//!   their valid units meanwhile.
//! - Only mapped units are zombies; each block's are counted.

mod blocks;
mod check;
mod laid;
mod lead;
mod validity;
mod zombies;

use leyden_nand::{BlockId, Content, DieId, Geometry, Lpn, Medium, Ppa, Ppn};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

pub use blocks::{BlockState, Blocks, KeptBlocks};
pub use zombies::{Announced, Zombies};

use super::stats::FtlStats;
use crate::gc::{Ages, DieView, Order, VictimIndex};
use crate::logs::Logs;
use crate::map::{MapPage, MapTable};
use crate::place::{StreamId, Streams};
use validity::Validity;

/// Where data lies. See the module's invariants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    map: MapTable,
    validity: Validity,
    blocks: Blocks,
    index: VictimIndex,
    /// Not saved, as images of earlier versions have none: what has been written says how far it is.
    #[serde(skip)]
    ages: Ages,
    zombies: Zombies,
    logs: Logs,
    #[serde(skip, default = "Streams::none")]
    streams: Streams,
}

impl Data {
    /// Nothing is mapped; the blocks are those of `medium`, by what they hold.
    pub(crate) fn new<C: Content>(
        medium: &Medium<C>,
        map: MapTable,
        streams: Streams,
        kept: KeptBlocks,
        order: Order,
        ages: Ages,
        logs: Logs,
    ) -> Self {
        Self {
            map,
            validity: Validity::new(medium.geometry()),
            blocks: Blocks::new(medium, streams.count(), kept),
            index: VictimIndex::new(medium.geometry(), order),
            ages,
            zombies: Zombies::default(),
            logs,
            streams,
        }
    }

    /// The mapping table.
    #[inline]
    pub const fn map(&self) -> &MapTable {
        &self.map
    }
    /// The blocks.
    #[inline]
    pub const fn blocks(&self) -> &Blocks {
        &self.blocks
    }
    /// The blocks, to take some from their pools and to give them back.
    #[inline]
    pub(crate) fn blocks_mut(&mut self) -> &mut Blocks {
        &mut self.blocks
    }
    /// The victims-to-be.
    #[inline]
    pub const fn index(&self) -> &VictimIndex {
        &self.index
    }
    /// The victims-to-be of `die` at `now`, to choose one.
    pub(crate) fn victims(&mut self, now: Time, die: DieId) -> DieView<'_> {
        DieView::new(&mut self.index, die, self.ages.at(now), self.ages.of())
    }
    /// The host's announcements.
    pub const fn zombies(&self) -> &Zombies {
        &self.zombies
    }
    /// The streams.
    #[inline]
    pub const fn streams(&self) -> &Streams {
        &self.streams
    }
    /// True if `unit` is valid.
    #[inline]
    pub(crate) fn is_valid(&self, unit: Ppa) -> bool {
        self.validity.get(unit)
    }
    /// The valid units among the `count` ones from `first` on.
    #[inline]
    pub(crate) fn valid_in(&self, first: Ppa, count: u32) -> impl Iterator<Item = Ppa> + '_ {
        self.validity.valid_in(first, count)
    }
    /// Calls `each` with the same.
    #[inline]
    pub(crate) fn each_valid_in(&self, first: Ppa, count: u32, each: impl FnMut(Ppa)) {
        self.validity.each_in(first, count, each);
    }
    /// The first valid unit at or after `first` and before `end`.
    #[inline]
    pub(crate) fn first_valid(&self, first: Ppa, end: Ppa) -> Option<Ppa> {
        self.validity.first_in(first, end)
    }
    /// How many units of `block` are valid.
    #[inline]
    pub(crate) fn valid_in_block(&self, block: BlockId) -> u32 {
        self.index.valid(block).unwrap_or_else(|| self.blocks.valid(block))
    }
    /// How many of the `count` units from `first` on are valid.
    #[inline]
    pub(crate) fn count_valid_in(&self, first: Ppa, count: u32) -> u32 {
        self.validity.count_in(first, count)
    }

    /// The stream for new data of `lpn`.
    #[inline]
    pub fn stream_for(&self, geometry: &Geometry, lpn: Lpn) -> StreamId {
        if self.streams.of_host() == 1 { StreamId(0) } else { self.one_of_streams(geometry, lpn) }
    }

    #[inline(never)]
    fn one_of_streams(&self, geometry: &Geometry, lpn: Lpn) -> StreamId {
        if let Some(log) = self.streams.log().filter(|_| self.logs.contains(lpn)) {
            return log;
        }
        let old = self.map.get(lpn).map(|old| self.blocks.stream(geometry.block_of(old)));
        if old.is_some() && old == self.streams.zombie() {
            return self.streams.for_host(Some(self.zombies.region(lpn)));
        }
        self.streams.for_host(old)
    }

    /// Brings near what is kept of the unit where `lpn` lies, whose map entry is near already
    /// ([`MapTable::expect`]), and of its block.
    #[inline]
    pub(crate) fn expect_old(&self, geometry: &Geometry, lpn: Lpn) {
        if let Some(old) = self.map.get(lpn) {
            self.validity.expect(old);
            self.index.expect(geometry.block_of(old));
        }
    }

    /// Makes `unit`, whose program of the host's data has ended, the current version of `lpn`. Returns the
    /// block that has lost a valid unit with that.
    #[inline]
    pub(crate) fn commit(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        unit: Ppa,
        stats: &mut FtlStats,
    ) -> Option<BlockId> {
        self.ages.count();
        let new = geometry.block_of(unit);
        let emptier = self.point_to(now, geometry, lpn, unit, new);
        if self.zombies.are_kept() {
            self.replace_zombie(lpn, emptier, Some(new), stats);
        }
        emptier
    }

    /// The same for a copy of `lpn` from `from`.
    #[inline]
    pub(crate) fn commit_copy(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        unit: Ppa,
        from: Ppa,
    ) -> Option<BlockId> {
        let new = geometry.block_of(unit);
        let emptier = self.point_to(now, geometry, lpn, unit, new);
        if self.zombies.are_kept() {
            self.move_zombie(lpn, geometry.block_of(from), new);
        }
        emptier
    }

    /// Undoes a copy of `lpn` that lies in `copy`: what it was copied from still lies in `origin`, in a closed
    /// block.
    pub(crate) fn take_back(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        copy: Ppa,
        origin: Ppa,
    ) {
        self.map.set(lpn, origin);
        self.invalidate(now, geometry, copy);
        self.validity.set(origin);
        let block = geometry.block_of(origin);
        let valid = self.index.remove(block).expect("a closed block is in the index");
        self.index.insert(block, valid + 1, self.zombies.in_block(block), self.ages.at(now));
        if self.zombies.are_kept() {
            self.move_zombie(lpn, geometry.block_of(copy), block);
        }
    }

    /// Points the map to where `lpn` lies now; hands back the block where the last version does.
    #[inline(always)]
    fn point_to(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        unit: Ppa,
        block: BlockId,
    ) -> Option<BlockId> {
        let old = self.map.set(lpn, unit);
        let emptier = old.map(|old| self.invalidate(now, geometry, old));
        self.validity.set(unit);
        self.blocks.add_valid(block);
        emptier
    }

    /// Unmaps `lpn`. Returns the block that has lost a valid unit with that, if it was mapped.
    pub(crate) fn trim(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        stats: &mut FtlStats,
    ) -> Option<BlockId> {
        let old = self.map.unmap(lpn)?;
        let emptier = self.invalidate(now, geometry, old);
        if self.zombies.are_kept() {
            self.zombies.arrived(lpn, 1, None);
            self.replace_zombie(lpn, Some(emptier), None, stats);
        }
        Some(emptier)
    }

    #[inline]
    fn invalidate(&mut self, now: Time, geometry: &Geometry, unit: Ppa) -> BlockId {
        self.validity.clear(unit);
        let block = geometry.block_of(unit);
        // One record is touched, not two: of most blocks there are many, and each is far away.
        if !self.index.lost_unit(block, self.ages.at_loss(now)) {
            self.blocks.remove_valid(block);
        }
        block
    }

    /// A program in `block` has ended, and has changed the map as far as it will.
    #[inline]
    pub(crate) fn page_ended(&mut self, now: Time, block: BlockId, is_full: bool) {
        if self.blocks.page_ended(block, is_full) {
            self.index.insert(
                block,
                self.blocks.valid(block),
                self.zombies.in_block(block),
                self.ages.at(now),
            );
        }
    }

    /// Stops writing to `block`, which is open and has no program under way; `empty` if it was not written.
    pub(crate) fn close(&mut self, now: Time, block: BlockId, empty: bool) {
        self.blocks.close(block, empty);
        if !empty {
            self.index.insert(
                block,
                self.blocks.valid(block),
                self.zombies.in_block(block),
                self.ages.at(now),
            );
        }
    }

    /// `block` is chosen by garbage collection.
    pub(crate) fn collect(&mut self, block: BlockId) {
        if let Some(valid) = self.index.remove(block) {
            self.blocks.set_valid(block, valid);
        }
        self.blocks.collect(block);
    }

    /// `block`, in which nothing is valid and no program is under way, is to be erased.
    pub(crate) fn give_up(&mut self, block: BlockId) {
        match self.blocks.state(block) {
            BlockState::Closed => self.collect(block),
            BlockState::Open => self.blocks.give_up_open(block),
            state => assert_eq!(state, BlockState::Collected, "{block:?}"),
        }
    }
}

/// Hints of the host, and their effect.
impl Data {
    /// True if writes must be reported as they arrive.
    #[inline]
    pub const fn follows_writes(&self) -> bool {
        self.zombies.are_kept() || self.logs.are_kept()
    }

    /// A write of `count` units from `first` on has arrived, of a log if the host says so: what was
    /// announced of it has come.
    #[inline(never)]
    pub fn note_write(&mut self, now: Time, first: Lpn, count: u32, is_log: bool) {
        self.zombies.arrived(first, count, Some(now));
        self.index.set_lead(self.zombies.mean_lead());
        if self.logs.are_kept() {
            let map = &self.map;
            self.logs.written(first, count, is_log, |lpn| map.get(lpn).is_some());
        }
    }

    /// A trim of `count` units from `first` on has arrived.
    pub fn note_trim(&mut self, first: Lpn, count: u32) {
        self.zombies.arrived(first, count, None);
    }

    /// The host says that it will overwrite `lpn`, whose last version `is_buffered` or lies on flash.
    /// Returns what was not known before, and the block of a new zombie.
    pub(crate) fn announce(
        &mut self,
        now: Time,
        geometry: &Geometry,
        lpn: Lpn,
        learns_lead: bool,
        is_buffered: impl FnOnce() -> bool,
    ) -> (Announced, Option<BlockId>) {
        let on_flash = self.map.get(lpn);
        if on_flash.is_none() && !is_buffered() {
            return (Announced::Nothing, None);
        }
        self.zombies.begin(self.map.len(), geometry.blocks(), learns_lead);
        let is_new = self.zombies.announce(now, lpn);
        let doomed = on_flash.filter(|_| self.zombies.doom(lpn));
        let block = doomed.map(|unit| geometry.block_of(unit));
        if let Some(block) = block {
            self.count_zombie(block, true);
        }
        (if is_new { Announced::New } else { Announced::Again }, block)
    }

    /// The host's write of `lpn` takes the place of what lies in `old`; it lies in `new`, unless it was
    /// a trim.
    #[inline(never)]
    fn replace_zombie(
        &mut self,
        lpn: Lpn,
        old: Option<BlockId>,
        new: Option<BlockId>,
        stats: &mut FtlStats,
    ) {
        let (was, is) = self.zombies.overwritten(lpn);
        if old.is_some() && new.is_some() {
            stats.overwritten_zombie_units += u64::from(was);
            stats.overwritten_live_units += u64::from(!was);
        }
        if let Some(old) = old.filter(|_| was) {
            self.count_zombie(old, false);
        }
        if let Some(new) = new.filter(|_| is) {
            self.count_zombie(new, true);
        }
    }

    /// A copy of `lpn` has moved it.
    #[inline(never)]
    fn move_zombie(&mut self, lpn: Lpn, from: BlockId, to: BlockId) {
        if let Some(zombie) = self.streams.zombie()
            && self.blocks.stream(to) == zombie
        {
            let old = self.blocks.stream(from);
            if old != zombie {
                self.zombies.keep_region(lpn, self.streams.region(old));
            }
        }
        if self.zombies.contains(lpn) {
            self.count_zombie(from, false);
            self.count_zombie(to, true);
        }
    }

    #[inline]
    fn count_zombie(&mut self, block: BlockId, comes: bool) {
        let count = self.zombies.count(block, comes);
        self.index.set_zombies(block, count);
    }
}

/// After a power cut.
impl Data {
    /// Maps `lpn` to `unit`, as recovery has found it. Nothing is counted before [`Data::rebuild`].
    pub(crate) fn found(&mut self, lpn: Lpn, unit: Option<Ppa>) {
        match unit {
            Some(unit) => self.map.set(lpn, unit),
            None => self.map.unmap(lpn),
        };
    }

    /// Maps the entries of `page` as flash holds them.
    pub(crate) fn load(&mut self, page: MapPage, entries: &[u32]) {
        self.map.load(page, entries);
    }

    /// Counts valid units, and ranks the blocks that can be collected.
    pub(crate) fn rebuild(&mut self, geometry: &Geometry) {
        let end = Lpn(self.map.len());
        let mut next = Lpn(0);
        while let Some(lpn) = self.map.next_mapped(next, end) {
            let unit = self.map.get(lpn).expect("it is mapped");
            self.validity.set(unit);
            self.blocks.add_valid(geometry.block_of(unit));
            next = Lpn(lpn.0 + 1);
        }
        for block in (0..geometry.blocks()).map(BlockId) {
            if self.blocks.state(block) == BlockState::Closed {
                self.index.insert(block, self.blocks.valid(block), 0, Time::ZERO);
            }
        }
    }
}

/// Saved and loaded.
impl Data {
    /// True if `other`, which was loaded, is of this shape.
    pub(crate) fn fits(&self, other: &Self, geometry: &Geometry) -> bool {
        other.map.len() == self.map.len()
            && other.map.pages() == self.map.pages()
            && other.validity.fits(geometry)
            && other.zombies.fits(self.map.len(), geometry.blocks())
            && other.logs.fits(&self.logs)
            && other.blocks.fits(geometry, self.streams.count())
            && other.index.fits(geometry)
    }

    /// Takes over `other`, which fits, and to which the host had written no more than so many units.
    pub(crate) fn restore(&mut self, other: Self, written_units: u64) {
        let (streams, ages) = (self.streams.clone(), self.ages.after(written_units));
        *self = Self { ages, streams, ..other };
    }

    /// Bytes of memory that grow with capacity.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.map.memory_bytes()
            + self.validity.memory_bytes()
            + self.zombies.memory_bytes()
            + self.logs.memory_bytes()
            + self.blocks.memory_bytes()
            + self.index.memory_bytes()
    }
}

/// The unit `unit` of `page`.
#[inline]
pub(crate) fn unit_of(geometry: &Geometry, page: Ppn, unit: u32) -> Ppa {
    Ppa(geometry.first_unit(page).0 + unit)
}

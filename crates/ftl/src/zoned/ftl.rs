//! The zoned FTL: its rooms put together.

use leyden_nand::{
    BlockId, BlockUse, Content, DieId, Geometry, Health, Interrupted, Keeps, Kind, Lpn, Medium,
    Outcome, PageKind, Ppa, Ppn,
};
use leyden_sim::{Span, Time};

use super::blocks::Blocks;
use super::body::{Body, Set};
use super::version::Version;
use super::{Config, ZoneId, ZoneShape, ZoneState, ZoneTable};
use crate::dump_area::DumpArea;
use crate::page_mapped::{Durability, FtlStats};

/// The contents of a page in flight to flash.
#[derive(Clone, Copy, Debug)]
struct PageOnTheWay {
    zone: ZoneId,
    generation: u32,
    first: u32,
    units: u32,
    set: u32,
}

/// A page of a zone whose program has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageEnded {
    /// The zone.
    pub zone: ZoneId,
    /// The page's first unit, from the zone's beginning.
    pub first: u32,
    /// Units in it.
    pub units: u32,
    /// The program failed: the units must be programmed again.
    pub failed: bool,
}

/// The purpose of a flash operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A read for the host, with the caller's tag.
    HostRead(u32),
    /// A page of a zone.
    Page(PageEnded),
    /// A page of a zone that was reset meanwhile.
    Stale,
    /// An erase.
    Erase,
}

/// A zoned FTL on its medium. What DRAM holds is everything but the medium.
#[derive(Clone, Debug)]
pub struct ZonedFtl<C: Content> {
    pub(super) config: Config,
    pub(super) shape: ZoneShape,
    pub(super) durability: Durability,
    endurance_cycles: u32,
    pub(super) medium: Medium<C>,
    pub(super) zones: ZoneTable,
    pub(super) bodies: Vec<Body>,
    pub(super) blocks: Blocks,
    /// Blocks with data of which it is not known yet whose they are.
    pub(super) found: Vec<BlockId>,
    pub(super) dumps: DumpArea,
    pages: Vec<PageOnTheWay>,
    unused_tags: Vec<u32>,
    pub(super) stats: FtlStats,
}

/// The state of the blocks in DRAM, from the medium alone.
fn blocks_of<C: Content>(medium: &Medium<C>, keep: u32) -> (Blocks, Vec<BlockId>, DumpArea) {
    let mut found = Vec::new();
    let blocks = Blocks::new(medium, keep, |block| found.push(block));
    (blocks, found, dumps_of(medium))
}

/// The dumps that the medium holds.
pub(super) fn dumps_of<C: Content>(medium: &Medium<C>) -> DumpArea {
    let holds_dump = |&block: &BlockId| {
        let kind = medium.used_for(block).map(|used_for| used_for.kind);
        kind.is_some_and(|kind| kind != PageKind::Data)
            && medium.health(block) != Health::Bad
            && !medium.is_poisoned(block)
    };
    let all = (0..medium.geometry().blocks()).map(BlockId);
    DumpArea::new(medium, all.filter(holds_dump))
}

impl<C: Content> ZonedFtl<C> {
    /// The parts of pages that the medium of a drive that must stand `durability` keeps.
    pub const fn keeps(durability: Durability) -> Keeps {
        Keeps {
            meta: durability.power_cuts,
            versions: durability.power_cuts && durability.may_lose_map,
        }
    }

    /// A drive on a medium that may hold data: what it knows before [`ZonedFtl::recover`].
    ///
    /// # Errors
    /// If `config` is impossible on flash of this shape.
    pub fn on_medium(
        config: &Config,
        endurance_cycles: u32,
        medium: Medium<C>,
        durability: Durability,
    ) -> Result<Self, leyden_sim::ConfigError> {
        let keep = durability.dump_blocks_per_die;
        let shape = config.shape(medium.geometry(), keep)?;
        let (blocks, found, dumps) = blocks_of(&medium, keep);
        Ok(Self {
            config: config.clone(),
            shape,
            durability,
            endurance_cycles,
            medium,
            zones: ZoneTable::new(shape),
            bodies: vec![Body::default(); shape.zones as usize],
            blocks,
            found,
            dumps,
            pages: Vec::new(),
            unused_tags: Vec::new(),
            stats: FtlStats::default(),
        })
    }

    /// DRAM loses what it held. `interrupted` says what was on its way, and whether it still ended.
    pub fn lose_power(&mut self, now: Time, interrupted: &[(Interrupted, bool)]) {
        self.medium.cut_power(now, interrupted);
        (self.blocks, self.found, self.dumps) =
            blocks_of(&self.medium, self.durability.dump_blocks_per_die);
        self.zones = ZoneTable::new(self.shape);
        self.bodies = vec![Body::default(); self.shape.zones as usize];
        self.pages.clear();
        self.unused_tags.clear();
    }

    /// The medium, which is all that a power cut leaves.
    pub fn into_medium(self) -> Medium<C> {
        self.medium
    }
    /// The zones of the configuration.
    #[inline]
    pub const fn shape(&self) -> &ZoneShape {
        &self.shape
    }
    /// The flash's shape.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        self.medium.geometry()
    }
    /// The medium, to look at.
    pub const fn medium(&self) -> &Medium<C> {
        &self.medium
    }
    /// The medium at work.
    #[inline]
    pub const fn medium_mut(&mut self) -> &mut Medium<C> {
        &mut self.medium
    }
    /// The zones.
    #[inline]
    pub const fn zones(&self) -> &ZoneTable {
        &self.zones
    }
    /// The zones, to change their states and write pointers.
    #[inline]
    pub const fn zones_mut(&mut self) -> &mut ZoneTable {
        &mut self.zones
    }
    /// Blocks that no zone has.
    pub const fn blocks(&self) -> &Blocks {
        &self.blocks
    }
    /// Blocks of each die to keep back for dumps.
    pub(super) const fn dump_blocks_per_die(&self) -> u32 {
        self.durability.dump_blocks_per_die
    }
    /// The counters.
    pub const fn stats(&self) -> &FtlStats {
        &self.stats
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        let bodies: usize = self.bodies.iter().map(Body::memory_bytes).sum();
        let zones = size_of::<super::Zone>() * self.bodies.len();
        self.medium.memory_bytes() + (bodies + zones) as u64
    }
    /// Tags of programs that are not in use, and all that there are.
    pub(super) const fn tags(&self) -> (usize, usize) {
        (self.unused_tags.len(), self.pages.len())
    }
    /// Erases of every block, in order; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        let blocks = (0..self.geometry().blocks()).map(BlockId);
        blocks.map(|block| {
            let is_bad = self.medium.health(block) == Health::Bad;
            (!is_bad).then(|| self.medium.erases(block))
        })
    }

    /// The die that the next page of `zone` goes to; `None` if it has no block for it
    /// ([`ZonedFtl::allocate`]).
    #[inline]
    pub fn next_die(&self, zone: ZoneId) -> Option<DieId> {
        let set = self.bodies[zone.index()].open_set()?;
        Some(self.geometry().die_of_page(set.page(set.next, self.geometry())))
    }

    /// Gives `zone` blocks for `units` more units, or for some of them. False if there is no free block.
    pub fn allocate(&mut self, zone: ZoneId, units: u32) -> bool {
        let geometry = *self.geometry();
        let lanes = self.shape.dies_per_zone;
        let levels = geometry.pages_for(units).div_ceil(lanes * geometry.pages_per_block());
        let policy = self.config.place.policy();
        let set = self.blocks.take_set(&self.medium, policy.as_ref(), lanes, levels.max(1));
        let Some((lanes, blocks)) = set else { return false };
        self.bodies[zone.index()].sets.push(Set::new(lanes, blocks, &geometry));
        true
    }

    /// Blocks that are erased and that no zone has, of all dies.
    pub fn free_blocks(&self) -> u64 {
        let dies = self.medium.geometry().dies();
        (0..dies).map(|die| u64::from(self.blocks.free(DieId(die)))).sum()
    }

    /// Programs the next page of `zone` with `units`, the first of which is the zone's unit `first`; the
    /// rest of the page is padding.
    ///
    /// # Panics
    /// If its die does not accept it, or it has no block ([`ZonedFtl::next_die`]).
    #[inline]
    pub fn program(
        &mut self,
        now: Time,
        zone: ZoneId,
        first: u32,
        units: impl ExactSizeIterator<Item = C>,
    ) {
        let count = units.len() as u32;
        let (place, page) = self.store(zone, first, units);
        let on_the_way = PageOnTheWay {
            zone,
            generation: self.zones.get(zone).generation,
            first,
            units: count,
            set: place.0,
        };
        let tag = if let Some(tag) = self.unused_tags.pop() {
            self.pages[tag as usize] = on_the_way;
            tag
        } else {
            self.pages.push(on_the_way);
            self.pages.len() as u32 - 1
        };
        self.medium.program(now, page, count, DATA, tag);
    }

    /// Puts units into the next page of `zone`, which is about to be programmed.
    #[inline]
    pub(super) fn store(
        &mut self,
        zone: ZoneId,
        first: u32,
        units: impl ExactSizeIterator<Item = C>,
    ) -> ((u32, u32), Ppn) {
        let geometry = *self.medium.geometry();
        let per_page = geometry.units_per_page();
        let count = units.len() as u32;
        let body = &mut self.bodies[zone.index()];
        let epoch = self.dumps.sequence();
        let version = Version::new(self.zones.get(zone).generation, epoch, body.order).0;
        let place = body.take_page();
        let page = body.sets[place.0 as usize].page(place.1, &geometry);
        body.place(first, count, place, per_page);
        let base = zone.0 * self.shape.size + first;
        let units = units.enumerate().map(|(index, content)| (Lpn(base + index as u32), content));
        self.medium.write_units(geometry.first_unit(page), version, units);
        self.stats.user_units += u64::from(count);
        self.stats.padded_units += u64::from(per_page - count);
        if self.bodies[zone.index()].open_set().is_none() {
            self.set_closed(zone, place.0);
        }
        (place, page)
    }

    fn set_closed(&mut self, zone: ZoneId, set: u32) {
        let geometry = *self.geometry();
        let set = &self.bodies[zone.index()].sets[set as usize];
        self.blocks.closed_set(set.lane_dies(&geometry));
    }

    /// Where unit `unit` of `zone` lies.
    ///
    /// # Panics
    /// If it is not on flash.
    #[inline]
    pub fn lies(&self, zone: ZoneId, unit: u32) -> Ppa {
        self.bodies[zone.index()].lies(unit, self.geometry())
    }

    /// Units of `zone`, from its beginning, that flash holds or will hold when what is on its way has
    /// ended.
    #[inline]
    pub fn end(&self, zone: ZoneId) -> u32 {
        self.bodies[zone.index()].end()
    }

    /// Starts a read for the host of `units` units of `page`.
    #[inline]
    pub fn read(&mut self, now: Time, page: Ppn, units: u32, tag: u32) {
        self.stats.reads.host += 1;
        self.medium.read(now, page, units, true, tag);
    }

    /// Drops the data of `zone`. Its state is the caller's business.
    pub fn drop_data(&mut self, zone: ZoneId) {
        let geometry = *self.geometry();
        let body = std::mem::take(&mut self.bodies[zone.index()]);
        if let Some(set) = body.open_set() {
            self.blocks.closed_set(set.lane_dies(&geometry));
        }
        for block in body.blocks() {
            let die = geometry.die_of(block);
            if self.medium.used_for(block).is_some() {
                self.blocks.erase_later(die, block);
            } else {
                self.blocks.erased(die, block);
            }
        }
    }

    /// Nothing more will be written to `zone`: blocks that it has not begun are free.
    pub fn close_body(&mut self, zone: ZoneId) {
        let geometry = *self.geometry();
        let body = &mut self.bodies[zone.index()];
        if body.open_set().is_none() {
            return;
        }
        let set = body.sets.last_mut().expect("an open set");
        self.blocks.closed_set(set.lane_dies(&geometry));
        for block in set.close(&geometry) {
            self.blocks.erased(geometry.die_of(block), block);
        }
    }

    /// Erases a block of `die` that nobody needs, if there is one; with `urgently`, only if the die has no
    /// free block. True if an erase has started.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline]
    pub fn erase_step(&mut self, now: Time, die: DieId, urgently: bool) -> bool {
        while !urgently && let Some(block) = self.dumps.take_old(die) {
            if self.medium.health(block) == Health::Failing {
                self.medium.retire(block);
                continue;
            }
            self.medium.erase(now, block);
            return true;
        }
        if urgently && !self.blocks.is_short(die) {
            return false;
        }
        while let Some(block) = self.blocks.take_to_erase(die) {
            if self.medium.health(block) == Health::Failing {
                self.medium.retire(block);
                continue;
            }
            self.medium.erase(now, block);
            return true;
        }
        false
    }

    /// The next flash operation to end at or before `now`, and what it was for.
    #[inline]
    pub fn next_ended(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        let outcome = self.medium.next_outcome(now)?;
        let tag = outcome.operation.tag;
        let ended = match outcome.operation.kind {
            Kind::HostRead(_) | Kind::Read(_) => Ended::HostRead(tag),
            Kind::Program(_) => self.page_ended(tag, outcome.failed),
            Kind::Erase(block) => {
                self.erase_ended(block, outcome.failed);
                Ended::Erase
            }
        };
        Some((outcome, ended))
    }

    #[inline]
    fn page_ended(&mut self, tag: u32, failed: bool) -> Ended {
        self.stats.programs.user += 1;
        self.stats.program_failures += u64::from(failed);
        self.unused_tags.push(tag);
        let PageOnTheWay { zone, generation, first, units, set } = self.pages[tag as usize];
        if self.zones.get(zone).generation != generation {
            return Ended::Stale;
        }
        if failed && set as usize + 1 == self.bodies[zone.index()].sets.len() {
            self.close_body(zone); // its other blocks are good, but the lanes would not go on side by side
        }
        Ended::Page(PageEnded { zone, first, units, failed })
    }

    /// The zone and the first unit of the page that `interrupted` leaves on flash, if it still ends while the power fails.
    pub fn page_at_cut(&self, interrupted: &Interrupted) -> Option<(ZoneId, u32)> {
        let Kind::Program(place) = interrupted.operation.kind else { return None };
        let page = self.pages[interrupted.operation.tag as usize];
        let is_current = self.zones.get(page.zone).generation == page.generation;
        (is_current && !self.medium.spoils_page(place)).then_some((page.zone, page.first))
    }

    pub(super) fn erase_ended(&mut self, block: BlockId, failed: bool) {
        let worn = self.endurance_cycles > 0 && self.medium.erases(block) >= self.endurance_cycles;
        if failed {
            self.stats.erase_failures += 1;
            return; // the medium has retired it
        }
        self.stats.erases += 1;
        if worn {
            self.medium.retire(block);
        } else {
            self.blocks.erased(self.geometry().die_of(block), block);
        }
    }

    /// No block is left for what `zone` is to hold: it is read-only, or offline if it holds nothing.
    pub fn run_out(&mut self, zone: ZoneId) {
        let holds_data = self.end(zone) > 0 || self.zones.get(zone).wp > 0;
        let to = if holds_data { ZoneState::ReadOnly } else { ZoneState::Offline };
        if !matches!(self.zones.get(zone).state, ZoneState::ReadOnly | ZoneState::Offline) {
            self.zones.fault(zone, to);
        }
    }

    /// Time dies have been busy.
    pub fn die_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.medium.die_busy()
    }

    /// Time channels have been busy.
    pub fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.medium.channel_busy()
    }
}

/// The use of the blocks of zones.
pub(super) const DATA: BlockUse = BlockUse { kind: PageKind::Data, stream: 0 };

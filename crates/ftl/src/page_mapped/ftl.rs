//! The page-mapped FTL: its rooms put together.

use leyden_nand::{
    Activity, BlockId, BlockUse, Content, DieId, Geometry, Interrupted, Lpn, Medium, Operation,
    PageKind, Ppa, Ppn,
};
use leyden_sim::{ConfigError, Span, Time};

use super::collect::{Around, Collector, GcStep};
use super::data::{Announced, BlockState, Blocks, Data, KeptBlocks};
use super::durability::Durability;
use super::programs::{ProgramCause, Programs};
use super::stats::FtlStats;
use super::table::{Step, TableWriter};
use crate::Config;
use crate::dump_area::DumpArea;
use crate::gc::{Ages, Chooser};
use crate::logs::Logs;
use crate::map::{MapPage, MapStore, MapTable};
use crate::place::StreamId;

/// A unit of user data to program.
#[derive(Clone, Debug)]
pub struct UserUnit<C> {
    /// Whose data it is.
    pub lpn: Lpn,
    /// The data.
    pub content: C,
    /// The caller's own name for it, handed back when the program has ended.
    pub source: u32,
}

/// A page-mapped FTL on its medium.
///
/// Each field is a room with state of its own; this puts them together. What DRAM holds is everything but
/// the medium: a power cut makes a new FTL from that alone.
#[derive(Clone, Debug)]
pub struct Ftl<C: Content> {
    pub(super) config: Config,
    pub(super) durability: Durability,
    pub(super) endurance_cycles: u32,
    pub(super) medium: Medium<C>,
    pub(super) data: Data,
    pub(super) programs: Programs,
    pub(super) collector: Collector,
    pub(super) table: TableWriter,
    pub(super) dumps: DumpArea,
    /// The version of the next page of the host's data.
    pub(super) next_version: u64,
    pub(super) stats: FtlStats,
}

/// The contents of DRAM.
struct Dram {
    data: Data,
    programs: Programs,
    collector: Collector,
    table: TableWriter,
    dumps: DumpArea,
}

impl Dram {
    /// The state of a drive with `lpns` logical units before it has recovered its medium.
    fn new<C: Content>(
        config: &Config,
        lpns: u32,
        medium: &Medium<C>,
        durability: Durability,
        policy: Chooser,
    ) -> Self {
        let geometry = medium.geometry();
        let map = MapTable::new(lpns, config.map.entries_per_page(geometry));
        let pages = map.pages();
        let kept = KeptBlocks {
            map: config.map.blocks_per_die(geometry, pages),
            journal: config.map.journal_blocks_per_die(geometry, pages),
            dump: durability.dump_blocks_per_die,
        };
        let streams = config.streams();
        let count = streams.count();
        let logs = Logs::new(&config.log_stream, lpns, geometry.unit_bytes());
        let order = policy.order();
        let ages = Ages::new(config.gc.age_of, config.gc.age_clock, config.gc.age_tick);
        let data = Data::new(medium, map, streams, kept, order, ages, logs);
        let store = MapStore::new(&config.map, pages, geometry, durability.power_cuts);
        let poisoned = (0..geometry.blocks()).map(BlockId).filter(|&block| {
            medium.is_poisoned(block) && data.blocks().state(block) == BlockState::Collected
        });
        Self {
            collector: Collector::new(&config.gc, policy, geometry, count, poisoned),
            table: TableWriter::new(store, medium, &data),
            dumps: DumpArea::new(medium, data.blocks().with_dumps()),
            programs: Programs::new(geometry.units_per_page()),
            data,
        }
    }
}

impl<C: Content> Ftl<C> {
    /// A drive without any data.
    ///
    /// # Errors
    /// If `config` leaves garbage collection no room on flash of this shape.
    pub fn new(
        config: &Config,
        nand: &leyden_nand::Config,
        geometry: Geometry,
        seed: u64,
        durability: Durability,
    ) -> Result<Self, ConfigError> {
        let medium = Medium::new(nand, geometry, seed, durability.keeps());
        Self::on_medium(config, nand.endurance_cycles, medium, durability)
    }

    /// A drive on a medium that may hold data: what it knows before [`Ftl::recover`].
    ///
    /// ```
    /// # fn main() -> Result<(), leyden_sim::ConfigError> {
    /// use leyden_ftl::Config;
    /// use leyden_ftl::page_mapped::{Durability, Ftl};
    /// use leyden_nand::{Content, Keeps, Medium};
    /// use leyden_sim::Bytes;
    /// # #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    /// # struct NoData;
    /// # impl Content for NoData {}
    ///
    /// let (config, nand) = (Config::default(), leyden_nand::Config::default());
    /// let geometry = nand.geometry(Bytes::new(4096)).unwrap();
    /// let medium = Medium::<NoData>::new(&nand, geometry, 1, Keeps::default());
    /// let ftl = Ftl::on_medium(&config, 0, medium, Durability::default())?;
    /// assert_eq!(ftl.map().mapped(), 0);
    /// # Ok(()) }
    /// ```
    pub fn on_medium(
        config: &Config,
        endurance_cycles: u32,
        medium: Medium<C>,
        durability: Durability,
    ) -> Result<Self, ConfigError> {
        let lpns = config.logical_units(medium.geometry(), durability.dump_blocks_per_die)?;
        let policy = Chooser::new(&config.gc, medium.seed());
        let Dram { data, programs, collector, table, dumps } =
            Dram::new(config, lpns, &medium, durability, policy);
        Ok(Self {
            config: config.clone(),
            durability,
            endurance_cycles,
            medium,
            data,
            programs,
            collector,
            table,
            dumps,
            next_version: 1,
            stats: FtlStats::default(),
        })
    }

    /// Loses DRAM, and rebuilds its state from the medium alone. `interrupted` says what was on
    /// its way, and whether it still ended.
    pub fn lose_power(&mut self, now: Time, interrupted: &[(Interrupted, bool)]) {
        self.medium.cut_power(now, interrupted);
        let counted = *self.store().stats();
        let policy = self.collector.policy().clone();
        let Dram { data, programs, collector, table, dumps } =
            Dram::new(&self.config, self.map().len(), &self.medium, self.durability, policy);
        (self.data, self.programs, self.collector) = (data, programs, collector);
        (self.table, self.dumps, self.next_version) = (table, dumps, 1);
        self.store_mut().count_on(counted);
    }

    /// The medium, which is all that a power cut leaves.
    pub fn into_medium(self) -> Medium<C> {
        self.medium
    }

    /// The flash, and what lies on it.
    #[inline]
    pub const fn medium(&self) -> &Medium<C> {
        &self.medium
    }
    /// The flash's shape.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        self.medium.geometry()
    }
    /// The mapping table.
    #[inline]
    pub const fn map(&self) -> &MapTable {
        self.data.map()
    }
    /// Which mapping pages are dirty, and where they lie on flash.
    #[inline]
    pub const fn store(&self) -> &MapStore {
        self.table.store()
    }
    /// For those that watch which mapping pages become dirty or clean.
    #[inline]
    pub fn store_mut(&mut self) -> &mut MapStore {
        self.table.store_mut()
    }
    /// Where data lies, and what the host has announced.
    #[inline]
    pub const fn data(&self) -> &Data {
        &self.data
    }
    /// The blocks.
    #[inline]
    pub const fn blocks(&self) -> &Blocks {
        self.data.blocks()
    }
    /// Erases of every block, in order; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        let blocks = (0..self.geometry().blocks()).map(BlockId);
        blocks.map(|block| {
            let is_bad = self.blocks().state(block) == BlockState::Bad;
            (!is_bad).then(|| self.medium.erases(block))
        })
    }
    /// Blocks that are never used again.
    pub const fn bad_blocks(&self) -> u64 {
        self.medium.bad_blocks()
    }
    /// Free blocks that data may have, of all dies.
    pub fn free_blocks(&self) -> u64 {
        let dies = (0..self.geometry().dies()).map(DieId);
        dies.map(|die| u64::from(self.blocks().free(die))).sum()
    }
    /// The counters.
    pub const fn stats(&self) -> &FtlStats {
        &self.stats
    }
    /// Time dies have been busy.
    pub fn die_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.medium.die_busy()
    }
    /// Time channels have been busy.
    pub fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.medium.channel_busy()
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        self.data.memory_bytes() + self.store().memory_bytes() + self.medium.memory_bytes()
    }
    /// See [`leyden_nand::Flash::set_untimed`].
    pub fn set_untimed(&mut self, untimed: bool) {
        self.medium.set_untimed(untimed);
    }
    /// See [`leyden_nand::Flash::activity`].
    pub fn activity(&self) -> impl Iterator<Item = Activity> + '_ {
        self.medium.activity()
    }
    /// Why the page of a program on its way is programmed.
    pub fn cause_of(&self, program: &Operation) -> ProgramCause {
        self.programs.cause(program.tag)
    }
    /// Programs that have ended, and wait at the gate.
    pub fn waiting_at_gate(&self) -> u64 {
        self.table.waiting_at_gate()
    }
    /// True if no operation is in progress.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.medium.is_idle() && !self.table.has_event()
    }
    /// When something next happens; [`Time::MAX`] if nothing will, or only at the end of time.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.medium.next_time().min(self.table.next_time())
    }
    /// True if `die` would take a program, or a step of garbage collection.
    #[inline]
    pub fn accepts(&self, die: DieId) -> bool {
        self.medium.accepts(die)
    }
    /// Brings near what is kept of the unit where `lpn` lies, whose map entry is near, and of its block.
    #[inline]
    pub fn expect_old(&self, lpn: Lpn) {
        self.data.expect_old(self.geometry(), lpn);
    }
    /// The data of a unit.
    #[inline]
    pub fn content(&self, unit: Ppa) -> C {
        self.medium.content(unit)
    }
    /// The contents of all units programmed since their block's erase, readable or not.
    pub fn contents(&self) -> impl Iterator<Item = &C> {
        self.medium.contents()
    }
    /// The stream for new data of `lpn`.
    #[inline]
    pub fn stream_for(&self, lpn: Lpn) -> StreamId {
        self.data.stream_for(self.medium.geometry(), lpn)
    }

    /// Starts a read for the host of `units` units of `page`.
    #[inline]
    pub fn read(&mut self, now: Time, page: Ppn, units: u32, tag: u32) {
        self.stats.reads.host += 1;
        self.medium.read(now, page, units, true, tag);
    }

    /// Starts a read of a unit of `page` that the host has written in part.
    #[inline]
    pub fn read_rest(&mut self, now: Time, page: Ppn, tag: u32) {
        self.stats.reads.rmw += 1;
        self.medium.read(now, page, 1, true, tag);
    }

    /// True if the host may have the next page of `stream` on `die`: it must leave what the current
    /// collection needs, or else the last free block for the next one. If the power may fail, it also waits
    /// while a collection has the last free block, which must hold copies only: they can be undone.
    #[inline]
    pub fn may_program(&self, die: DieId, stream: StreamId) -> bool {
        let free = self.blocks().free(die);
        let open = self.blocks().open_pages(&self.medium, die, stream);
        if open == 0 && free < 2 || free == 0 && self.blocks().keeps_for_dumps() {
            return false;
        }
        match self.collector.needs(die, &self.data, self.geometry()) {
            Some((dest, pages)) if dest == stream => {
                open + free * self.geometry().pages_per_block() > pages
            }
            Some(_) => true,
            None => free > 0,
        }
    }

    /// Programs the next page of `stream` on `die` with up to a page of units; the rest is padding.
    ///
    /// # Panics
    /// If the die does not accept it, or has no room ([`Ftl::may_program`]).
    #[inline]
    pub fn program(
        &mut self,
        now: Time,
        die: DieId,
        stream: StreamId,
        units: impl ExactSizeIterator<Item = UserUnit<C>>,
    ) {
        let page = self.data.blocks_mut().allocate(&self.medium, die, stream);
        let page = page.expect("no page for the host");
        self.collector.unstick(die);
        self.collector.host_writes(die);
        let version = self.next_version;
        self.next_version += 1;
        let count = units.len() as u32;
        let first = self.geometry().first_unit(page);
        let (tag, sources) = self.programs.insert(ProgramCause::User, version, units.len());
        let contents = units.zip(sources).map(|(unit, source)| {
            *source = unit.source;
            (unit.lpn, unit.content)
        });
        self.medium.write_units(first, version, contents);
        self.stats.user_units += u64::from(count);
        self.stats.padded_units += u64::from(self.geometry().units_per_page() - count);
        let used_for = BlockUse { kind: PageKind::Data, stream: stream.0 };
        self.medium.program(now, page, count, used_for, tag);
    }

    /// True if the next operation of `die` is its collection's rather than a write of the host's: it is short
    /// of free blocks.
    #[inline]
    pub fn gc_goes_first(&self, die: DieId) -> bool {
        self.collector.goes_first(die, &self.data, &self.medium)
    }

    /// Nothing goes on in the drive, and the host waits for room: collections make some whatever it costs, until
    /// this is over.
    pub fn set_desperate(&mut self, is_desperate: bool) {
        self.collector.set_desperate(is_desperate);
    }

    /// True if `die` has, or should have, a collection under way.
    #[inline]
    pub fn wants_collection(&self, die: DieId) -> bool {
        self.collector.wants(die, &self.data, &self.medium)
    }

    /// Does the next step of `die`'s collection, if there is one to do.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline]
    pub fn gc_step(&mut self, now: Time, die: DieId) -> GcStep {
        let mut around = Around {
            medium: &mut self.medium,
            data: &mut self.data,
            programs: &mut self.programs,
            table: &mut self.table,
            stats: &mut self.stats,
        };
        self.collector.step(now, die, &mut around)
    }

    /// Does the next step of writing `die`'s mapping pages, or of erasing what a dump was written to,
    /// if there is one to do. True if it started.
    ///
    /// # Panics
    /// If the die does not accept operations.
    #[inline]
    pub fn map_step(&mut self, now: Time, die: DieId) -> bool {
        if self.blocks().keeps_for_dumps()
            && let Some(block) = self.take_old_dump(die)
        {
            self.medium.erase(now, block);
            return true;
        }
        if self.table.is_never_written() {
            return false;
        }
        let mut step = Step {
            now,
            medium: &mut self.medium,
            data: &mut self.data,
            programs: &mut self.programs,
            next_version: self.next_version,
            has_retired: false,
        };
        let started = self.table.step(die, &mut step);
        if step.has_retired {
            self.collector.unstick(die);
        }
        started
    }

    /// A die that has got something to write of the map, once.
    #[inline]
    pub fn next_woken(&mut self) -> Option<DieId> {
        self.table.next_woken()
    }

    /// True if a FLUSH must wait: a trim is not on flash yet, and nothing else protects it.
    #[inline]
    pub fn has_unsaved_trims(&self) -> bool {
        self.table.has_unsaved_trims()
    }

    /// True if a trim may change the entries of `page`; if not, room is made for it.
    pub fn may_trim(&mut self, page: MapPage) -> bool {
        self.table.may_trim(page)
    }

    /// Forgets `lpn`. Its mapping page may be dirty ([`Ftl::may_trim`]).
    pub fn trim(&mut self, now: Time, lpn: Lpn) {
        let geometry = self.medium.geometry();
        let Some(emptier) = self.data.trim(now, geometry, lpn, &mut self.stats) else { return };
        self.collector.unstick_die_of(geometry, Some(emptier));
        let page = self.data.map().page_of(lpn);
        self.note_trim(page);
        self.table.log_change(page, lpn, None);
    }

    /// An entry of `page` that was trimmed must stay unmapped, whatever flash holds of it.
    pub fn note_trim(&mut self, page: MapPage) {
        self.table.note_trim(page, self.next_version);
    }

    /// A write of `count` units from `first` on has arrived, of a log if the host says so.
    #[inline]
    pub fn note_write(&mut self, now: Time, first: Lpn, count: u32, is_log: bool) {
        self.data.note_write(now, first, count, is_log);
    }

    /// A trim of `count` units from `first` on has arrived.
    pub fn note_trim_of(&mut self, first: Lpn, count: u32) {
        self.data.note_trim(first, count);
    }

    /// The host says that it will overwrite `lpn`, whose last version `is_buffered` or lies on flash.
    pub fn announce(
        &mut self,
        now: Time,
        lpn: Lpn,
        is_buffered: impl FnOnce() -> bool,
    ) -> Announced {
        let geometry = self.medium.geometry();
        let learns_lead = self.collector.asks_for_lead();
        let (announced, block) = self.data.announce(now, geometry, lpn, learns_lead, is_buffered);
        self.collector.unstick_die_of(geometry, block);
        announced
    }
}

//! The mechanism: what programs, reads and trims change.

use leyden_nand::{
    BlockId, Content, DieId, Flash, Geometry, Kind, Lpn, Media, Operation, Outcome, Ppa, Ppn,
};
use leyden_sim::canary::{Canary, is_planted};
use leyden_sim::{ConfigError, Span, Time};

use super::blocks::{Blocks, KeptBlocks};
use super::collect::Collection;
use super::durability::Durability;
use super::inflight::{Inflight, NOTHING};
use super::journal::JournalDie;
use super::mapping::{Gate, MapDie};
use super::moves::Moves;
use super::stats::FtlStats;
use super::validity::Validity;
use super::zombies::Zombies;
use crate::Config;
use crate::gc::{VictimIndex, VictimPolicy};
use crate::logs::Logs;
use crate::map::{MapPage, MapStore, MapTable};
use crate::place::{StreamId, Streams};
use crate::recovery::{DumpDie, DumpImage};

/// How many map entries are brought near at once ([`crate::map::MapTable::warm`]): enough for their
/// cache misses to overlap, few enough for the entries of all dies to stay in a near cache.
pub const WARM_UNITS: u32 = 16;

/// Why a page is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramCause {
    /// Data the host wrote.
    User,
    /// Data that garbage collection copies.
    Gc,
    /// A mapping page that is written back.
    Map,
    /// A mapping page that garbage collection moves.
    GcMap,
    /// A page of the mapping table's journal.
    Journal,
}

/// A unit of user data to program.
#[derive(Clone, Copy, Debug)]
pub struct UserUnit<C> {
    /// Whose data it is.
    pub lpn: Lpn,
    /// The data.
    pub content: C,
    /// The caller's own name for it, handed back when the program has ended.
    pub source: u32,
}

/// What ended, as far as the caller is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// A host read; its tag.
    HostRead(u32),
    /// A program of user data: for each of its units the caller says what became of it
    /// ([`Ftl::commit`] or not), then calls [`Ftl::end_program`].
    UserProgram {
        /// The page.
        page: Ppn,
        /// Names its units' sources.
        tag: u32,
        /// True if it failed: none of its units is on flash.
        failed: bool,
    },
    /// Something of the FTL's own.
    Internal,
}

/// A page-mapped FTL over its flash.
#[derive(Debug)]
pub struct Ftl<C: Content> {
    pub(crate) geometry: Geometry,
    pub(crate) streams: Streams,
    pub(crate) policy: Box<dyn VictimPolicy>,
    pub(crate) soft_free_blocks: u32,
    pub(crate) hard_free_blocks: u32,
    pub(crate) endurance_cycles: u32,
    pub(crate) map: MapTable,
    pub(crate) store: MapStore,
    /// Empty if no mapping page is written while the power is on.
    pub(crate) map_dies: Vec<MapDie>,
    /// Empty if the table's changes are not logged.
    pub(crate) journal_dies: Vec<JournalDie>,
    /// Mapping pages that dies are programming.
    pub(crate) map_writes: u32,
    /// By mapping page: what a trim of it stands against. Only where trims are written at once.
    pub(crate) trim_versions: Vec<u64>,
    pub(crate) gate: Gate,
    /// Dies whose collection has found nothing to do, and on which nothing has changed since.
    pub(crate) stuck_dies: u32,
    pub(crate) moves: Moves,
    /// Dies that have something of the map to write.
    pub(crate) wake: Vec<DieId>,
    /// The version of the next page of the host's data.
    pub(crate) next_version: u64,
    /// What the dump of the last power cut holds, until the drive is ready again.
    pub(crate) dump: Option<DumpImage<C>>,
    /// The blocks of dumps.
    pub(crate) dump_dies: Vec<DumpDie>,
    /// Blocks whose erase a power cut has broken off, until recovery.
    pub(crate) half_erased: Vec<BlockId>,
    pub(crate) validity: Validity,
    pub(crate) zombies: Zombies,
    pub(crate) logs: Logs,
    pub(crate) blocks: Blocks,
    pub(crate) index: VictimIndex,
    pub(crate) collections: Vec<Collection>,
    pub(crate) inflight: Inflight,
    pub(crate) media: Media<C>,
    pub(crate) flash: Flash,
    pub(crate) stats: FtlStats,
}

impl<C: Content> Ftl<C> {
    /// An empty drive.
    pub fn new(
        config: &Config,
        nand: &leyden_nand::Config,
        geometry: Geometry,
        seed: u64,
        durability: Durability,
    ) -> Result<Self, ConfigError> {
        let lpns = config.logical_units(&geometry, durability.dump_blocks_per_die)?;
        let streams = Streams::new(config);
        let policy = config.gc.victim.policy();
        let map = MapTable::new(lpns, config.map.entries_per_page(&geometry));
        let protection = &config.map.protection;
        let kept = KeptBlocks {
            map: config.map.blocks_per_die(&geometry, map.pages()),
            journal: config.map.journal_blocks_per_die(&geometry, map.pages()),
            dump: durability.dump_blocks_per_die,
        };
        let store = MapStore::new(protection, map.pages(), &geometry, durability.power_cuts);
        let journal_dies = if store.log().is_some() { geometry.dies() as usize } else { 0 };
        let moves = if store.leaves_copies() {
            Moves::new(map.pages(), geometry.blocks())
        } else {
            Moves::default()
        };
        let map_dies = if store.writes_back() { geometry.dies() as usize } else { 0 };
        let scans = durability.power_cuts && (durability.may_lose_map || store.trims_only());
        Ok(Self {
            soft_free_blocks: config.gc.soft_free_blocks,
            hard_free_blocks: config.gc.hard_free_blocks,
            endurance_cycles: nand.endurance_cycles,
            trim_versions: vec![0; if store.trims_only() { map.pages() as usize } else { 0 }],
            map,
            store,
            map_dies: vec![MapDie::default(); map_dies],
            journal_dies: vec![JournalDie::default(); journal_dies],
            map_writes: 0,
            gate: Gate::default(),
            stuck_dies: 0,
            moves,
            wake: Vec::new(),
            next_version: 1,
            dump: None,
            dump_dies: vec![DumpDie::default(); geometry.dies() as usize],
            half_erased: Vec::new(),
            validity: Validity::new(&geometry),
            blocks: Blocks::new(
                &geometry,
                streams.count(),
                kept,
                nand.faults.factory_bad_blocks,
                seed,
            ),
            index: VictimIndex::new(&geometry, policy.order()),
            collections: (0..geometry.dies()).map(|_| Collection::new(streams.count())).collect(),
            policy,
            streams,
            zombies: Zombies::default(),
            logs: Logs::new(&config.log_stream, lpns, geometry.unit_bytes()),
            inflight: Inflight::new(geometry.units_per_page()),
            media: Media::new(&geometry, scans),
            flash: Flash::new(nand, geometry, seed),
            stats: FtlStats::default(),
            geometry,
        })
    }

    /// The flash's shape.
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// The mapping table.
    pub const fn map(&self) -> &MapTable {
        &self.map
    }
    /// Which mapping pages are dirty, and where they lie on flash.
    pub const fn store(&self) -> &MapStore {
        &self.store
    }
    /// For whoever watches which mapping pages become dirty or clean.
    pub fn store_mut(&mut self) -> &mut MapStore {
        &mut self.store
    }
    /// The streams.
    pub const fn streams(&self) -> &Streams {
        &self.streams
    }
    /// The blocks.
    pub const fn blocks(&self) -> &Blocks {
        &self.blocks
    }
    /// The counters.
    pub const fn stats(&self) -> &FtlStats {
        &self.stats
    }
    /// Time dies have been busy.
    pub fn die_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.flash.die_busy()
    }
    /// Time channels have been busy.
    pub fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.flash.channel_busy()
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        self.map.memory_bytes()
            + self.store.memory_bytes()
            + self.validity.memory_bytes()
            + self.zombies.memory_bytes()
            + self.logs.memory_bytes()
            + self.blocks.memory_bytes()
            + self.media.memory_bytes()
            + self.index.memory_bytes()
    }
    /// See [`Flash::set_untimed`].
    pub fn set_untimed(&mut self, untimed: bool) {
        self.flash.set_untimed(untimed);
    }
    /// True if no operation is in progress.
    pub fn is_idle(&self) -> bool {
        self.flash.is_idle() && self.gate.open_at.is_none()
    }
    /// When something next happens.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match (self.flash.next_event(), self.gate.open_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// True if `die` would take a program, or a step of garbage collection.
    #[inline]
    pub fn accepts(&self, die: DieId) -> bool {
        self.flash.accepts(die)
    }
    /// The data of a unit.
    #[inline]
    pub fn content(&self, unit: Ppa) -> C {
        self.media.content(unit)
    }

    /// The stream for new data of `lpn`.
    #[inline]
    pub fn stream_for(&self, lpn: Lpn) -> StreamId {
        if self.streams.of_host() == 1 {
            return StreamId(0);
        }
        if let Some(log) = self.streams.log().filter(|_| self.logs.contains(lpn)) {
            return log;
        }
        let old = self.map.get(lpn).map(|old| self.blocks.stream(self.geometry.block_of(old)));
        if old.is_some() && old == self.streams.zombie() {
            return self.streams.for_host(Some(self.zombies.region(lpn)));
        }
        self.streams.for_host(old)
    }

    /// Starts a read for the host of `units` units of `page`.
    #[inline]
    pub fn read(&mut self, now: Time, page: Ppn, units: u32, tag: u32) {
        self.stats.host_reads += 1;
        let bytes = units * self.geometry.unit_bytes();
        self.flash.submit(now, Operation { kind: Kind::HostRead(page), bytes, tag });
    }

    /// True if the host may have the next page of `stream` on `die`: it must leave what the current
    /// collection needs, or else the last free block for the next one.
    #[inline]
    pub fn may_program(&self, die: DieId, stream: StreamId) -> bool {
        let free = self.blocks.free(die);
        let open = self.blocks.open_pages(die, stream);
        if open == 0 && free < 2 {
            return false;
        }
        match self.collection_needs(die) {
            Some((dest, pages)) if dest == stream => {
                open + free * self.geometry.pages_per_block() > pages
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
    pub fn program(&mut self, now: Time, die: DieId, stream: StreamId, units: &[UserUnit<C>]) {
        let page = self.blocks.allocate(die, stream).expect("no page for the host");
        self.unstick(die);
        let version = self.next_version;
        self.next_version += 1;
        let tag = self.inflight.insert(ProgramCause::User, version);
        let first = self.geometry.first_unit(page);
        let sources = self.inflight.sources_mut(tag);
        for (i, unit) in units.iter().enumerate() {
            sources[i] = unit.source;
            self.media.write(Ppa(first.0 + i as u32), unit.lpn, version, unit.content);
        }
        self.stats.user_units += units.len() as u64;
        self.submit_program(now, page, tag, units.len() as u32);
    }

    /// Starts the program of a page that holds `units` units, padding the rest.
    #[inline]
    pub(crate) fn submit_program(&mut self, now: Time, page: Ppn, tag: u32, units: u32) {
        let first = self.geometry.first_unit(page).0;
        for unit in units..self.geometry.units_per_page() {
            self.media.pad(Ppa(first + unit));
            self.stats.padded_units += 1;
        }
        // The whole page is transferred: padding too.
        let bytes = self.geometry.page_bytes();
        self.flash.submit(now, Operation { kind: Kind::Program(page), bytes, tag });
    }

    /// The next operation to end at or before `now`, with what the caller must know of it.
    #[inline]
    pub fn next_ended(&mut self, now: Time) -> Option<(Outcome, Ended)> {
        if self.gate.open_at.is_some()
            && let Some(outcome) = self.next_through_gate(now)
        {
            let Operation { kind: Kind::Program(page), tag, .. } = outcome.operation else {
                unreachable!("only programs wait at the gate")
            };
            self.unstick(outcome.die);
            return Some((outcome, self.end_data_program(&outcome, page, tag)));
        }
        let outcome = self.flash.next_outcome(now)?;
        self.unstick(outcome.die);
        let Operation { kind, tag, .. } = outcome.operation;
        let ended = match kind {
            Kind::HostRead(_) => Ended::HostRead(tag),
            Kind::Read(page) => {
                self.stats.gc_reads += 1;
                self.stage_copies(page, outcome.die);
                Ended::Internal
            }
            Kind::Program(page) => {
                self.count_program(page, tag, outcome.failed);
                match self.inflight.cause(tag) {
                    ProgramCause::Map | ProgramCause::GcMap => {
                        self.end_map_write(outcome.die, page, tag, outcome.failed);
                        self.look_at_journal(outcome.time);
                        Ended::Internal
                    }
                    ProgramCause::Journal => {
                        self.end_journal_write(page, tag, outcome.failed);
                        self.look_at_journal(outcome.time);
                        Ended::Internal
                    }
                    _ if self.pass_gate(&outcome) => self.end_data_program(&outcome, page, tag),
                    _ => Ended::Internal,
                }
            }
            Kind::Erase(block) => {
                self.end_erase(block, outcome.failed);
                Ended::Internal
            }
        };
        Some((outcome, ended))
    }

    /// Nothing of `page` can be read: its program failed, or was torn, or it holds nothing of the cells'
    /// own. Its owners still can if that is to be `believed`, a planted slip.
    pub(crate) fn make_unreadable(&mut self, page: Ppn, believed: bool) {
        let first = self.geometry.first_unit(page).0;
        for unit in (first..first + self.geometry.units_per_page()).map(Ppa) {
            if believed {
                self.media.spoil(unit);
            } else {
                self.media.pad(unit);
            }
        }
    }

    /// Counts a program that has ended. If it failed, its block is written no more.
    #[inline]
    pub(crate) fn count_program(&mut self, page: Ppn, tag: u32, failed: bool) {
        if failed {
            self.stats.program_failures += 1;
            if matches!(self.inflight.cause(tag), ProgramCause::User | ProgramCause::Gc) {
                self.blocks.fail(self.geometry.block_of_page(page));
                self.make_unreadable(page, is_planted(Canary::FailedProgramBelieved));
            }
        }
        let stats = &mut self.stats;
        *match self.inflight.cause(tag) {
            ProgramCause::User => &mut stats.user_programs,
            ProgramCause::Gc => &mut stats.gc_programs,
            ProgramCause::Map | ProgramCause::Journal => &mut stats.map_programs,
            ProgramCause::GcMap => &mut stats.gc_map_programs,
        } += 1;
    }

    /// A program of data has ended, and may change the map.
    #[inline]
    fn end_data_program(&mut self, outcome: &Outcome, page: Ppn, tag: u32) -> Ended {
        let failed = outcome.failed;
        if self.inflight.cause(tag) == ProgramCause::User {
            return Ended::UserProgram { page, tag, failed };
        }
        self.end_copies(outcome.time, outcome.die, page, tag, failed);
        Ended::Internal
    }

    /// The source of unit `unit` of a program; `None` for padding.
    #[inline]
    pub fn source(&self, tag: u32, unit: u32) -> Option<u32> {
        let source = self.inflight.source(tag, unit);
        (source != NOTHING).then_some(source)
    }

    /// Lets go of a program that has ended, once its units have been committed or not.
    #[inline]
    pub fn end_program(&mut self, now: Time, page: Ppn, tag: u32) {
        self.inflight.remove(tag);
        if self.store.trims_only() {
            self.wake_writers(); // what is written of a trim may have waited for this program
        }
        let block = self.geometry.block_of_page(page);
        if self.blocks.page_ended(block) {
            self.index.insert(block, self.blocks.valid(block), self.zombies.in_block(block), now);
        }
    }

    /// Forgets `lpn`. Its mapping page may be dirty ([`Ftl::may_trim`]).
    pub fn trim(&mut self, now: Time, lpn: Lpn) {
        let Some(old) = self.map.unmap(lpn) else { return };
        self.invalidate(now, old);
        self.zombies.arrived(lpn, 1, None);
        self.replace_zombie(lpn, self.geometry.block_of(old), None);
        if is_planted(Canary::TrimNotSaved) {
            return;
        }
        self.note_trim(self.map.page_of(lpn));
        self.log_change(lpn, None);
    }

    /// An entry of `page` that was trimmed must stay unmapped, whatever flash holds of it.
    pub fn note_trim(&mut self, page: MapPage) {
        if self.store.trims_only() {
            self.trim_versions[page.index()] = self.next_version;
        }
        let was_dirty = self.store.is_dirty(page);
        if self.store.trimmed(page) {
            self.queue_writeback(page);
        }
        if !was_dirty {
            self.moves.dirtied(page);
        }
    }

    #[inline]
    pub(crate) fn invalidate(&mut self, now: Time, unit: Ppa) {
        self.validity.clear(unit);
        let block = self.geometry.block_of(unit);
        self.blocks.remove_valid(block);
        self.index.lost_unit(block, now);
        self.unstick(self.geometry.die_of(block));
    }

    pub(crate) fn end_erase(&mut self, block: BlockId, failed: bool) {
        self.stats.erases += 1;
        if failed {
            self.stats.erase_failures += 1;
            self.blocks.retire(block);
            return;
        }
        self.media.erase(&self.geometry, block);
        self.blocks.erased(block);
        let worn = |erases| self.endurance_cycles != 0 && erases >= self.endurance_cycles;
        if self.blocks.erases(block).is_some_and(worn) {
            self.blocks.wear_out(block);
        }
    }
}

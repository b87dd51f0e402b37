//! The medium: flash at work, and everything that lies on it.
//!
//! The medium alone keeps the drive's state over a power cut. A page is stored when its program
//! begins and spoiled if the program fails or is torn, so that reads return the content of a real
//! page once nothing is in flight. A page is not read before its program has ended.
//!
//! Beside the pages stands the *system area*, as drives keep one in a few blocks of their own: of each
//! block what it is used for, how often it was erased, whether it is bad, and which dump was used up
//! last. It is never lost, and reading and writing it takes no time here.
//!
//! **Invariants**: pages of a block are programmed in order, once between two erases. A block whose
//! erase was broken off is *poisoned*: nothing in it can be read, nor what is programmed there before it has
//! been erased again. A program in a block in which another has failed, in a worn one or in a bad one succeeds and
//! stores nothing that can be read. Only a dump goes on in a block in which one of its programs has failed.

mod block;
mod lay;
mod occasions;
mod saved;

use std::collections::BTreeMap;

use leyden_sim::{BitSet, Ratio, Rng, Span, Time};

use crate::cells::Cells;
use crate::{
    Activity, BlockId, BlockUse, Config, Content, DieId, Flash, Geometry, Health, Interrupted,
    Kind, Lpn, MetaPage, Occasion, Operation, Outcome, PageKind, Ppa, Ppn,
};
use block::Block;
use occasions::Occasions;
pub use saved::MediumState;

/// Which parts of pages are stored that only recovery reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Keeps {
    /// The content of the drive's own pages: its power may be cut.
    pub meta: bool,
    /// The versions of units: recovery may have to find the newest of them.
    pub versions: bool,
}

/// The flash and its contents. `C` is the content of a mapping unit.
#[derive(Clone, Debug)]
pub struct Medium<C> {
    geometry: Geometry,
    flash: Flash,
    keeps: Keeps,
    seed: u64,
    cells: Cells<C>,
    /// The drive's own pages.
    pages: BTreeMap<Ppn, MetaPage>,
    blocks: Vec<Block>,
    /// Blocks that spoil what is programmed into them: looked at for each program, so in a few bytes.
    spoiling: BitSet,
    bad_blocks: u64,
    /// The last dump that was used up.
    used_dump: u64,
    occasions: Occasions,
    /// Erases after which a block is worn; 0 for never.
    endurance_cycles: u32,
}

impl<C: Content> Medium<C> {
    /// Erased flash of `geometry`, which `config` yielded, but for blocks bad from the factory.
    pub fn new(config: &Config, geometry: Geometry, seed: u64, keeps: Keeps) -> Self {
        let mut rng = Rng::new(seed, "ftl.factory_bad_blocks");
        let share = config.faults.factory_bad_blocks;
        let is_bad = |rng: &mut Rng| share > Ratio::ZERO && rng.chance(share);
        let block = |rng: &mut Rng| Block {
            written_pages: 0,
            erases: 0,
            used_for: None,
            health: if is_bad(rng) { Health::Bad } else { Health::Good },
            is_poisoned: false,
        };
        let blocks: Vec<_> = (0..geometry.blocks()).map(|_| block(&mut rng)).collect();
        let mut medium = Self {
            geometry,
            flash: Flash::new(config, geometry, seed),
            keeps,
            seed,
            cells: Cells::new(&geometry, keeps.versions),
            pages: BTreeMap::new(),
            bad_blocks: 0,
            spoiling: BitSet::new(geometry.blocks()),
            blocks,
            used_dump: 0,
            occasions: Occasions::new(&config.faults.occasions),
            endurance_cycles: config.endurance_cycles,
        };
        medium.note_all_blocks();
        medium
    }

    /// `block` has changed.
    fn note(&mut self, block: BlockId) {
        let spoils = self.blocks[block.index()].spoils(self.endurance_cycles);
        self.spoiling.set(block.0, spoils);
    }

    fn note_all_blocks(&mut self) {
        (0..self.geometry.blocks()).map(BlockId).for_each(|block| self.note(block));
        let bad = self.blocks.iter().filter(|block| block.health == Health::Bad);
        self.bad_blocks = bad.count() as u64;
    }

    /// The flash's shape.
    #[inline]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// The seed of everything random about this drive.
    pub const fn seed(&self) -> u64 {
        self.seed
    }
    /// The parts of pages that are kept.
    pub const fn keeps(&self) -> Keeps {
        self.keeps
    }
    /// See [`Flash::set_untimed`].
    pub fn set_untimed(&mut self, untimed: bool) {
        self.flash.set_untimed(untimed);
    }
    /// See [`Flash::activity`].
    pub fn activity(&self) -> impl Iterator<Item = Activity> + '_ {
        self.flash.activity()
    }
    /// True if no operation is in progress.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.flash.is_idle()
    }
    /// See [`Flash::next_time`].
    #[inline]
    pub fn next_time(&self) -> Time {
        self.flash.next_time()
    }
    /// True if `die` would accept an operation other than a host read.
    #[inline]
    pub fn accepts(&self, die: DieId) -> bool {
        self.flash.accepts(die)
    }
    /// Time each die has been busy with operations that have ended.
    pub fn die_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.flash.die_busy()
    }
    /// Time each channel has been busy with transfers that have begun.
    pub fn channel_busy(&self) -> impl Iterator<Item = Span> + '_ {
        self.flash.channel_busy()
    }
    /// Array time of a page read, and the time to transfer `units` of its mapping units.
    pub fn read_times(&self, units: u32) -> (Span, Span) {
        self.flash.read_times(units)
    }
    /// How long an erase takes.
    pub const fn erase_time(&self) -> Span {
        self.flash.erase_time()
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        let pages: usize =
            self.pages.values().map(|page| size_of_val(page) + page.bytes.len()).sum();
        self.cells.memory_bytes() + (size_of_val(self.blocks.as_slice()) + pages) as u64
    }

    /// Whose data the unit holds; `None` if it is none of the host's.
    #[inline]
    pub fn lpn(&self, unit: Ppa) -> Option<Lpn> {
        self.cells.lpn(unit)
    }
    /// Brings near whose data the unit holds, and units after it.
    #[inline]
    pub fn expect_lpn(&self, unit: Ppa) {
        self.cells.expect_lpn(unit);
    }
    /// The version of the unit's data; 0 if versions are not kept.
    #[inline]
    pub fn version(&self, unit: Ppa) -> u64 {
        self.cells.version(unit)
    }
    /// True if versions are kept.
    pub fn has_versions(&self) -> bool {
        self.cells.has_versions()
    }
    /// The unit's data.
    #[inline]
    pub fn content(&self, unit: Ppa) -> C {
        self.cells.content(unit)
    }
    /// The contents of all units programmed since their block's erase, readable or not. Costs a pass over these.
    pub fn contents(&self) -> impl Iterator<Item = &C> {
        let units_per_page = self.geometry.units_per_page();
        (0..self.geometry.blocks()).map(BlockId).flat_map(move |block| {
            let written = self.written_pages(block) * units_per_page;
            self.cells.contents(self.geometry.first_unit_of_block(block), written)
        })
    }
    /// The drive's own data in `page`, if it can be read.
    pub fn meta_page(&self, page: Ppn) -> Option<&MetaPage> {
        self.pages.get(&page)
    }
    /// The pages of `block` that hold something of the drive's own and can be read, in order.
    pub fn meta_pages(&self, block: BlockId) -> impl Iterator<Item = (Ppn, &MetaPage)> {
        let first = self.geometry.page(block, 0);
        let end = Ppn(first.0 + self.geometry.pages_per_block());
        self.pages.range(first..end).map(|(&place, page)| (place, page))
    }

    /// Pages of `block` programmed since its last erase.
    #[inline]
    pub fn written_pages(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].written_pages
    }
    /// The next page of `block` to program; `None` if it is full.
    #[inline]
    pub fn next_page(&self, block: BlockId) -> Option<Ppn> {
        let written = self.written_pages(block);
        (written < self.geometry.pages_per_block()).then(|| self.geometry.page(block, written))
    }
    /// The use of `block`; `None` if it is erased.
    pub fn used_for(&self, block: BlockId) -> Option<BlockUse> {
        self.blocks[block.index()].used_for
    }
    /// Whether `block` can be used.
    pub fn health(&self, block: BlockId) -> Health {
        self.blocks[block.index()].health
    }
    /// True if the erase of `block` was broken off.
    pub fn is_poisoned(&self, block: BlockId) -> bool {
        self.blocks[block.index()].is_poisoned
    }
    /// True if what is programmed into `block` cannot be read.
    #[inline]
    fn spoils(&self, block: BlockId) -> bool {
        let spoils = self.spoiling.contains(block.0);
        debug_assert_eq!(spoils, self.blocks[block.index()].spoils(self.endurance_cycles));
        spoils
    }
    /// True if nothing can be read of `page` once it is programmed: its block is not as it was made.
    pub fn spoils_page(&self, page: Ppn) -> bool {
        self.spoils(self.geometry.block_of_page(page))
    }
    /// Erases of `block`.
    pub fn erases(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erases
    }
    /// Blocks that are never used again.
    pub const fn bad_blocks(&self) -> u64 {
        self.bad_blocks
    }
    /// The last dump that was used up: older ones and itself are not wanted any more.
    pub const fn used_dump(&self) -> u64 {
        self.used_dump
    }
    /// Notes that `dump` is not wanted any more.
    pub fn use_up_dump(&mut self, dump: u64) {
        self.used_dump = self.used_dump.max(dump);
    }
    /// Operations that are named to fail, and have not come yet.
    pub fn occasions_to_come(&self) -> impl Iterator<Item = &Occasion> {
        self.occasions.to_come()
    }
    /// Never uses `block` again.
    pub fn retire(&mut self, block: BlockId) {
        let health = &mut self.blocks[block.index()].health;
        self.bad_blocks += u64::from(*health != Health::Bad);
        *health = Health::Bad;
        self.note(block);
    }

    /// Starts a read of `units` units of `page`, for the host or for the drive's own purposes.
    #[inline]
    pub fn read(&mut self, now: Time, page: Ppn, units: u32, for_host: bool, tag: u32) {
        let kind = if for_host { Kind::HostRead(page) } else { Kind::Read(page) };
        self.flash.submit(now, Operation { kind, units, tag });
    }

    /// Stores in `to` what `from` holds, with its version. Returns whose data it is; `None` if it is none of the host's.
    #[inline]
    pub fn copy_unit(&mut self, from: Ppa, to: Ppa) -> Option<Lpn> {
        self.cells.copy(from, to)
    }
    /// Stores units of one version, from `first` on, in the page that is programmed next ([`Medium::program`]).
    #[inline]
    pub fn write_units(
        &mut self,
        first: Ppa,
        version: u64,
        units: impl ExactSizeIterator<Item = (Lpn, C)>,
    ) {
        self.cells.write(first, version, units);
    }

    /// Starts the program of `page`, whose first `units` units are stored, for `used_for`; the rest is
    /// padding. The whole page is transferred.
    ///
    /// # Panics
    /// If its die does not accept it. In debug builds, if it is not the next page of its block.
    #[inline]
    pub fn program(&mut self, now: Time, page: Ppn, units: u32, used_for: BlockUse, tag: u32) {
        let first = self.geometry.first_unit(page).0;
        for unit in first + units..first + self.geometry.units_per_page() {
            self.cells.pad(Ppa(unit));
        }
        self.append(page, used_for);
        self.occasions.start(Kind::Program(page), used_for.kind);
        let units = self.geometry.units_per_page();
        self.flash.submit(now, Operation { kind: Kind::Program(page), units, tag });
    }

    /// Starts the program of a page of the drive's own.
    ///
    /// # Panics
    /// As [`Medium::program`].
    pub fn program_meta(&mut self, now: Time, page: Ppn, meta: MetaPage, tag: u32) {
        let used_for = BlockUse { kind: meta.kind, stream: 0 };
        self.pages.insert(page, self.kept(meta));
        self.program(now, page, 0, used_for, tag);
    }

    /// Programs a page of a dump, which the caller times: its units are stored, `units` of them.
    pub fn program_dump(&mut self, page: Ppn, units: u32, meta: MetaPage) {
        self.program_untimed(page, units, BlockUse { kind: PageKind::Dump, stream: 0 });
        self.pages.insert(page, self.kept(meta));
        let block = self.geometry.block_of_page(page);
        if self.blocks[block.index()].is_unfit(self.endurance_cycles) {
            self.make_unreadable(page);
        }
    }

    /// A program of a dump fails: nothing of `page` can be read, and its block is failing.
    pub fn fail_dump(&mut self, page: Ppn) {
        self.append(page, BlockUse { kind: PageKind::Dump, stream: 0 });
        self.program_failed(page);
    }

    /// Programs a page of data while the power fails, which the caller times: its first `units` units are
    /// stored, the rest is padding.
    pub fn program_untimed(&mut self, page: Ppn, units: u32, used_for: BlockUse) {
        let first = self.geometry.first_unit(page).0;
        for unit in first + units..first + self.geometry.units_per_page() {
            self.cells.pad(Ppa(unit));
        }
        self.append(page, used_for);
        let block = self.geometry.block_of_page(page);
        if used_for.kind != PageKind::Dump && self.spoils(block) {
            self.make_unreadable(page);
        }
    }

    fn kept(&self, meta: MetaPage) -> MetaPage {
        if self.keeps.meta { meta } else { MetaPage { bytes: Box::default(), ..meta } }
    }

    #[inline]
    fn append(&mut self, page: Ppn, used_for: BlockUse) {
        let block = self.geometry.block_of_page(page);
        debug_assert_eq!(self.next_page(block), Some(page), "programmed out of order");
        let block = &mut self.blocks[block.index()];
        block.written_pages += 1;
        if block.written_pages == 1 {
            block.used_for = Some(used_for);
        }
    }

    /// Starts the erase of `block`.
    pub fn erase(&mut self, now: Time, block: BlockId) {
        self.occasions.start(Kind::Erase(block), PageKind::Data);
        self.flash.submit(now, Operation { kind: Kind::Erase(block), units: 0, tag: 0 });
    }

    /// Erases a block while the drive recovers, when nothing else is under way: the caller knows how
    /// long it takes ([`Medium::erase_time`]). True if it failed.
    pub fn erase_now(&mut self, block: BlockId) -> bool {
        let failed = self.flash.erase_now();
        self.erase_ended(block, failed);
        failed
    }

    /// The next operation to end at or before `now`. Its die is free again when this returns.
    // Always inlined: in a program with several kinds of drive the compiler would not, and each event passes here.
    #[inline(always)]
    pub fn next_outcome(&mut self, now: Time) -> Option<Outcome> {
        let mut outcome = self.flash.next_outcome(now)?;
        outcome.failed |= self.occasions.ended(outcome.operation.kind);
        match outcome.operation.kind {
            Kind::Program(page) if outcome.failed => self.program_failed(page),
            Kind::Program(page) if self.spoils(self.geometry.block_of_page(page)) => {
                self.make_unreadable(page);
            }
            Kind::Erase(block) => self.erase_ended(block, outcome.failed),
            _ => {}
        }
        Some(outcome)
    }

    #[cold]
    #[inline(never)]
    fn program_failed(&mut self, page: Ppn) {
        let block = self.geometry.block_of_page(page);
        self.blocks[block.index()].health = Health::Failing;
        self.make_unreadable(page);
        self.note(block);
    }

    #[inline(never)]
    fn erase_ended(&mut self, block: BlockId, failed: bool) {
        if failed {
            self.retire(block);
            return;
        }
        self.clear(block);
        let erased = &mut self.blocks[block.index()];
        *erased = Block { erases: erased.erases + 1, is_poisoned: false, ..*erased };
        (erased.written_pages, erased.used_for) = (0, None);
        self.note(block);
    }

    fn clear(&mut self, block: BlockId) {
        self.cells.erase(&self.geometry, block);
        let of_block: Vec<_> = self.meta_pages(block).map(|(place, _)| place).collect();
        for place in of_block {
            self.pages.remove(&place);
        }
    }

    /// Nothing of `page` can be read: its program failed, or was torn.
    #[cold]
    #[inline(never)]
    fn make_unreadable(&mut self, page: Ppn) {
        self.pages.remove(&page);
        let first = self.geometry.first_unit(page).0;
        for unit in (first..first + self.geometry.units_per_page()).map(Ppa) {
            self.cells.pad(unit);
        }
    }

    /// Operations in flight: see [`Flash::on_the_way`].
    pub fn on_the_way(&self) -> impl Iterator<Item = Interrupted> {
        self.flash.on_the_way()
    }

    /// The power fails at `now`. Of `on_the_way` the caller says what still got to its end: programs
    /// that did not are torn, and erases leave a poisoned block.
    pub fn cut_power(&mut self, now: Time, on_the_way: &[(Interrupted, bool)]) {
        for (interrupted, ended) in on_the_way {
            match interrupted.operation.kind {
                Kind::Program(page) if !ended => {
                    self.make_unreadable(page);
                }
                Kind::Program(page) if self.spoils_page(page) => self.make_unreadable(page),
                Kind::Erase(block) => {
                    self.clear(block);
                    let half_erased = &mut self.blocks[block.index()];
                    half_erased.is_poisoned = true;
                    self.note(block);
                }
                _ => {}
            }
        }
        self.flash.cut_power(now);
        self.occasions.cut();
    }
}

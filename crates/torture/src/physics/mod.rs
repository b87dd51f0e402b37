//! The physics of a power cut, worked out apart from the drive: the data that can be saved.
//!
//! **What lives here**: the energy of the bank ([`bank`]), how far a dump gets with it ([`dump`]), and what the way back
//! takes ([`recovery`]). A run compares what a drive says that it lost with that, page by page ([`Physics::check`]). **What doesn't**:
//! any arithmetic of `leyden_power`; of that crate only the configuration is read. What is to be dumped and
//! in which order, and what dies were doing, is looked up in the drive at the moment of the cut; that the
//! drive leaves nothing out is for the oracle to find.
//!
//! **Invariants**: times are nanoseconds since the cut and energies picojoules, both exact.

mod bank;
mod dump;
mod recovery;

use leyden_device::{Config, DumpPageHolds, DumpPageView, Payload, PowerLoss, Ssd, ZnsSsd};
use leyden_nand::{BlockId, Geometry, Interrupted, Kind, Medium, PageKind};
use leyden_power::DumpConfig;
use leyden_sim::{Ratio, Time};

use crate::coverage::{Hits, Point};
use dump::{Bank, Fate, Plan};
pub(crate) use recovery::{Blocks, WayBack};

/// A drive's constants.
#[derive(Clone, Debug)]
pub(crate) struct Physics {
    /// `None` if the bank is as large as the drive asks for: then nothing may be lost.
    energy_pj: Option<u128>,
    base_mw: u128,
    transfer_ns: u128,
    program_ns: u128,
    dump_program_ns: u128,
    program_pj: u128,
    dump_pj: u128,
    reset_ns: u128,
    channels: usize,
    is_in_place: bool,
    bits_per_cell: u32,
    may_lose: bool,
    units_per_page: usize,
    failure_share: Ratio,
    failures_most: u32,
    pub(crate) way_back: WayBack,
}

/// The losses and the cost that a cut must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Units of promised data that are not saved, in order.
    pub(crate) lost: Vec<u32>,
    /// Ranges of units whose entries are not saved.
    pub(crate) uncertain: Vec<(u32, u32)>,
    lost_map_pages: u64,
    lost_roots: u64,
    pages: u64,
    failed: u64,
    time_ns: u128,
    used_pj: u128,
    torn_pages: u64,
    /// Pages without room on any die: no physics asks for that. Mapping pages of a drive that may lack energy
    /// are left out: one that had to scan has more dirty ones than it keeps room for.
    unplaced: usize,
    /// The drive recovers, or can only be read: nothing changes.
    pub(crate) is_quiet: bool,
    /// Programs in flight that end, as far as the energy reaches.
    pub(crate) ended_programs: u64,
    has: Has,
}

/// A dump that is about to begin.
struct Begun {
    bank: Bank,
    plan: Plan,
    torn_pages: u64,
    /// Programs in flight that still end.
    ended: u64,
}

/// The kinds of pages to dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Has {
    roots: usize,
    units: usize,
    map: usize,
    journal: usize,
    large_table: bool,
}

impl Has {
    fn of(pages: &[DumpPageView], units: u32) -> Self {
        let count =
            |is: fn(&DumpPageHolds) -> bool| pages.iter().filter(|page| is(&page.holds)).count();
        let widest = pages.iter().filter_map(|page| match page.holds {
            DumpPageHolds::Map(first, end) => Some(end.0 - first.0),
            _ => None,
        });
        Self {
            roots: count(|page| matches!(page, DumpPageHolds::Root)),
            units: count(|page| matches!(page, DumpPageHolds::Units(_))),
            map: count(|page| matches!(page, DumpPageHolds::Map(..))),
            journal: count(|page| matches!(page, DumpPageHolds::Journal)),
            large_table: widest.max().is_some_and(|entries| units / entries > 256),
        }
    }
}

impl Physics {
    /// Those of the drive that `config` describes; `None` if its power is never cut.
    pub(crate) fn new(config: &Config) -> Option<Self> {
        let power = config.power.as_ref()?;
        let nand = &config.nand;
        let geometry = nand.geometry(config.ftl.mapping_unit).ok()?;
        let page_bytes = u128::from(geometry.page_bytes());
        let transfer_ns = (page_bytes * 1_000_000_000).div_ceil(nand.channel_rate.get().into());
        let program_ns = u128::from(nand.program.as_ns());
        let dump_program_ns = match &power.dump {
            DumpConfig::BalancedSlc(slc) => slc.program.as_ns().into(),
            DumpConfig::Balanced(_) | DumpConfig::InPlace(_) => program_ns,
        };
        let planes = u128::from(if nand.multi_plane { nand.planes_per_die } else { 1 });
        let plane_mw = u128::from(power.program_power.as_mw());
        // A milliwatt for a nanosecond is a picojoule.
        let energy = |program_ns| plane_mw * (transfer_ns + program_ns) * planes;
        Some(Self {
            energy_pj: bank::energy_pj(&power.bank),
            base_mw: power.base_power.as_mw().into(),
            transfer_ns,
            program_ns,
            dump_program_ns,
            program_pj: energy(program_ns),
            dump_pj: energy(dump_program_ns),
            reset_ns: power.reset.as_ns().into(),
            channels: geometry.channels() as usize,
            is_in_place: matches!(power.dump, DumpConfig::InPlace(_)),
            bits_per_cell: match &power.dump {
                DumpConfig::BalancedSlc(slc) => slc.bits_per_cell,
                DumpConfig::Balanced(_) | DumpConfig::InPlace(_) => 1,
            },
            may_lose: power.allow_underprovisioned,
            units_per_page: geometry.units_per_page() as usize,
            failure_share: nand.faults.program_failures,
            failures_most: power.failed_programs,
            way_back: WayBack::new(config, geometry, transfer_ns)?,
        })
    }

    /// The losses that a cut of `drive` at `now` must have. `None` without a power table.
    ///
    /// # Errors
    /// If what the drive means to dump wastes its energy.
    pub(crate) fn expect<P: Payload>(
        &self,
        now: Time,
        drive: &Ssd<P>,
    ) -> Result<Option<Expected>, String> {
        let (ended, run) =
            self.settle_all(now, drive.medium().on_the_way().collect(), drive.geometry());
        let Some((pages, room)) = drive.dump_view(&|op| ended.contains(op)) else {
            return Ok(None);
        };
        self.check_pages(&pages)?;
        let (mut expected, left) = self.run(now, run, &pages, &room);
        for page in left {
            expected.lose(&pages[page].holds, drive.mapping_units());
        }
        expected.lost.sort_unstable();
        expected.has = Has::of(&pages, drive.mapping_units());
        Ok(Some(expected))
    }

    /// The same of a zoned drive: with a page of a zone what lies above it in the zone is lost, and with the zone
    /// table where everything lies.
    ///
    /// # Errors
    /// If what the drive means to dump wastes its energy.
    pub(crate) fn expect_zoned<P: Payload>(
        &self,
        now: Time,
        drive: &ZnsSsd<P>,
    ) -> Result<Option<Expected>, String> {
        let (_, run) =
            self.settle_all(now, drive.medium().on_the_way().collect(), drive.geometry());
        let Some((pages, room)) = drive.dump_view() else { return Ok(None) };
        check_once(&pages)?;
        let (mut expected, left) = self.run(now, run, &pages, &room);
        let units = drive.zone_shape().zones * drive.zone_shape().size;
        for page in left {
            expected.lose(&pages[page].holds, units);
        }
        expected.lost_map_pages += expected.lost_roots;
        expected.lose_above(&pages, drive.zone_shape().size);
        expected.has = Has::of(&pages, units);
        Ok(Some(expected))
    }

    /// Settles the operations in flight at the cut: those that still end, and the bank and the dies
    /// after them.
    fn settle_all(
        &self,
        now: Time,
        mut on_the_way: Vec<Interrupted>,
        geometry: &Geometry,
    ) -> (Vec<Interrupted>, Begun) {
        let mut begun = Begun {
            bank: Bank::new(self.energy_pj, self.base_mw),
            plan: Plan::new(geometry.dies() as usize, self.channels),
            torn_pages: 0,
            ended: 0,
        };
        on_the_way.sort_by_key(|op| (op.end.unwrap_or(Time::MAX), op.die));
        let mut ended = Vec::new();
        for op in &on_the_way {
            if self.settle(now, op, &mut begun.bank, &mut begun.plan) {
                ended.push(*op);
            } else {
                begun.torn_pages += 1;
            }
        }
        begun.ended = ended.len() as u64;
        (ended, begun)
    }

    /// How far the dump of `pages` gets, and the pages that it does not reach.
    fn run(
        &self,
        now: Time,
        begun: Begun,
        pages: &[DumpPageView],
        room: &[u32],
    ) -> (Expected, Vec<usize>) {
        let Begun { mut bank, mut plan, torn_pages, ended } = begun;
        let homes = pages.iter().map(|page| page.home.0 as usize);
        let unplaced = plan.place(homes, room, self.is_in_place);
        let fate = Fate::new(self.failure_share, self.failures_most, now);
        let ran = plan.run(&mut bank, fate, self.transfer_ns, self.dump_program_ns, self.dump_pj);
        let expected = Expected {
            pages: ran.programs,
            failed: ran.failed.into(),
            time_ns: bank.latest_end_ns,
            used_pj: bank.used_pj(),
            torn_pages,
            unplaced: unplaced.iter().filter(|&&page| !self.may_lack_room(&pages[page])).count(),
            ended_programs: ended,
            ..Expected::default()
        };
        (expected, unplaced.into_iter().chain(ran.left).collect())
    }

    /// True if what is on its way at the cut still ends; notes the die and channel that it holds.
    fn settle(&self, now: Time, op: &Interrupted, bank: &mut Bank, plan: &mut Plan) -> bool {
        let Some(end) = op.end else { return false };
        let die = op.die.index();
        if let Kind::Program(_) = op.operation.kind {
            let rest_ns = u128::from(end.as_ns().saturating_sub(now.as_ns()));
            if rest_ns == 0 || bank.start(rest_ns, self.program_pj) {
                // The units still to be transferred hold the channel.
                plan.hold(die, rest_ns, rest_ns.saturating_sub(self.program_ns));
                return true;
            }
        }
        plan.hold(die, self.reset_ns, 0);
        false
    }

    fn may_lack_room(&self, page: &DumpPageView) -> bool {
        self.may_lose && matches!(page.holds, DumpPageHolds::Map(..))
    }

    /// Blocks of a dump hold no more pages than their cells do with so few bits.
    pub(crate) fn check_cells<P: Payload>(&self, medium: &Medium<P>) -> Result<(), String> {
        let geometry = medium.geometry();
        let most = geometry.pages_per_block() / self.bits_per_cell;
        let is_overfull = |&block: &BlockId| {
            let kind = medium.used_for(block).map(|used_for| used_for.kind);
            kind == Some(PageKind::Dump) && medium.written_pages(block) > most
        };
        match (0..geometry.blocks()).map(BlockId).find(is_overfull) {
            Some(block) => Err(format!(
                "block {} holds {} pages of a dump, and has room for {most} with one bit per cell",
                block.0,
                medium.written_pages(block)
            )),
            None => Ok(()),
        }
    }

    /// Pages of a dump that each die keeps room for.
    pub(crate) fn pages_of<P: Payload>(&self, drive: &Ssd<P>) -> u32 {
        let of_block = drive.geometry().pages_per_block() / self.bits_per_cell;
        drive.dump_blocks_needed() * of_block
    }

    const fn dump_ns(&self) -> u128 {
        self.transfer_ns + self.dump_program_ns
    }

    /// Compares the drive's report of a cut with physics; yields the differences.
    pub(crate) fn check(&self, expected: &Expected, said: &PowerLoss) -> Result<(), String> {
        if expected.unplaced > 0 {
            let pages = expected.unplaced;
            return Err(format!("{pages} pages of the dump have no room on any die"));
        }
        let mut lost: Vec<u32> = said.lost.iter().map(|lpn| lpn.0).collect();
        lost.sort_unstable();
        if lost != expected.lost {
            return Err(format!(
                "the drive says that it lost units {lost:?}, and its energy does not reach for {:?}",
                expected.lost
            ));
        }
        let ranges = said.uncertain.iter().map(|&(first, end)| (first.0, end.0));
        let (said_ranges, true_ranges) =
            (merged(ranges), merged(expected.uncertain.iter().copied()));
        if said_ranges != true_ranges {
            return Err(format!(
                "the drive says that it does not know where units {said_ranges:?} lie, and its energy does \
                 not reach for the entries of {true_ranges:?}"
            ));
        }
        let cost = &said.cost;
        let numbers = [
            ("pages programmed", cost.pages.into(), expected.pages.into()),
            ("programs of the dump failed", cost.failed_programs.into(), expected.failed.into()),
            ("ns until the last program has ended", cost.time.as_ns().into(), expected.time_ns),
            ("pJ drawn", cost.energy.as_pj().into(), expected.used_pj),
            ("torn pages", said.torn_pages.into(), expected.torn_pages.into()),
            ("table pages lost", said.lost_map_pages.into(), expected.lost_map_pages.into()),
        ];
        let left_pj = self.energy_pj.map(|energy| energy - expected.used_pj);
        let left = left_pj.map(|left| ("pJ left", u128::from(said.energy_left.as_pj()), left));
        match numbers.into_iter().chain(left).find(|(_, said, is)| said != is) {
            Some((what, said, is)) => Err(format!("the drive says {said} {what}, and it is {is}")),
            None => Ok(()),
        }
    }

    /// A dump that writes a unit twice, or more pages than its units fill, spends energy that others need.
    pub(crate) fn check_pages(&self, pages: &[DumpPageView]) -> Result<(), String> {
        let mut by_home = std::collections::BTreeMap::<u32, (usize, usize)>::new();
        for page in pages {
            if let DumpPageHolds::Units(of_page) = &page.holds {
                let (count, sum) = by_home.entry(page.home.0).or_default();
                *count += 1;
                *sum += of_page.len();
            }
        }
        check_once(pages)?;
        let is_wasteful = |&(_, &(pages, units)): &(&u32, &(usize, usize))| {
            pages > units.div_ceil(self.units_per_page)
        };
        match by_home.iter().find(is_wasteful) {
            Some((_, (pages, units))) => {
                Err(format!("the dump spreads {units} units over {pages} pages"))
            }
            None => Ok(()),
        }
    }
}

/// A dump that writes a unit twice spends energy that others need.
fn check_once(pages: &[DumpPageView]) -> Result<(), String> {
    let of_page = |page: &DumpPageView| match &page.holds {
        DumpPageHolds::Units(units) => units.iter().map(|lpn| lpn.0).collect(),
        _ => Vec::new(),
    };
    let mut units: Vec<u32> = pages.iter().flat_map(of_page).collect();
    units.sort_unstable();
    match units.array_windows().find(|[one, next]| one == next) {
        Some([twice, _]) => Err(format!("the dump holds unit {twice} twice")),
        None => Ok(()),
    }
}

impl Expected {
    /// Of each zone of `size` units that lost some, what the dump holds above them is lost, too.
    fn lose_above(&mut self, pages: &[DumpPageView], size: u32) {
        let mut holes = std::collections::BTreeMap::<u32, u32>::new();
        for &unit in &self.lost {
            let first = holes.entry(unit / size).or_insert(unit);
            *first = unit.min(*first);
        }
        let units = pages.iter().flat_map(|page| match &page.holds {
            DumpPageHolds::Units(units) => units.as_slice(),
            _ => &[],
        });
        let is_lost = |unit: &u32| holes.get(&(unit / size)).is_some_and(|first| unit >= first);
        self.lost = units.map(|lpn| lpn.0).filter(is_lost).collect();
        self.lost.sort_unstable();
    }

    /// That nothing changes: of a drive that recovers, or can only be read.
    pub(crate) fn nothing() -> Self {
        Self { is_quiet: true, ..Self::default() }
    }

    /// Notes the pages to dump, and the losses.
    pub(crate) fn note(&self, hits: &mut Hits, physics: &Physics) {
        let (has, two_programs) = (self.has, 2 * physics.dump_pj);
        let left = physics.energy_pj.map(|energy| energy - self.used_pj);
        let is_tight =
            left.is_some_and(|left| left < two_programs + physics.base_mw * physics.dump_ns());
        for (is_hit, point) in [
            (has.units > 0, Point::DumpUnits),
            (has.map > 0, Point::DumpMap),
            (has.journal > 0, Point::DumpJournal),
            (has.roots > 1, Point::DumpLargeRoot),
            (has.large_table, Point::DumpLargeTable),
            (is_tight, Point::DumpTight),
            (self.failed > 0, Point::DumpFailed),
            (!self.lost.is_empty(), Point::LossUnits),
            (self.lost_map_pages > 0 && has.map > 0, Point::LossMap),
            (self.lost_map_pages > 0 && has.journal > 0, Point::LossJournal),
            (self.lost_roots > 0, Point::LossRoot),
        ] {
            hits.hit_if(is_hit, point);
        }
    }

    fn lose(&mut self, page: &DumpPageHolds, units: u32) {
        match page {
            DumpPageHolds::Units(lpns) => self.lost.extend(lpns.iter().map(|lpn| lpn.0)),
            DumpPageHolds::Map(first, end) => {
                self.lost_map_pages += 1;
                self.uncertain.push((first.0, end.0));
            }
            DumpPageHolds::Journal => {
                self.lost_map_pages += 1;
                self.uncertain.push((0, units));
            }
            // Without it the missing mapping pages are unknown.
            DumpPageHolds::Root => {
                self.lost_roots += 1;
                self.uncertain.push((0, units));
            }
        }
    }
}

/// The same units in as few ranges as possible, in order.
fn merged(ranges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = ranges.collect();
    all.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, end) in all {
        match merged.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(end),
            _ => merged.push((first, end)),
        }
    }
    merged
}

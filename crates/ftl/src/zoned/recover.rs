//! The saved state of a zoned drive after a power cut, and its recovery: the zone table from the
//! dump, and the zones' data.

use leyden_nand::{BlockId, Content, DieId, Health, Lpn, PageKind, Ppa, Ppn};

use super::body::{Body, Set};
use super::ftl::{DATA, ZonedFtl};
use super::root::{self, ZoneRoot};
use super::zones::Zone;
use super::{ZoneId, ZoneState};
use crate::dump_area::{DumpPage, units_of};
use crate::recovery::{Reads, Step, StepName};

/// The outcome of a recovery.
#[derive(Clone, Debug)]
pub struct RecoveredZones<C> {
    /// In the order they were taken.
    pub steps: Vec<Step>,
    /// Units of the dump, to be put back into the buffer.
    pub units: Vec<RecoveredUnit<C>>,
    /// The zone table was lost, and found again by a scan.
    pub is_scanned: bool,
}

/// A unit of the host's data that was dumped.
#[derive(Clone, Debug)]
pub struct RecoveredUnit<C> {
    /// Its zone.
    pub zone: ZoneId,
    /// Counted from the zone's beginning. At or above the write pointer, it was in the zone's Zone Random
    /// Write Area.
    pub unit: u32,
    /// Its content.
    pub content: C,
}

impl<C: Content> ZonedFtl<C> {
    /// Blocks that a dump can have on `die`.
    pub fn dump_blocks(&self, die: DieId) -> u32 {
        self.blocks.kept(die)
    }

    /// Begins a dump. The one before must have been used up.
    pub fn begin_dump(&mut self) {
        self.dumps.begin();
    }

    /// Programs a page of the dump on `die`. Returns its place; `None` if there is no room.
    pub fn dump_page(
        &mut self,
        die: DieId,
        pages_per_block: u32,
        page: DumpPage<C>,
    ) -> Option<Ppn> {
        let place =
            self.dumps.write(die, pages_per_block, page, &mut self.medium, &mut self.blocks)?;
        self.stats.programs.dump += 1;
        Some(place)
    }

    /// A program of the dump fails on `die`. Its block is used on for this dump, and never again.
    pub fn fail_dump_page(&mut self, die: DieId, pages_per_block: u32) {
        self.dumps.fail(die, pages_per_block, &mut self.medium, &mut self.blocks);
        self.stats.programs.dump += 1;
        self.stats.program_failures += 1;
    }

    /// While the power fails, programs the next page of `zone` itself, which the caller times.
    pub fn program_home(
        &mut self,
        zone: ZoneId,
        first: u32,
        units: impl ExactSizeIterator<Item = C>,
    ) {
        let count = units.len() as u32;
        let (_, page) = self.store(zone, first, units);
        self.medium.program_untimed(page, count, DATA);
        self.stats.programs.dump += 1;
    }

    /// The dies that the next `pages` pages of `zone` go to, as far as it has blocks for them.
    pub fn next_dies(&self, zone: ZoneId, pages: u32) -> Vec<DieId> {
        let geometry = self.geometry();
        let set = self.bodies[zone.index()].open_set();
        let die = |set: &Set, page| geometry.die_of_page(set.page(page, geometry));
        set.map(|set| {
            let end = set.pages.min(set.next + pages);
            (set.next..end).map(|page| die(set, page)).collect()
        })
        .unwrap_or_default()
    }

    /// Forgets where the units of `zone` from `unit` on lie: they are not needed there.
    pub fn truncate(&mut self, zone: ZoneId, unit: u32) {
        self.bodies[zone.index()].truncate(unit);
    }

    /// The drive is ready: what the dump held is where it belongs, and its blocks will be erased.
    pub fn finish_recovery(&mut self) {
        self.dumps.skip(); // a power cut tells data before it from data after it, even if it dumped nothing
        self.dumps.use_up(&mut self.medium);
    }

    /// Erases the blocks of dumps before the last one, which are obsolete. A die that still has no room for a dump erases
    /// other blocks too: a power cut has broken off their erase, of an older dump perhaps.
    pub fn erase_old_dumps(&mut self) {
        let mut old = Vec::new();
        self.dumps.erase_old(|block| old.push(block));
        for block in old {
            if self.is_failing(block) {
                self.medium.retire(block);
                continue;
            }
            self.erase_now(block);
        }
        for die in (0..self.geometry().dies()).map(DieId) {
            while self.dump_blocks(die) < self.durability.blocks_per_dump()
                && let Some(block) = self.blocks.take_to_erase(die)
            {
                if self.is_failing(block) {
                    self.medium.retire(block);
                } else {
                    self.erase_now(block);
                }
            }
        }
    }

    fn erase_now(&mut self, block: BlockId) {
        let failed = self.medium.erase_now(block);
        self.erase_ended(block, failed);
    }

    /// The root of a dump, as `pages` pages; `settled` says of each zone how much of it flash holds.
    pub fn dump_root(&self, settled: impl Fn(ZoneId) -> u32, pages: u32) -> Vec<DumpPage<C>> {
        let zone =
            |(id, zone): (ZoneId, &Zone)| ZoneRoot::of(zone, &self.bodies[id.index()], settled(id));
        let zones: Vec<_> = self.zones.all().map(zone).collect();
        root::encode(&zones, pages).into_iter().map(DumpPage::Root).collect()
    }

    /// Builds the state from what flash holds. Changes nothing on flash.
    pub fn recover(&mut self) -> RecoveredZones<C> {
        let mut steps = vec![self.find_checkpoint()];
        let (table, dumped) = self.read_dump(&mut steps);
        let is_scanned = table.is_none();
        let zones = match table {
            Some(zones) => self.load(zones, &mut steps),
            None => self.scan(&mut steps),
        };
        self.tell_blocks();
        let mut units = Vec::new();
        for (id, root) in (0..).map(ZoneId).zip(zones) {
            self.settle_zone(id, root, &dumped, &mut units);
        }
        if !units.is_empty() {
            // All that was dumped, needed or not: which of it is, its zones tell.
            let mut reads = Reads::none(&self.medium);
            reads.add_dumped(&self.dumps, &self.medium, PageKind::Dump);
            let per_page = self.geometry().units_per_page();
            steps.push(reads.step(StepName::PutBack, &self.medium, per_page));
        }
        steps.extend(self.erase_old_step());
        self.stats.reads.recovery += steps.iter().map(|step| step.pages).sum::<u64>();
        RecoveredZones { steps, units, is_scanned }
    }

    /// The time to erase the blocks of older dumps, and others that a die erases to make room for the next dump.
    fn erase_old_step(&self) -> Option<Step> {
        let blocks = |die| {
            // One in which a program failed is retired without an erase, and leaves room to be made.
            let old = self.dumps.old_blocks(die).filter(|&it| !self.is_failing(it)).count() as u32;
            let needed = self.durability.blocks_per_dump();
            let missing = needed.saturating_sub(self.dump_blocks(die) + old);
            let garbage = self.blocks.to_erase(die).filter(|&block| !self.is_failing(block));
            u64::from(old) + garbage.take(missing as usize).count() as u64
        };
        let dies = (0..self.medium.geometry().dies()).map(DieId);
        let blocks = dies.map(blocks).max().unwrap_or(0);
        let time = self.medium.erase_time().saturating_mul(blocks);
        (blocks > 0).then_some(Step { name: StepName::EraseOldDumps, pages: 0, time })
    }

    fn is_failing(&self, block: BlockId) -> bool {
        self.medium.health(block) == Health::Failing
    }

    /// One page of each block of the dump area tells whether there is a dump.
    fn find_checkpoint(&self) -> Step {
        let mut reads = Reads::none(&self.medium);
        for block in self.dumps.blocks() {
            reads.add(self.geometry().die_of(block), 1);
        }
        reads.step(StepName::FindCheckpoint, &self.medium, 0)
    }

    /// The contents of the last dump: the zone table, unless it was not written whole, and units of
    /// the host's.
    fn read_dump(&self, steps: &mut Vec<Step>) -> (Option<Vec<ZoneRoot>>, Vec<(Lpn, C)>) {
        let pages = self.dumps.pages(&self.medium);
        let roots = pages.iter().filter(|(_, page)| page.kind == PageKind::Root);
        let mut reads = Reads::none(&self.medium);
        reads.add_dumped(&self.dumps, &self.medium, PageKind::Root);
        steps.push(reads.step(StepName::LoadMap, &self.medium, self.geometry().units_per_page()));
        let roots: Vec<&[u8]> = roots.map(|(_, page)| &*page.bytes).collect();
        let zones = root::decode(&roots).filter(|zones| zones.len() == self.bodies.len());
        let of_host = pages.iter().filter(|(_, page)| page.kind == PageKind::Dump);
        let units = of_host.flat_map(|&(place, _)| units_of(&self.medium, place)).collect();
        (zones, units)
    }

    /// Takes over the zone table, and finds the pages that were programmed since it was written.
    fn load(&mut self, mut zones: Vec<ZoneRoot>, steps: &mut Vec<Step>) -> Vec<ZoneRoot> {
        let mut reads = Reads::none(&self.medium);
        for (id, root) in (0..).map(ZoneId).zip(&mut zones) {
            let mut body = Body::with_sets(std::mem::take(&mut root.sets), root.order);
            let listed = body.sets.last().map_or(0, |set| set.next);
            if let Some(set) = body.sets.last_mut() {
                self.find_next_page(set);
                body.order += set.next - listed;
                if set.next == set.pages {
                    // Blocks that a cut has left unbegun are free.
                    drop(set.close(self.medium.geometry()));
                }
            }
            if root.is_irregular {
                body.sets.iter().for_each(|set| self.count_reads(set, 0, &mut reads));
                self.find_extents(id, &mut body, root.settled);
            } else {
                body.sets
                    .last()
                    .into_iter()
                    .for_each(|set| self.count_reads(set, listed, &mut reads));
                if root.settled > 0 {
                    body.place(0, root.settled, (0, 0), self.geometry().units_per_page());
                }
            }
            self.find_new_pages(id, &mut body, listed, &mut root.settled);
            self.bodies[id.index()] = body;
        }
        steps.push(reads.step(StepName::OpenBlocks, &self.medium, 0));
        zones
    }

    /// Where an open set goes on, by the pages written in its blocks. If they do not go on side by side, the
    /// set is closed.
    fn find_next_page(&self, set: &mut Set) {
        let written = |lane: u32| {
            let blocks = set.blocks.iter().skip(lane as usize).step_by(set.lanes as usize);
            blocks.flatten().map(|&block| self.medium.written_pages(block)).sum::<u32>()
        };
        let rows: Vec<u32> = (0..set.lanes).map(written).collect();
        let end = |(lane, &rows): (usize, &u32)| {
            if rows == 0 { 0 } else { (rows - 1) * set.lanes + lane as u32 + 1 }
        };
        let next = rows.iter().enumerate().map(end).max().unwrap_or(0).max(set.next);
        let is_even = (0..set.lanes).all(|lane| set.rows(lane, next) == rows[lane as usize]);
        set.next = next;
        if !is_even {
            set.pages = set.next;
        }
    }

    fn count_reads(&self, set: &Set, from: u32, reads: &mut Reads) {
        for page in from..set.next {
            reads.add(self.geometry().die_of_page(set.page(page, self.geometry())), 1);
        }
    }

    /// Finds by the out-of-band areas where the first `settled` units of an irregular zone lie. Of two
    /// copies the one that was programmed later is right: by their versions, where a scan may have found the
    /// sets in another order, and else by their places.
    fn find_extents(&self, zone: ZoneId, body: &mut Body, settled: u32) {
        let mut runs = Vec::new();
        for (index, set) in (0..).zip(&body.sets) {
            for page in 0..set.next {
                if let Some((first, units)) = self.owner(zone, set, page)
                    && first < settled
                {
                    let place = self.geometry().first_unit(set.page(page, self.geometry()));
                    runs.push((self.medium.version(place), first, units, (index, page)));
                }
            }
        }
        runs.sort_by_key(|&(version, ..)| version);
        let mut newest: Vec<Option<(u32, (u32, u32))>> = vec![None; settled as usize];
        for (_, first, units, place) in runs {
            newest[first as usize] = Some((units, place));
            for unit in first + 1..(first + units).min(settled) {
                newest[unit as usize] = None;
            }
        }
        let per_page = self.geometry().units_per_page();
        for (first, found) in (0..).zip(newest) {
            if let Some((units, place)) = found
                && first == body.end()
            {
                body.place(first, units.min(settled - first), place, per_page);
            }
        }
    }

    /// The first unit of `zone` that a page of its set holds, and how many follow it there.
    pub(super) fn owner(&self, zone: ZoneId, set: &Set, page: u32) -> Option<(u32, u32)> {
        let first = self.geometry().first_unit(set.page(page, self.geometry()));
        let units = (first.0..first.0 + self.geometry().units_per_page()).map(Ppa);
        let count = units.filter(|&unit| self.medium.lpn(unit).is_some()).count() as u32;
        let base = zone.0 * self.shape.size;
        let unit = self.medium.lpn(first)?.0.checked_sub(base)?;
        (unit < self.shape.capacity).then_some((unit, count))
    }

    /// Pages that were programmed in place while the power failed, from page `listed` of the last
    /// set on, continue the zone. Pages before may be ones that an earlier cut has given up.
    fn find_new_pages(&self, zone: ZoneId, body: &mut Body, listed: u32, settled: &mut u32) {
        let Some(at) = body.sets.len().checked_sub(1) else { return };
        let per_page = self.geometry().units_per_page();
        let (from, end) = (listed, body.sets[at].next);
        for page in from..end {
            if let Some((first, units)) = self.owner(zone, &body.sets[at], page)
                && first == *settled
                && first == body.end()
            {
                body.place(first, units, (at as u32, page), per_page);
                *settled += units;
            }
        }
    }

    /// The zone's state, its write pointer at the end of what was kept, and what of the dump continues it.
    fn settle_zone(
        &mut self,
        id: ZoneId,
        root: ZoneRoot,
        dumped: &[(Lpn, C)],
        units: &mut Vec<RecoveredUnit<C>>,
    ) {
        let base = id.0 * self.shape.size;
        let mut of_zone: Vec<(u32, &C)> = dumped
            .iter()
            .filter_map(|(lpn, content)| Some((lpn.0.checked_sub(base)?, content)))
            .filter(|&(unit, _)| unit < self.shape.capacity)
            .collect();
        of_zone.sort_by_key(|&(unit, _)| unit);
        let mut kept = root.settled;
        let mut put_back = |unit, content: &C| {
            units.push(RecoveredUnit { zone: id, unit, content: content.clone() });
        };
        for &(unit, content) in &of_zone {
            if unit == kept && unit < root.wp {
                kept += 1;
                put_back(unit, content);
            } else if root.has_zrwa && kept == root.wp && unit >= root.wp {
                put_back(unit, content);
            }
        }
        let in_zrwa =
            root.has_zrwa && kept == root.wp && of_zone.iter().any(|&(unit, _)| unit >= root.wp);
        let is_used = kept > 0 || root.extension.is_some() || in_zrwa;
        let state = root.state.after_power_loss(is_used);
        // The write pointer of a full zone tells nothing; what is lost of it reads as zeroes.
        let wp = if state == ZoneState::Full { root.wp } else { kept };
        let mut zone = self.zones.get(id).clone();
        zone.state = state;
        (zone.wp, zone.generation) = (wp, root.generation);
        (zone.has_zrwa, zone.is_changed) = (root.has_zrwa, root.is_changed);
        zone.extension = root.extension;
        self.zones.restore(id, zone);
        if state.takes_no_more() && kept == root.settled {
            self.close_body(id);
        }
        if state == ZoneState::Empty {
            self.drop_data(id);
        }
    }

    /// Which blocks zones have, and which nobody has: those hold what was reset before.
    fn tell_blocks(&mut self) {
        let mut is_owned = vec![false; self.geometry().blocks() as usize];
        for block in self.bodies.iter().flat_map(Body::blocks) {
            is_owned[block.index()] = true;
        }
        // Blocks that a set has not begun are erased, and were taken for free.
        self.blocks.retain(|block| !is_owned[block.index()]);
        let known: Vec<BlockId> = self.blocks.all().collect();
        for block in known {
            is_owned[block.index()] = true;
        }
        for block in std::mem::take(&mut self.found) {
            if !is_owned[block.index()] {
                self.blocks.erase_later(self.geometry().die_of(block), block);
            }
        }
        let geometry = *self.medium.geometry();
        for set in self.bodies.iter().filter_map(Body::open_set) {
            self.blocks.opened_set(set.lane_dies(&geometry));
        }
    }
}

//! The zone table from a scan of the out-of-band areas: where the dump does not hold it.

use leyden_nand::{BlockId, Content, Ppa};

use super::body::{Body, Set};
use super::ftl::ZonedFtl;
use super::root::ZoneRoot;
use super::version::Version;
use super::{ZoneId, ZoneState};
use crate::recovery::{Reads, Step, StepName};

/// A page that holds data of a zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct FoundPage {
    zone: u32,
    version: Version,
    first: u32,
    units: u32,
    block: BlockId,
    page: u32,
}

/// Leaves out what an earlier power cut has given up: pages that lie above the first that was programmed after
/// it. `pages` are of one zone, in the order they were programmed.
fn without_given_up<'a>(pages: &[&'a FoundPage]) -> Vec<&'a FoundPage> {
    let mut end = u32::MAX; // of what is older than the epoch that is looked at
    let mut kept = Vec::with_capacity(pages.len());
    for epoch in pages.chunk_by(|a, b| a.version.epoch() == b.version.epoch()).rev() {
        kept.extend(epoch.iter().filter(|page| page.first < end));
        end = epoch.iter().map(|page| page.first).fold(end, u32::min);
    }
    kept.sort_unstable();
    kept
}

impl<C: Content> ZonedFtl<C> {
    /// Finds what each zone holds, of its newest generation. What the host did not write, like a Finish, and
    /// a Reset of a zone that was not written after it, is forgotten.
    pub(super) fn scan(&mut self, steps: &mut Vec<Step>) -> Vec<ZoneRoot> {
        let mut reads = Reads::none(&self.medium);
        let mut pages = Vec::new();
        for &block in &self.found {
            let written = self.medium.written_pages(block);
            reads.add(self.geometry().die_of(block), u64::from(written));
            pages.extend((0..written).filter_map(|page| self.found_page(block, page)));
        }
        steps.push(reads.step(StepName::RollForward, &self.medium, 0));
        pages.sort_unstable();
        let mut zones = Vec::with_capacity(self.bodies.len());
        let mut active = 0;
        let mut rest = &pages[..];
        for id in (0..self.bodies.len() as u32).map(ZoneId) {
            let count = rest.iter().take_while(|page| page.zone == id.0).count();
            let (of_zone, behind) = rest.split_at(count);
            rest = behind;
            zones.push(self.scanned_zone(id, of_zone, &mut active));
        }
        zones
    }

    fn found_page(&self, block: BlockId, page: u32) -> Option<FoundPage> {
        let place = self.geometry().first_unit(self.geometry().page(block, page));
        let lpn = self.medium.lpn(place)?.0;
        let units = (place.0..place.0 + self.geometry().units_per_page()).map(Ppa);
        let units = units.filter(|&unit| self.medium.lpn(unit).is_some()).count() as u32;
        let (zone, first) = (lpn / self.shape.size, lpn % self.shape.size);
        let version = Version(self.medium.version(place));
        Some(FoundPage { zone, version, first, units, block, page })
    }

    /// The state of a zone according to `pages`. They are in the order they were programmed.
    fn scanned_zone(&mut self, id: ZoneId, pages: &[FoundPage], active: &mut u32) -> ZoneRoot {
        let generation = pages.last().map_or(0, |page| page.version.generation());
        let newest: Vec<&FoundPage> =
            pages.iter().filter(|page| page.version.generation() == generation).collect();
        let newest = without_given_up(&newest);
        let mut body = Body::default();
        let mut at: Vec<Option<(u32, (u32, u32))>> = vec![None; self.shape.capacity as usize];
        for page in newest {
            let known = body.sets.iter().position(|set| set.blocks[0] == Some(page.block));
            let set = known.unwrap_or_else(|| {
                let mut set = Set::new(1, vec![page.block], self.geometry());
                set.next = self.medium.written_pages(page.block);
                set.pages = set.next; // the next data goes to new blocks
                body.sets.push(set);
                body.sets.len() - 1
            });
            at[page.first as usize] = Some((page.units, (set as u32, page.page)));
            for unit in page.first + 1..(page.first + page.units).min(self.shape.capacity) {
                at[unit as usize] = None;
            }
        }
        let per_page = self.geometry().units_per_page();
        for (first, found) in (0..).zip(at) {
            if let Some((units, place)) = found
                && first == body.end()
            {
                body.place(first, units, place, per_page);
            }
        }
        let settled = body.end();
        body.order = pages.last().map_or(0, |page| page.version.order() + 1);
        self.bodies[id.index()] = body;
        let state = match settled {
            0 => ZoneState::Empty,
            all if all == self.shape.capacity => ZoneState::Full,
            _ if *active < self.shape.max_active => ZoneState::Closed,
            // It was finished once, or there would be more active zones than there may be.
            _ => ZoneState::Full,
        };
        *active += u32::from(state.is_active());
        ZoneRoot {
            state,
            has_zrwa: false,
            is_changed: state == ZoneState::Full && settled < self.shape.capacity,
            is_irregular: true,
            wp: settled,
            settled,
            generation,
            order: 0,
            extension: None,
            sets: Vec::new(),
        }
    }
}

//! Asks the FTL whether it still believes itself.

use leyden_nand::{BlockId, Content, DieId, Lpn};
use thiserror::Error;

use super::blocks::BlockState;
use super::ftl::Ftl;
use crate::map::MapPage;

/// A broken invariant: a bug of ours, or a corrupt snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl<C: Content> Ftl<C> {
    /// Checks every invariant that ties the structures together, and that every page programmed is
    /// accounted for by cause. Costs a pass over the whole drive.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_map()?;
        self.check_journal()?;
        self.check_blocks()?;
        self.check_zombies()?;
        self.check_collections()?;
        self.check_conservation()
    }

    /// Every entry points to a valid unit that says it is this page's.
    fn check_map(&self) -> Result<(), Violation> {
        let end = Lpn(self.map.len());
        let mut next = Lpn(0);
        let mut mapped = 0;
        while let Some(lpn) = self.map.next_mapped(next, end) {
            let unit = self.map.get(lpn).filter(|unit| unit.0 < self.geometry.units());
            let Some(unit) = unit else {
                return Err(Violation(format!("{lpn:?} points beyond the flash")));
            };
            if !self.validity.get(unit) {
                return Err(Violation(format!("{lpn:?} points to {unit:?}, which is not valid")));
            }
            if self.media.lpn(unit) != Some(lpn) {
                let owner = self.media.lpn(unit);
                return Err(Violation(format!("{lpn:?} points to {unit:?} of {owner:?}")));
            }
            mapped += 1;
            next = Lpn(lpn.0 + 1);
        }
        if mapped != self.map.mapped() {
            return Err(Violation(format!("{mapped} pages mapped, {} counted", self.map.mapped())));
        }
        Ok(())
    }

    /// Counts are those of the bits; the index holds the closed blocks and no others.
    fn check_blocks(&self) -> Result<(), Violation> {
        let mut valid_total = 0;
        for block in (0..self.geometry.blocks()).map(BlockId) {
            let valid = self.validity.count(&self.geometry, block);
            let counted = self.blocks.valid(block);
            if valid != counted {
                let problem = format!("{block:?} has {valid} valid units and counts {counted}");
                return Err(Violation(problem));
            }
            let state = self.blocks.state(block);
            if self.index.contains(block) != (state == BlockState::Closed) {
                return Err(Violation(format!("{block:?} is {state:?}, and the index disagrees")));
            }
            if valid > 0 && matches!(state, BlockState::Free | BlockState::Bad) {
                return Err(Violation(format!("{block:?} is {state:?} and has valid units")));
            }
            valid_total += u64::from(valid);
        }
        let of_map = self.check_map_pages()? * u64::from(self.geometry.units_per_page());
        if valid_total != self.map.mapped() + of_map {
            let mapped = self.map.mapped();
            return Err(Violation(format!(
                "{valid_total} units valid, {mapped} mapped and {of_map} of mapping pages"
            )));
        }
        Ok(())
    }

    /// Each zombie is mapped, and counted where it lies.
    fn check_zombies(&self) -> Result<(), Violation> {
        if !self.zombies.are_kept() {
            return Ok(());
        }
        let mut in_block = vec![0_u32; self.geometry.blocks() as usize];
        for lpn in (0..self.map.len()).map(Lpn).filter(|&lpn| self.zombies.contains(lpn)) {
            let Some(unit) = self.map.get(lpn) else {
                return Err(Violation(format!("{lpn:?} is a zombie and holds nothing")));
            };
            in_block[self.geometry.block_of(unit).index()] += 1;
        }
        let total: u64 = in_block.iter().copied().map(u64::from).sum();
        if total != self.zombies.units() {
            return Err(Violation(format!("{total} zombies, {} counted", self.zombies.units())));
        }
        let (counted, found) = (self.zombies.expected_units(), self.zombies.count_expected());
        if counted != found {
            return Err(Violation(format!("{found} units are announced, {counted} counted")));
        }
        for (block, &zombies) in (0..).map(BlockId).zip(&in_block) {
            let (counted, ranked) = (self.zombies.in_block(block), self.index.zombies(block));
            if counted != zombies || ranked.is_some_and(|ranked| ranked != zombies) {
                return Err(Violation(format!(
                    "{block:?} has {zombies} zombies, counts {counted}, and is ranked for {ranked:?}"
                )));
            }
        }
        Ok(())
    }

    /// Every mapping page on flash lies in a block for such, and says which it is. Counts them.
    fn check_map_pages(&self) -> Result<u64, Violation> {
        let mut count = 0;
        for page in (0..self.map.pages()).map(MapPage) {
            let Some(place) = self.store.place(page) else { continue };
            let state = self.blocks.state(self.geometry.block_of_page(place));
            let owner = self.media.map_page(self.geometry.first_unit(place));
            if state != BlockState::Map || owner != Some(page.0) {
                return Err(Violation(format!(
                    "{page:?} lies in {place:?} of {owner:?}, in a block that is {state:?}"
                )));
            }
            count += 1;
        }
        if !self.store.is_within_limit(self.geometry.dies()) {
            let (dirty, limit) = (self.store.dirty(), self.store.limit());
            return Err(Violation(format!("{dirty} mapping pages are dirty, of {limit} allowed")));
        }
        Ok(count)
    }

    /// What is valid in the blocks that wait to be erased has been read, and waits to be programmed:
    /// else they would wait for ever.
    fn check_collections(&self) -> Result<(), Violation> {
        if !self.inflight.is_empty() {
            return Ok(()); // some copies are on their way
        }
        for die in (0..self.geometry.dies()).map(DieId) {
            let (valid, staged) = self.waiting_units(die);
            if valid > staged {
                let problem =
                    format!("{valid} units of {die:?} are to be copied, {staged} will be");
                return Err(Violation(problem));
            }
        }
        Ok(())
    }

    /// Every unit of every programmed page is user data, a copy, or padding.
    fn check_conservation(&self) -> Result<(), Violation> {
        if !self.inflight.is_empty() {
            return Ok(()); // counted where programs end; the sums are exact when none is under way
        }
        let stats = &self.stats;
        let programmed =
            (stats.user_programs + stats.gc_programs) * u64::from(self.geometry.units_per_page());
        let accounted = stats.user_units + stats.gc_units + stats.padded_units;
        if programmed != accounted {
            return Err(Violation(format!(
                "{programmed} units programmed, {accounted} accounted for"
            )));
        }
        Ok(())
    }
}

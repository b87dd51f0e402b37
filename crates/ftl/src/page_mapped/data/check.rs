//! Asks the data room whether it still believes itself.

use leyden_nand::{BlockId, Content, Geometry, Lpn, Medium};

use super::{BlockState, Data};
use crate::page_mapped::Violation;

impl Data {
    /// Checks every invariant that ties the room's structures together. Costs a pass over the whole drive.
    pub(crate) fn check<C: Content>(&self, medium: &Medium<C>) -> Result<(), Violation> {
        self.check_map(medium)?;
        self.check_blocks(medium.geometry())?;
        self.check_zombies(medium.geometry())
    }

    /// Every entry points to a valid unit that says it is this page's.
    fn check_map<C: Content>(&self, medium: &Medium<C>) -> Result<(), Violation> {
        let geometry = medium.geometry();
        let end = Lpn(self.map.len());
        let mut next = Lpn(0);
        let mut mapped = 0;
        while let Some(lpn) = self.map.next_mapped(next, end) {
            let unit = self.map.get(lpn).filter(|unit| unit.0 < geometry.units());
            let Some(unit) = unit else {
                return Err(Violation(format!("{lpn:?} points beyond the flash")));
            };
            if !self.validity.get(unit) {
                return Err(Violation(format!("{lpn:?} points to {unit:?}, which is not valid")));
            }
            if medium.lpn(unit) != Some(lpn) {
                let owner = medium.lpn(unit);
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
    fn check_blocks(&self, geometry: &Geometry) -> Result<(), Violation> {
        let mut valid_total = 0;
        for block in (0..geometry.blocks()).map(BlockId) {
            let valid = self.validity.count(geometry, block);
            let counted = self.valid_in_block(block);
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
        if valid_total != self.map.mapped() {
            let mapped = self.map.mapped();
            return Err(Violation(format!("{valid_total} units valid, {mapped} mapped")));
        }
        Ok(())
    }

    /// Each zombie is mapped, and counted where it lies.
    fn check_zombies(&self, geometry: &Geometry) -> Result<(), Violation> {
        if !self.zombies.are_kept() {
            return Ok(());
        }
        let mut in_block = vec![0_u32; geometry.blocks() as usize];
        for lpn in (0..self.map.len()).map(Lpn).filter(|&lpn| self.zombies.contains(lpn)) {
            let Some(unit) = self.map.get(lpn) else {
                return Err(Violation(format!("{lpn:?} is a zombie and holds nothing")));
            };
            in_block[geometry.block_of(unit).index()] += 1;
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
}

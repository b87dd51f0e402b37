//! Asks the FTL whether it still believes itself.

use leyden_nand::{Content, DieId};
use thiserror::Error;

use super::ftl::Ftl;

/// A broken invariant: a bug of ours, or a corrupt snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Violation(pub String);

impl<C: Content> Ftl<C> {
    /// Checks every invariant that ties the rooms together, and that every page programmed is accounted
    /// for by cause. Costs a pass over the whole drive.
    pub fn check(&self) -> Result<(), Violation> {
        self.data.check(&self.medium)?;
        self.table.check(&self.medium, &self.data).map_err(Violation)?;
        self.check_collections()?;
        self.check_conservation()
    }

    /// What is valid in the blocks that wait to be erased has been read, and waits to be programmed:
    /// else they would wait for ever.
    fn check_collections(&self) -> Result<(), Violation> {
        if !self.programs.is_empty() {
            return Ok(()); // some copies are on their way
        }
        for die in (0..self.geometry().dies()).map(DieId) {
            let (valid, staged) = self.collector.waiting_units(die, &self.data);
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
        if !self.programs.is_empty() {
            return Ok(()); // counted where programs end; the sums are exact when none is under way
        }
        let stats = &self.stats;
        let programmed = (stats.programs.user + stats.programs.gc_user)
            * u64::from(self.geometry().units_per_page());
        let accounted = stats.user_units + stats.gc.copied_units + stats.padded_units;
        if programmed != accounted {
            return Err(Violation(format!(
                "{programmed} units programmed, {accounted} accounted for"
            )));
        }
        Ok(())
    }
}

//! The FTL's state: whether it holds together, saved, loaded and drawn.

use std::borrow::Cow;

use leyden_nand::{Content, DieId, MediumState};
use serde::{Deserialize, Serialize};

use super::collect::CollectorState;
use super::data::Data;
use super::ftl::Ftl;
use super::sampled::{DieShare, NoRoom, Sampling};
use super::table::TableState;
use super::violation::Violation;
use crate::dump_area::DumpArea;

impl<C: Content> Ftl<C> {
    /// Checks every invariant that ties the rooms together, and that every page programmed is accounted
    /// for by cause. Costs a pass over the whole drive.
    pub fn check(&self) -> Result<(), Violation> {
        self.data.check(&self.medium)?;
        self.table.check(&self.medium, &self.data).map_err(Violation)?;
        self.check_collections()?;
        self.check_conservation()
    }

    /// Valid units of blocks that wait to be erased have been read, and wait to be programmed:
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

/// Everything that outlives an idle moment: borrowed to save it, so that a large drive is not copied
/// for that, and owned when loaded. Counters start at zero.
#[derive(Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub struct FtlState<'a, C: Content> {
    data: Cow<'a, Data>,
    table: TableState,
    collector: CollectorState,
    next_version: u64,
    medium: MediumState<'a, C>,
}

impl<C: Content> Ftl<C> {
    /// The state at rest.
    ///
    /// # Panics
    /// If an operation is in progress.
    pub fn state(&self) -> FtlState<'_, C> {
        assert!(self.is_idle() && self.programs.is_empty(), "the flash is at work");
        FtlState {
            data: Cow::Borrowed(&self.data),
            table: self.table.state(),
            collector: self.collector.state(),
            next_version: self.next_version,
            medium: self.medium.state(),
        }
    }

    /// Takes over a state that was saved from a drive of the same configuration. `None` if it is of a
    /// drive of another shape.
    ///
    /// # Errors
    /// If it contradicts itself; this FTL is of no use then.
    pub fn restore(&mut self, state: FtlState<'_, C>) -> Option<Result<(), Violation>> {
        let fits = self.data.fits(&state.data, self.medium.geometry())
            && self.table.fits(&state.table)
            && self.collector.fits(&state.collector);
        if !fits || !self.medium.restore(state.medium) {
            return None;
        }
        // A version for each page that the host has written.
        let units_per_page = u64::from(self.geometry().units_per_page());
        let written_units = state.next_version.saturating_mul(units_per_page);
        self.data.restore(state.data.into_owned(), written_units);
        self.table.restore(state.table);
        self.collector.restore(state.collector);
        self.dumps = DumpArea::new(&self.medium, self.data.blocks().with_dumps());
        self.next_version = state.next_version;
        Some(self.check())
    }

    /// Makes this FTL, which is new, that of a drive in use. `valid` says how many units are valid of each
    /// closed block of a die, in the order in which the blocks were filled; the sum must be as the share
    /// says. What the units store is `C`'s default.
    ///
    /// # Errors
    /// If too many blocks are bad. The FTL is of no use then.
    ///
    /// # Panics
    /// If anything was written, or there is more than one stream; or if `valid` says what cannot be.
    pub fn fill_sampled(&mut self, valid: impl FnMut(&DieShare) -> Vec<u32>) -> Result<(), NoRoom> {
        Sampling { ftl: self }.run(valid)
    }
}

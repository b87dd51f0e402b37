//! The FTL's state at rest, to save and load.

use std::borrow::Cow;

use leyden_nand::{Content, MediumState};
use serde::{Deserialize, Serialize};

use super::check::Violation;
use super::collect::CollectorState;
use super::data::Data;
use super::ftl::Ftl;
use super::table::TableState;

/// Everything that outlives an idle moment: borrowed to save it, so that a large drive is not copied
/// for that, and owned when loaded. Counters start anew.
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
        self.data.restore(state.data.into_owned());
        self.table.restore(state.table);
        self.collector.restore(state.collector);
        self.dumps = crate::dump_area::DumpArea::new(&self.medium, self.data.blocks());
        self.next_version = state.next_version;
        Some(self.check())
    }
}

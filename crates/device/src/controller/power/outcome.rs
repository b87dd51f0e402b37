//! Outcomes of a power cut and of the return of power.

use leyden_ftl::recovery::Step;
use leyden_nand::Lpn;
use leyden_sim::{Bytes, Capacitance, Energy, Span, Time};

/// The cost of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCost {
    /// The host's data that the drive has promised to keep and that is not on flash.
    pub promised: Bytes,
    /// Mapping pages that flash does not hold as they are; or, if the table's changes are logged, pages
    /// of the journal that it does not hold.
    pub map_pages: u64,
    /// Pages that the dump programs, those that fail included.
    pub pages: u64,
    /// Programs of the dump that fail: their pages are programmed again.
    pub failed_programs: u64,
    /// From the cut until the last program has ended.
    pub time: Span,
    /// The energy that dump and controller draw until then, programs that were in flight included.
    pub energy: Energy,
    /// The capacitance that holds this energy.
    pub capacitance: Capacitance,
}

/// The loss at a cut if the bank holds less than it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutLoss {
    /// The host's data that the drive has promised to keep, and that the dump does not reach.
    pub promised: Bytes,
    /// Mapping pages, or pages of their journal, that the dump does not reach: recovery scans all of
    /// flash for entries.
    pub map_pages: u64,
}

/// The dump and the losses of a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerLoss {
    /// When.
    pub time: Time,
    /// The cost of the dump. If data was lost, this is as far as the budget reached.
    pub cost: CutCost,
    /// Energy left in the bank.
    pub energy_left: Energy,
    /// Logical pages that the drive had promised to keep, and that the budget did not reach.
    pub lost: Vec<Lpn>,
    /// Mapping pages, or pages of the mapping table's journal, that the budget did not reach. Recovery
    /// scans all of flash for their entries.
    pub lost_map_pages: u64,
    /// The logical pages whose entries were lost with those, from the first up to, not including, the
    /// second: what recovery finds of them is the newest that flash holds, which may be what was
    /// trimmed, or what an earlier recovery had given up.
    pub uncertain: Vec<(Lpn, Lpn)>,
    /// Programs that the cut has torn: their pages hold nothing.
    pub torn_pages: u64,
    /// The power failed while the drive was recovering, or could only be read: nothing had changed
    /// since the cut before.
    pub during_recovery: bool,
}

/// How a drive came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// When the drive is ready. Commands submitted before wait until then.
    pub ready_at: Time,
    /// How long the dump went on after the power had returned: steps begin after that.
    pub dump: Span,
    /// The steps taken, in order, with their costs.
    pub steps: Vec<Step>,
    /// All of them together.
    pub scan: Span,
    /// Until the bank is charged: the drive promises nothing before. Steps go on meanwhile.
    pub charge: Span,
    /// Pages read.
    pub pages_scanned: u64,
    /// The host's data that was dumped and is back in the buffer, in flash pages.
    pub pages_restored: u64,
    /// Mapping pages whose entries had to be found by scanning all of flash.
    pub scanned_map_pages: u64,
}

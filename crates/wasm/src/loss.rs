//! Outcomes of a power cut and of the return of the power, as answers.

use leyden_device::{PowerLoss, Recovery};
use serde::Serialize;

use crate::ledger::LostUnits;

/// A power cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// Time of it.
    pub time_ns: u64,
    /// True if the drive was recovering, or could be read only: nothing was to be saved.
    pub during_recovery: bool,
    /// Commands in flight that have vanished.
    pub in_flight: u64,
    /// Data of the host that was to be saved, as far as the energy reached.
    pub dumped_bytes: u64,
    /// Pages of the mapping table, or of its journal, that were to be saved.
    pub dumped_map_pages: u64,
    /// Pages programmed.
    pub pages: u64,
    /// Duration of the dump.
    pub dump_ns: u64,
    /// Energy drawn.
    pub energy_nj: u64,
    /// Energy left in the bank.
    pub energy_left_nj: u64,
    /// Programs that the cut has torn.
    pub torn_pages: u64,
    /// Mapping pages that the energy did not reach.
    pub lost_map_pages: u64,
    /// Data that was acknowledged and is gone: what a read after the recovery shows.
    pub lost_acknowledged_bytes: u64,
    /// The part of it that was promised: flushed, forced (FUA), or in a protected buffer.
    pub lost_promised_bytes: u64,
}

impl Cut {
    pub(crate) fn new(loss: &PowerLoss, gone: LostUnits, in_flight: u64, unit_bytes: u64) -> Self {
        Self {
            time_ns: loss.time.as_ns(),
            during_recovery: loss.during_recovery,
            in_flight,
            dumped_bytes: loss.cost.promised.get(),
            dumped_map_pages: loss.cost.map_pages,
            pages: loss.cost.pages,
            dump_ns: loss.cost.time.as_ns(),
            energy_nj: loss.cost.energy.as_nj(),
            energy_left_nj: loss.energy_left.as_nj(),
            torn_pages: loss.torn_pages,
            lost_map_pages: loss.lost_map_pages,
            lost_acknowledged_bytes: gone.acknowledged * unit_bytes,
            lost_promised_bytes: gone.promised * unit_bytes,
        }
    }
}

/// The return of the power.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Restored {
    /// Time of it.
    pub time_ns: u64,
    /// Time from which on the drive takes commands.
    pub ready_ns: u64,
    /// Rest of the dump after the power had returned.
    pub dump_ns: u64,
    /// Duration of the steps of recovery.
    pub scan_ns: u64,
    /// Duration of charging the bank, meanwhile.
    pub charge_ns: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages of the host's data that are back in the buffer.
    pub put_back_pages: u64,
    /// Mapping pages whose entries were found by reading all of flash.
    pub scanned_map_pages: u64,
    /// The steps, in order.
    pub steps: Vec<RecoveryStep>,
}

/// A step of recovery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryStep {
    /// Its name.
    pub name: &'static str,
    /// Its duration.
    pub time_ns: u64,
}

impl Restored {
    pub(crate) fn new(time_ns: u64, recovery: &Recovery) -> Self {
        let step = |it: &leyden_ftl::recovery::Step| RecoveryStep {
            name: it.name.name(),
            time_ns: it.time.as_ns(),
        };
        Self {
            time_ns,
            ready_ns: recovery.ready_at.as_ns(),
            dump_ns: recovery.dump.as_ns(),
            scan_ns: recovery.scan.as_ns(),
            charge_ns: recovery.charge.as_ns(),
            pages_read: recovery.pages_scanned,
            put_back_pages: recovery.pages_restored,
            scanned_map_pages: recovery.scanned_map_pages,
            steps: recovery.steps.iter().map(step).collect(),
        }
    }
}

//! Samples: a drive and its host at one moment. Counters are since the drive was opened.

use leyden_device::{BlockDevice, SECTOR_BYTES, Ssd, Stamp};
use serde::Serialize;

use crate::latencies::Percentiles;

/// Counters of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Reads that succeeded.
    pub reads: u64,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The drive now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Simulated time.
    pub time_ns: u64,
    /// False after a cut, until the power is back.
    pub is_on: bool,
    /// True if the drive takes commands.
    pub is_ready: bool,
    /// True if blocks have gone bad so that the drive can be read only.
    pub is_read_only: bool,
    /// Counters of the host.
    pub counts: Counts,
    /// Commands in flight.
    pub in_flight: u64,
    /// Latencies of reads, writes and flushes that ended since the last sample.
    pub latencies: [Percentiles; 3],
    /// Mapping units that the host's data took on flash.
    pub user_units: u64,
    /// Mapping units that garbage collection copied.
    pub copied_units: u64,
    /// Programs of mapping pages.
    pub map_programs: u64,
    /// The write buffer.
    pub buffer: Buffer,
    /// Dirty pages of the mapping table.
    pub dirty_map_pages: u32,
    /// Dirty pages that there may be.
    pub dirty_map_pages_most: u32,
    /// A cut at this moment; none without `power`, without power, and until recovery has ended.
    pub cut_now: Option<CutNow>,
    /// Fingerprint of everything that the flash did and every command that ended.
    pub digest: String,
}

/// Bytes in each region of the write buffer, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "units stand last in names")]
pub struct Buffer {
    /// Bytes in the protected region.
    pub protected_bytes: u64,
    /// Its size.
    pub protected_size_bytes: u64,
    /// Bytes in the volatile region.
    pub plain_bytes: u64,
    /// Its size.
    pub plain_size_bytes: u64,
}

/// The cost and the loss of a cut at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CutNow {
    /// Energy that saves everything.
    pub energy_nj: u64,
    /// The capacitance that holds this energy.
    pub capacitance_nf: u64,
    /// Duration of the dump.
    pub dump_ns: u64,
    /// Data of the host to save.
    pub promised_bytes: u64,
    /// Pages of the mapping table, or of its journal, to save.
    pub map_pages: u64,
    /// Pages to program.
    pub pages: u64,
    /// Data of the host that this bank would not save.
    pub unsaved_bytes: u64,
}

/// The buffer of a drive.
pub(crate) fn buffer_of(drive: &Ssd<Stamp>) -> Buffer {
    let (fill, size) = (drive.pool_fill(), drive.pool_sizes());
    let bytes = |units: u32| u64::from(units) * u64::from(drive.geometry().unit_bytes());
    Buffer {
        protected_bytes: bytes(fill.protected),
        protected_size_bytes: bytes(size.protected),
        plain_bytes: bytes(fill.plain),
        plain_size_bytes: bytes(size.plain),
    }
}

/// The cost and the loss of a cut of this drive's power.
pub(crate) fn cut_now(drive: &Ssd<Stamp>) -> Option<CutNow> {
    let (cost, supply) = (drive.cut_cost()?, drive.power_supply()?);
    // A second plan only if the first is too expensive.
    let bank = supply.bank.energy();
    let loss = (cost.energy > bank).then(|| drive.cut_loss(bank)).flatten();
    Some(CutNow {
        energy_nj: cost.energy.as_nj(),
        capacitance_nf: cost.capacitance.as_nf(),
        dump_ns: cost.time.as_ns(),
        promised_bytes: cost.promised.get(),
        map_pages: cost.map_pages,
        pages: cost.pages,
        unsaved_bytes: loss.map_or(0, |loss| loss.promised.get()),
    })
}

/// Bytes that the host can address.
pub(crate) fn capacity_bytes(drive: &Ssd<Stamp>) -> u64 {
    drive.capacity_sectors() * SECTOR_BYTES
}

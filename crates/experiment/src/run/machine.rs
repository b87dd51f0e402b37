//! The machine that runs the simulation: its clock and memory, which only `sim.*` of a record
//! speaks of.

use std::time::Instant;

use super::{RunError, in_device};
use crate::scenario::Scenario;

/// The least that a drive needs for each unit of its flash: an entry of the map, and the way back.
const UNIT_BYTES: u64 = 8;
/// What the model of its promises needs for each, if the run cuts the power.
const MODEL_UNIT_BYTES: u64 = 144;

/// Wall time.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "an edge: how long a run took decides nothing in it"
    )]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start; never zero, so that rates are finite.
    pub(super) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Refuses a drive that cannot fit in memory; without, the system would end the process.
pub(super) fn has_room_for(scenario: &Scenario) -> Result<(), RunError> {
    let device = &scenario.device;
    let geometry = device
        .nand
        .geometry(device.ftl.mapping_unit)
        .map_err(|error| in_device(error.within("nand")))?;
    let is_modelled = scenario.run.stamps && !scenario.run.cut.is_empty();
    let unit_bytes = if is_modelled { UNIT_BYTES + MODEL_UNIT_BYTES } else { UNIT_BYTES };
    let bytes = u64::from(geometry.units()) * unit_bytes;
    let mut memory = Vec::<u8>::new();
    let room = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    std::hint::black_box(&memory);
    if room {
        return Ok(());
    }
    let problem = format!(
        "the drive takes more than {} MiB of memory, and there is less; shrink the geometry, \
         raise ftl.mapping_unit{}",
        bytes >> 20,
        if is_modelled { ", or verify nothing (run.stamps = false)" } else { "" }
    );
    Err(RunError::config("device.nand", problem))
}

/// Peak resident memory of this process, MiB; 0 where the system does not tell.
pub(super) fn peak_rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

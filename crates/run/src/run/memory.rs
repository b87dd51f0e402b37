//! Memory that a run takes, reckoned before it begins; and sizes that no machine can hold.

use leyden_config::{DriveKind, Scenario};
use leyden_device::{Config, NoData, Payload, Ssd, Stamp, ZnsSsd};
use leyden_sim::Bytes;

use super::subject::zoned_block;
use super::{RunError, in_device};

/// The least that a drive needs for each unit of its flash: an entry of the map, and the way back.
const UNIT_BYTES: u64 = 8;
/// Bytes for each unit that the model of the drive's promises needs, if the run cuts the power.
const MODEL_UNIT_BYTES: u64 = 144;

/// From here on a run says before what memory it takes.
const MUCH_BYTES: u64 = 1 << 30;

/// Bytes for each unit that verifying reads needs.
const STAMP_BYTES: u64 = 8;
/// Blocks of a plane of the smallest drive that is built to reckon the memory of a large one.
const FEW_BLOCKS: u32 = 32;

/// Refuses a drive that cannot fit in memory; without, the system would end the process.
pub(super) fn has_room_for(scenario: &Scenario) -> Result<(), RunError> {
    let is_modelled = scenario.run.stamps && !scenario.run.cut.is_empty();
    let geometry = scenario.device.geometry().map_err(in_device)?;
    let least = u64::from(geometry.units()) * UNIT_BYTES;
    let bytes = needs_bytes(scenario).max(least);
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

/// Refuses a buffer larger than all of the flash behind it; but the default, which nobody asked for.
pub(super) fn has_sizes_that_fit(scenario: &Scenario) -> Result<(), RunError> {
    let geometry = scenario.device.geometry().map_err(in_device)?;
    let flash = u64::from(geometry.units()) * u64::from(geometry.unit_bytes());
    let buffer = scenario.device.buffer.size;
    if buffer.get() <= flash || buffer == Config::default().buffer.size {
        return Ok(());
    }
    let problem = format!(
        "{buffer} are more than the drive's flash, which is {}; give the buffer less, or device.nand more",
        Bytes::new(flash)
    );
    Err(RunError::config("device.buffer.size", problem))
}

/// A warning to give before a run that takes much memory.
pub(super) fn much_memory(scenario: &Scenario) -> Option<String> {
    let bytes = needs_bytes(scenario);
    (bytes >= MUCH_BYTES)
        .then(|| format!("the run takes up to {} MiB of memory, as the drive fills", bytes >> 20))
}

/// Memory that a run of `scenario` takes, about; 0 if its drives cannot be built, which the run says.
///
/// Two small drives of the same kind are built: the memory of each grows linearly with the blocks of a plane.
pub(super) fn needs_bytes(scenario: &Scenario) -> u64 {
    let own = scenario.device.nand.blocks_per_plane;
    let sample = |blocks: u32| bytes_with(scenario, blocks.min(own));
    let mut few = FEW_BLOCKS;
    while few < own {
        if let (Some(one), Some(two)) = (sample(few), sample(2 * few)) {
            let each = two.saturating_sub(one) / u64::from((2 * few).min(own) - few);
            return one + each * u64::from(own - few);
        }
        few = few.saturating_mul(2); // so small a drive has no room for its spare blocks
    }
    sample(own).unwrap_or(0)
}

/// Memory of a run on drives with so many blocks in a plane; `None` if there can be no such drive.
fn bytes_with(scenario: &Scenario, blocks: u32) -> Option<u64> {
    let mut scenario = scenario.clone();
    let own = std::mem::replace(&mut scenario.device.nand.blocks_per_plane, blocks);
    if let Some(capacity) = &mut scenario.device.ftl.capacity {
        let unit = scenario.device.ftl.mapping_unit.get();
        let part = u128::from(capacity.get()) * u128::from(blocks) / u128::from(own);
        *capacity = Bytes::new(u64::try_from(part).ok()? / unit * unit);
    }
    let (bytes, units) = if scenario.run.stamps {
        memory_bytes::<Stamp>(&scenario)
    } else {
        memory_bytes::<NoData>(&scenario)
    };
    let for_each = match (scenario.run.stamps, scenario.run.cut.is_empty()) {
        (false, _) => 0,
        (true, true) => STAMP_BYTES,
        (true, false) => MODEL_UNIT_BYTES,
    };
    (bytes > 0).then(|| bytes + for_each * u64::from(units))
}

/// Memory of the drives, and the mapping units that a host can address.
fn memory_bytes<P: Payload>(scenario: &Scenario) -> (u64, u32) {
    let (device, seed) = (&scenario.device, scenario.seed);
    match scenario.kind() {
        DriveKind::Conventional => Ssd::<P>::new(device, seed)
            .map_or((0, 0), |ssd| (ssd.memory_bytes(), ssd.mapping_units())),
        DriveKind::Zoned => ZnsSsd::<P>::new(device, seed)
            .map_or((0, 0), |drive| (drive.memory_bytes(), drive.mapping_units())),
        DriveKind::ZonedBlock => zoned_block::memory_bytes::<P>(scenario),
    }
}

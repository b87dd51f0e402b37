//! The part of a record that runs on every kind of drive have.

use leyden_device::{Controller, Geometry, Namespace, Payload};
use leyden_sim::Digest;

use super::facts;
use crate::driver::{Measured, Units};
use leyden_config::Scenario;
use leyden_record::{RECORD_VERSION, RunRecord, Wear};

/// Bars of the wear histogram, at most.
const WEAR_BARS: u64 = 64;

/// A drive, or several that make up one device, as a run left it.
pub(super) struct FinalState {
    /// Of the flash that holds the data.
    pub(super) geometry: Geometry,
    /// A page cache stands before it.
    pub(super) is_cached: bool,
    pub(super) wear: Wear,
    pub(super) fingerprint: u64,
    pub(super) memory_bytes: u64,
    pub(super) mapping_units: u32,
}

impl FinalState {
    /// A single drive, whose blocks were erased so often.
    pub(super) fn drive<P: Payload, N: Namespace<P>>(
        drive: &Controller<P, N>,
        erases: impl Iterator<Item = Option<u32>>,
    ) -> Self {
        Self {
            geometry: *drive.geometry(),
            is_cached: false,
            wear: wear(erases),
            fingerprint: drive.digest().value(),
            memory_bytes: drive.memory_bytes(),
            mapping_units: drive.mapping_units(),
        }
    }
}

/// The record of a run on the drive that is `left`, without the parts that only one kind of drive has and the
/// machine's.
pub(super) fn begin(
    scenario: &Scenario,
    left: FinalState,
    measured: &Measured,
    warnings: Vec<String>,
) -> RunRecord {
    let mut record = RunRecord {
        record_version: RECORD_VERSION,
        leyden_version: env!("CARGO_PKG_VERSION").to_owned(),
        name: scenario.name.clone(),
        seed: scenario.seed,
        config: serde_json::to_value(scenario).unwrap_or_default(),
        inputs: facts::inputs(&scenario.workload),
        wear: left.wear,
        warnings,
        ..RunRecord::default()
    };
    let units = Units {
        page_bytes: u64::from(left.geometry.page_bytes()),
        unit_bytes: u64::from(left.geometry.unit_bytes()),
        block_units: u64::from(left.geometry.units_per_block()),
        is_cached: left.is_cached,
    };
    measured.fill(&units, &mut record);
    let mut digest = Digest::default();
    digest.add(measured.digest.value()).add(left.fingerprint);
    record.sim.digest = digest.to_string();
    record.sim.bytes_per_mapping_unit =
        left.memory_bytes as f64 / f64::from(left.mapping_units.max(1));
    record
}

/// The erases of each good block, as a record shows them.
pub(super) fn wear(erases: impl Iterator<Item = Option<u32>>) -> Wear {
    let mut good: Vec<u64> = erases.flatten().map(u64::from).collect();
    good.sort_unstable();
    let (Some(&min), Some(&max)) = (good.first(), good.last()) else {
        return Wear::default();
    };
    let width = (max - min + 1).div_ceil(WEAR_BARS);
    let mut histogram: Vec<(u64, u64)> =
        (min..=max).step_by(width as usize).map(|left| (left, 0)).collect();
    for erases in &good {
        histogram[((erases - min) / width) as usize].1 += 1;
    }
    Wear {
        min,
        mean: good.iter().sum::<u64>() as f64 / good.len() as f64,
        max,
        bad_blocks: 0, // filled in from the drive's counters
        histogram,
    }
}

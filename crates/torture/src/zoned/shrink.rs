//! Makes a failing run of a zoned drive small: the same kind of failure, with fewer cuts and commands, fewer features
//! and a smaller drive; and keeps it in a file.

use std::path::Path;

use leyden_buffer::zoned::ZonePoolConfig;
use leyden_buffer::zoned::schedule::ZoneScheduleConfig;
use leyden_device::provision_of_zones;
use leyden_ftl::zoned::place::PlaceConfig;
use leyden_nand::FaultConfig;
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Ratio};
use serde::{Deserialize, Serialize};

use super::ZonedOptions;
use crate::seed_file::read_text;
use crate::{Failure, Outcome, SeedFileError};

/// The version of the file's format; others are refused.
const FORMAT: u32 = 1;
const KEY: &str = "leyden_torture_zoned";

/// A run of a zoned drive to be replayed, and what it showed when it was kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonedSeedFile {
    /// The format's version.
    leyden_torture_zoned: u32,
    /// The failure that the run showed.
    pub failure: Option<Failure>,
    /// The run.
    pub options: ZonedOptions,
}

impl ZonedSeedFile {
    /// For `options`, which showed `failure`.
    pub fn new(options: ZonedOptions, failure: Option<Failure>) -> Self {
        Self { leyden_torture_zoned: FORMAT, failure, options }
    }

    /// As text.
    ///
    /// # Panics
    /// Never: options are plain data.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("options are plain data");
        text.push('\n');
        text
    }

    /// Reads the file at `path`; `None` if it is of no zoned drive.
    ///
    /// # Errors
    /// If it can't be read, or is damaged.
    pub fn read(path: &Path) -> Result<Option<Self>, SeedFileError> {
        let text = read_text(path).map_err(|error| SeedFileError::Read(path.to_owned(), error))?;
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(found) = value.get(KEY).and_then(serde_json::Value::as_u64) else {
            return Ok(None);
        };
        if found != u64::from(FORMAT) {
            return Err(SeedFileError::Version { path: path.to_owned(), found });
        }
        let foreign = |problem: String| SeedFileError::Foreign { path: path.to_owned(), problem };
        let file: Self = serde_json::from_str(&text).map_err(|error| foreign(error.to_string()))?;
        file.options.check().map_err(foreign)?;
        Ok(Some(file))
    }
}

impl ZonedOptions {
    /// Whether there can be such a run.
    fn check(&self) -> Result<(), String> {
        let zones =
            provision_of_zones(&self.device).map_err(|error| error.to_string())?.zones.zones;
        if self.zones == 0 || self.zones > zones {
            return Err(format!(
                "zones: {} is not in 1..={zones}, which the drive has",
                self.zones
            ));
        }
        for (key, value) in [
            ("queue_depth", self.queue_depth),
            ("commands", self.commands),
            ("largest", self.largest),
        ] {
            if value == 0 || value > 1 << 16 {
                return Err(format!("{key}: {value} is not in 1..=65536"));
            }
        }
        Ok(())
    }
}

/// A run made small, how it fails, and the runs that this took.
pub type ShrunkZoned = (ZonedOptions, Failure, u32);

/// Makes `options` small; `attempt` runs options once, and at most `most_attempts` are made. `None` if they do not
/// fail.
pub fn shrink(
    options: &ZonedOptions,
    most_attempts: u32,
    mut attempt: impl FnMut(&ZonedOptions) -> Outcome,
) -> Option<ShrunkZoned> {
    let mut best = (options.clone(), attempt(options).failure?, 1);
    loop {
        let before = best.0.clone();
        // What comes after the failure is not needed.
        let needed = u32::try_from(best.1.cuts).unwrap_or(u32::MAX).max(1);
        let after_failure = ZonedOptions { cuts: before.cuts.min(needed), ..before.clone() };
        take(&mut best, after_failure, most_attempts, &mut attempt);
        for change in CHANGES {
            let mut smaller = best.0.clone();
            change(&mut smaller);
            take(&mut best, smaller, most_attempts, &mut attempt);
        }
        if best.0 == before || best.2 >= most_attempts {
            return Some(best);
        }
    }
}

/// Goes on with `smaller` if it fails in the same way.
fn take(
    best: &mut ShrunkZoned,
    smaller: ZonedOptions,
    most_attempts: u32,
    attempt: &mut impl FnMut(&ZonedOptions) -> Outcome,
) {
    if smaller == best.0 || best.2 >= most_attempts || smaller.check().is_err() {
        return;
    }
    best.2 += 1;
    let failure = attempt(&smaller).failure.filter(|it| it.kind == best.1.kind);
    if let Some(failure) = failure {
        (best.0, best.1) = (smaller, failure);
    }
}

/// Each makes a run smaller, if it changes it at all.
const CHANGES: [fn(&mut ZonedOptions); 26] = [
    |o| o.again = Ratio::ZERO,
    |o| o.fua = Ratio::ZERO,
    |o| o.copies = Ratio::ZERO,
    |o| o.others = Ratio::ZERO,
    |o| o.plp = Ratio::ZERO,
    |o| o.queue_depth = 1,
    |o| o.queue_depth = o.queue_depth.div_ceil(2),
    |o| o.largest = 1,
    |o| o.largest = o.largest.div_ceil(2),
    |o| o.zones = 1,
    |o| o.zones = o.zones.div_ceil(2),
    |o| o.commands = o.commands.div_ceil(2),
    |o| o.commands -= u32::from(o.commands > 1),
    |o| o.cuts -= u32::from(o.cuts > 1),
    |o| o.device.nand.faults = FaultConfig::default(),
    |o| (o.device.nand.planes_per_die, o.device.nand.multi_plane) = (1, false),
    |o| o.device.nand.channels = 1,
    |o| o.device.nand.dies_per_channel = 1,
    |o| o.device.zoned.iter_mut().for_each(|zoned| zoned.zrwa = None),
    |o| o.device.zoned.iter_mut().for_each(|zoned| zoned.dies_per_zone = 1),
    |o| o.device.zoned.iter_mut().for_each(|zoned| zoned.place = PlaceConfig::default()),
    |o| o.device.zoned.iter_mut().for_each(|zoned| zoned.zone_capacity = None),
    |o| o.device.buffer.zones.schedule = ZoneScheduleConfig::default(),
    |o| o.device.buffer.zones = ZonePoolConfig::default(),
    |o| o.device.buffer.size = Bytes::new(o.device.buffer.size.get() / 2),
    |o| o.device.power.iter_mut().for_each(|power| power.dump = DumpConfig::default()),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coverage, Kind, Tally};

    /// Fails wherever more than two commands come between cuts, after the third cut.
    fn attempt(options: &ZonedOptions) -> Outcome {
        let fails = options.commands > 2 && options.cuts >= 3;
        let failure = Failure { kind: Kind::Zone, cuts: 3, message: "it does".to_owned() };
        let (tally, coverage) = (Tally::default(), Coverage::default());
        Outcome { tally, digest: 0, failure: fails.then_some(failure), coverage }
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let options = ZonedOptions::draw(7);
        let (small, failure, attempts) = shrink(&options, 1_000, attempt).unwrap();
        assert_eq!((small.commands, small.cuts, small.queue_depth, small.largest), (3, 3, 1, 1));
        assert_eq!((small.zones, small.plp, small.again), (1, Ratio::ZERO, Ratio::ZERO));
        assert_eq!(small.device.nand.faults, FaultConfig::default());
        assert!(failure.kind == Kind::Zone && attempts < 200, "{attempts}");
        assert!(small.check().is_ok());
        assert_eq!(shrink(&small, 3, |it| Outcome { failure: None, ..attempt(it) }), None);
    }

    #[test]
    fn a_run_is_read_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.json");
        for seed in 0..20 {
            let file = ZonedSeedFile::new(ZonedOptions::draw(seed), None);
            std::fs::write(&path, file.to_json()).unwrap();
            assert_eq!(ZonedSeedFile::read(&path).unwrap(), Some(file));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("_zoned\": 1", "_zoned\": 9")).unwrap();
        assert!(matches!(ZonedSeedFile::read(&path), Err(SeedFileError::Version { found: 9, .. })));
        std::fs::write(&path, "{\"leyden_torture\": 1}").unwrap();
        assert_eq!(ZonedSeedFile::read(&path).unwrap(), None);
    }
}

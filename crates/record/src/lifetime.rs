//! How long a drive lasts under the work of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RunRecord;

const DAY_S: f64 = 86_400.0;
const YEAR_DAYS: f64 = 365.25;

/// The life of a drive under a run's work. It ends when the most worn block has reached its rated
/// erases; blocks are assumed to wear at the rates that they had up to the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lifetime {
    /// Write amplification.
    pub waf: f64,
    /// Erases that a block stands.
    pub cycles: u64,
    /// Erases of the most worn block up to the end of the run.
    #[serde(default)]
    pub most_erases: u64,
    /// Erases of the mean block up to then.
    #[serde(default)]
    pub mean_erases: f64,
    /// Bytes that the host could write if all blocks wore alike.
    #[serde(default)]
    pub level_writable_bytes: f64,
    /// Bytes that the host can write in the drive's life with this write amplification.
    pub writable_bytes: f64,
    /// The same as drive writes a day over the years of the warranty.
    pub rated_dwpd: f64,
    /// Those years.
    pub warranty_years: f64,
    /// Bytes that the host writes in a day at the rate of the run.
    pub written_bytes_a_day: f64,
    /// The same as drive writes a day.
    pub dwpd: f64,
    /// Years until the drive is worn out at that rate.
    pub years: f64,
}

impl Lifetime {
    /// Of the drive of `record`; none if nothing was written or its drive is not described.
    pub fn of(record: &RunRecord, cycles: u64, warranty_years: f64) -> Option<Self> {
        let drive = record.drive.as_ref()?;
        let host = &record.host;
        if host.bytes_written == 0 || host.elapsed_s <= 0.0 || record.flash.waf <= 0.0 {
            return None;
        }
        let capacity = drive.capacity_bytes as f64;
        let level_writable_bytes = cycles as f64 * drive.flash_bytes as f64 / record.flash.waf;
        let (mean, most) = (record.wear.mean, record.wear.max);
        // A drive on which nothing was erased yet has no most worn block.
        let level = if most == 0 { 1.0 } else { mean / most as f64 };
        let writable_bytes = level_writable_bytes * level;
        let a_day = host.bytes_written as f64 / host.elapsed_s * DAY_S;
        Some(Self {
            waf: record.flash.waf,
            cycles,
            most_erases: most,
            mean_erases: mean,
            level_writable_bytes,
            writable_bytes,
            rated_dwpd: writable_bytes / capacity / (warranty_years * YEAR_DAYS),
            warranty_years,
            written_bytes_a_day: a_day,
            dwpd: a_day / capacity,
            years: writable_bytes / a_day / YEAR_DAYS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drive;

    #[test]
    fn a_drive_that_is_written_once_a_day_lasts_its_cycles_over_its_amplification() {
        let mut record = RunRecord::default();
        let capacity_bytes = 100 << 30;
        let drive = Drive { capacity_bytes, flash_bytes: capacity_bytes, ..Drive::default() };
        record.drive = Some(drive);
        (record.host.bytes_written, record.host.elapsed_s) = (capacity_bytes / 24, 3600.0);
        assert_eq!(Lifetime::of(&record, 3000, 5.0), None, "nothing is known of amplification");
        record.flash.waf = 2.0;
        let life = Lifetime::of(&record, 3000, 5.0).unwrap();
        assert!((life.dwpd - 1.0).abs() < 1e-6, "{life:?}");
        assert!((life.years - 1500.0 / YEAR_DAYS).abs() < 1e-4, "{life:?}");
        assert!((life.rated_dwpd - 1500.0 / (5.0 * YEAR_DAYS)).abs() < 1e-6, "{life:?}");
        (record.wear.mean, record.wear.max) = (10.0, 40);
        let uneven = Lifetime::of(&record, 3000, 5.0).unwrap();
        assert!((uneven.years - life.years / 4.0).abs() < 1e-6, "{uneven:?}");
        assert!((uneven.level_writable_bytes - life.writable_bytes).abs() < 1.0, "{uneven:?}");
    }
}

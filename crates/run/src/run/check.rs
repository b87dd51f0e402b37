//! Whether a drive's own invariants are checked after a run.
//!
//! **Invariants**: what is counted decides, and no clock: the same scenario is checked on every machine.

use leyden_device::Stats;

use leyden_config::Check;

/// A drive of so many units is always checked: that takes hundredths of a second.
const SMALL_UNITS: u64 = 1 << 18;
/// A unit written or read takes a few times what checking one does. With so many for each unit of the
/// drive, the check is less than a tenth of the run.
const WORK_PER_UNIT: u64 = 4;

/// True if a drive with so many mapping units of flash, which counts `stats`, is to be checked now.
pub(super) fn is_due(when: Check, units: u64, stats: &Stats) -> bool {
    match when {
        Check::Always => true,
        Check::Never => false,
        Check::Auto => is_small(units, stats),
    }
}

/// True if checking `units` is small against what the drive has done since it was made or loaded.
fn is_small(units: u64, stats: &Stats) -> bool {
    let work = stats.ssd.units_written + stats.ftl.gc.copied_units + stats.ftl.reads.host;
    units <= SMALL_UNITS || work >= units.saturating_mul(WORK_PER_UNIT)
}

#[cfg(test)]
mod tests {
    use leyden_device::SsdStats;

    use super::*;

    #[test]
    fn a_check_is_left_out_if_it_were_a_large_part_of_the_run() {
        let wrote = |units_written| Stats {
            ssd: SsdStats { units_written, ..SsdStats::default() },
            ..Stats::default()
        };
        assert!(is_small(1 << 18, &wrote(0)));
        assert!(!is_small(1 << 25, &wrote(1_000)));
        assert!(!is_small(1 << 25, &wrote((1 << 27) - 1)));
        assert!(is_small(1 << 25, &wrote(1 << 27)));
    }
}

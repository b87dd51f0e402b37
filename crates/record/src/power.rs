//! The part of a run record about power loss. Energies are in millijoules, capacitances in
//! microfarads and times in milliseconds: the units of data sheets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cost of power cuts, for a drive with a table `[device.power]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// Power cuts made: those of `run.cut`, or one, when the run has ended.
    pub cuts: u64,
    /// Moments of the run, its ramp included, at which the cost of a cut was computed. They are drawn
    /// from the run's seed, spread evenly. The figures below, up to `parts`, are of these; but for the
    /// peaks, of an even selection of at most 128. If the run lists cuts (`run.cut`), they are of
    /// those, and `sampled` has the moments.
    pub moments: u64,
    /// The most bytes that a cut would have had to save: data promised, and mapping pages.
    pub protected_bytes_peak: u64,
    /// The most of the host's data that was promised and not on flash.
    pub promised_bytes_peak: u64,
    /// The most mapping pages that flash did not hold as they were.
    pub map_pages_peak: u64,
    /// From a cut until the last program of the dump has ended.
    pub dump_ms: Spread,
    /// Its time.
    pub energy_mj: Spread,
    /// The capacitance that holds the energy of the costliest of those moments.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
    /// Units of the host's data that were promised, and lost in the cuts made: by the drive's report, or,
    /// with stamps and cuts in `run.cut`, by a look at every unit after each cut.
    pub lost_promised_writes: u64,
    /// The drive's needs at worst, for any workload.
    pub worst: Worst,
    /// The capacitors.
    pub bank: Bank,
    /// Losses with banks below the worst case: the drive's own, if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_less: Vec<WithLess>,
    /// Commands that were outstanding at the cuts of `run.cut`: the host never hears of them again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands_cut_off: u64,
    /// The cuts of `run.cut`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeCut>,
    /// The moments looked at, in order; at most 128, spread evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<PowerMoment>,
    /// The cost of cuts at the moments, if the figures above are for the cuts made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The cost of a cut at a moment of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerMoment {
    /// When, in seconds from the beginning of the run, its ramp included.
    pub at_s: f64,
    /// The dump's needs.
    pub energy_mj: f64,
    /// The host's data that was promised and not on flash.
    pub promised_bytes: u64,
    /// Mapping pages (or pages of their journal) that flash did not hold as they were.
    pub map_pages: u64,
}

/// A power cut of `run.cut`, and how the drive came back from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MadeCut {
    /// When, in seconds from the beginning of the run, its ramp included.
    pub at_s: f64,
    /// How long the power was off.
    pub off_ms: f64,
    /// Commands outstanding.
    pub commands_cut_off: u64,
    /// Mapping units that were dirty in the page cache, or being written out of it, and are gone with it.
    /// Absent without a page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_units: Option<u64>,
    /// The drive had not recovered from the cut before: there was nothing to save.
    pub during_recovery: bool,
    /// The host's data that was promised and not on flash.
    pub promised_bytes: u64,
    /// Mapping pages (or pages of their journal) that flash did not hold as they were.
    pub map_pages: u64,
    /// Programs that the cut has torn.
    pub torn_pages: u64,
    /// From the cut until the last program of the dump has ended.
    pub dump_ms: f64,
    /// Its time.
    pub energy_mj: f64,
    /// Units of the host's data that were promised and are lost.
    pub lost_promised_writes: u64,
    /// Mapping pages (or pages of their journal) that the dump did not reach.
    pub unsaved_map_pages: u64,
    /// From the return of the power until the drive was ready; `null` if the next cut came before.
    pub ready_ms: Option<f64>,
    /// Pages read by the recovery.
    pub pages_scanned: u64,
    /// Flash pages of the host's data put back into the buffer.
    pub pages_restored: u64,
}

/// The cost of cuts at moments of a run that lists its cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampled {
    /// The most bytes that a cut would have had to save.
    pub protected_bytes_peak: u64,
    /// The most of the host's data that was promised and not on flash.
    pub promised_bytes_peak: u64,
    /// The most mapping pages that flash did not hold as they were.
    pub map_pages_peak: u64,
    /// How long dumps would have taken.
    pub dump_ms: Spread,
    /// Their needs.
    pub energy_mj: Spread,
    /// The capacitance that holds the energy of the costliest.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
}

/// A distribution over moments, or over recoveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// The needs of a dump at worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// Pages that are dumped.
    pub pages: u64,
    /// From the cut until all is on flash.
    pub dump_ms: f64,
    /// Its time.
    pub energy_mj: f64,
    /// The capacitance that holds it.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
}

/// The capacitors that a drive has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bank {
    /// The kind of part.
    pub part: String,
    /// How many of them.
    pub parts: u64,
    /// Capacitance when new.
    pub capacitance_uf: f64,
    /// Their usable energy at the end of their life.
    pub energy_mj: f64,
    /// The energy that they hold less than the worst case needs; 0 if they are enough.
    pub shortfall_mj: f64,
    /// The capacitance that is missing.
    pub shortfall_uf: f64,
}

/// Losses with a bank below the worst case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WithLess {
    /// The energy of the bank over that of the worst case.
    pub share: f64,
    /// The bank's usable energy.
    pub energy_mj: f64,
    /// Its capacitance.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
    /// Share of the moments at which a cut would have lost data promised.
    pub losing: f64,
    /// Bytes promised and lost, mean over all moments.
    pub lost_bytes_mean: f64,
    /// The most at one moment.
    pub lost_bytes_max: u64,
    /// The most mapping pages that a dump would not have reached: they are not lost, but found by
    /// scanning all of flash.
    pub unsaved_map_pages_max: u64,
}

/// How the drive came back from the cuts that were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// From the return of the power until the drive is ready; without recoveries that the next cut
    /// broke off.
    pub time_ms: Spread,
    /// Of that, until the state was rebuilt from flash; the bank is charged meanwhile.
    pub scan_ms: Spread,
    /// Until the bank is charged.
    pub charge_ms: f64,
    /// Pages read, over all recoveries.
    pub pages_scanned: u64,
    /// Flash pages of the host's data put back into the buffer.
    pub pages_restored: u64,
    /// Mapping pages whose entries had to be found by scanning all of flash.
    pub map_pages_scanned_for: u64,
    /// The steps of the last recovery, in order.
    pub steps: Vec<RecoveryStep>,
}

/// A step of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryStep {
    /// Its name: `find_checkpoint`, `load_map`, `roll_forward`, `open_blocks` or `put_back`.
    pub name: String,
    /// Pages read.
    pub pages: u64,
    /// How long that took.
    pub time_ms: f64,
}

impl Spread {
    /// The distribution of `values`; zeros of none. A percentile is the smallest value that so many per
    /// cent of them do not exceed.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Self::default() };
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self { mean, p50: rank(50), p99: rank(99), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let of = |n: u32| Spread::of((1..=n).rev().map(f64::from).collect());
        assert_eq!(of(200), Spread { mean: 100.5, p50: 100.0, p99: 198.0, max: 200.0 });
        assert_eq!(of(1), Spread { mean: 1.0, p50: 1.0, p99: 1.0, max: 1.0 });
        assert_eq!(of(0), Spread::default());
    }
}

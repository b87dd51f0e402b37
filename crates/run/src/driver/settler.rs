//! Watches write amplification until it has settled.
//!
//! **What lives here**: the chunks that are compared, and when they count as alike. **What doesn't**: what writes
//! meanwhile: preconditioning, or the workload itself in its ramp.

use leyden_device::{Payload, Ssd, Stats};
use leyden_sim::Ratio;

use leyden_record::Settling;

/// A chunk has at least so many unit writes: fewer are too noisy to compare.
const MIN_CHUNK_UNITS: u64 = 1 << 16;
/// Settled is not before more chunks than this.
const MIN_CHUNKS: usize = 8;
/// Steps that do not shrink count as shrinking by so much: the next ones tell.
const MOST_RATIO: f64 = 0.95;

/// Watches the write amplification of successive chunks. One ends when the drive has erased a quarter as many
/// blocks as it has, or written its logical capacity once.
#[derive(Clone, Debug)]
pub struct Settler {
    tolerance: Ratio,
    /// The remaining work counts, too.
    to_the_end: bool,
    chunk_erases: u64,
    /// Mapping units that the host can address.
    capacity_units: u64,
    /// It gives up once so many have been written.
    most_units: u64,
    units_per_page: u64,
    first: u64,
    begin: Counts,
    now: Counts,
    wafs: Vec<f64>,
    settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    erases: u64,
    programs: u64,
    written: u64,
}

impl Counts {
    fn of(stats: &Stats) -> Self {
        Self {
            erases: stats.ftl.erases,
            programs: stats.ftl.programs.total(),
            written: stats.ssd.units_written,
        }
    }
}

impl Settler {
    /// Begins to watch `ssd`; gives up once it has written its logical capacity `most_passes` times.
    pub fn new<P: Payload>(ssd: &Ssd<P>, tolerance: Ratio, most_passes: u32) -> Self {
        let geometry = ssd.geometry();
        let counts = Counts::of(&ssd.stats());
        let capacity_units = u64::from(ssd.mapping_units());
        Self {
            tolerance,
            to_the_end: false,
            chunk_erases: u64::from(geometry.blocks()).div_ceil(4),
            capacity_units,
            most_units: u64::from(most_passes) * capacity_units.max(MIN_CHUNK_UNITS),
            units_per_page: u64::from(geometry.units_per_page()),
            first: counts.written,
            begin: counts,
            now: counts,
            wafs: Vec::new(),
            settled: false,
        }
    }

    /// Waits besides until what is still to come, by how the steps between quarters shrink, is within the tolerance: a
    /// skewed workload takes its steps of a percent for a long way.
    #[must_use]
    pub fn to_the_end(self) -> Self {
        Self { to_the_end: true, ..self }
    }

    /// Mapping units written since the watch began.
    pub fn written(&self) -> u64 {
        self.now.written - self.first
    }

    /// Takes a look; true once it has settled, or is given up.
    pub fn look(&mut self, stats: &Stats) -> bool {
        self.now = Counts::of(stats);
        let written = self.now.written - self.begin.written;
        let erased = self.now.erases - self.begin.erases;
        let is_whole = erased >= self.chunk_erases || written >= self.capacity_units;
        if written >= MIN_CHUNK_UNITS && is_whole {
            let programmed = (self.now.programs - self.begin.programs) * self.units_per_page;
            self.wafs.push(programmed as f64 / written as f64);
            self.begin = self.now;
            self.settled = settled(&self.wafs, self.tolerance, self.to_the_end);
        }
        self.settled || self.written() >= self.most_units
    }

    /// How it went.
    pub fn outcome(&self) -> Settling {
        let quarter = (self.wafs.len() / 4).max(1).min(self.wafs.len());
        Settling {
            settled: self.settled,
            passes: self.written() as f64 / self.capacity_units.max(1) as f64,
            chunks: self.wafs.len() as u64,
            waf: mean(&self.wafs[self.wafs.len() - quarter..]),
        }
    }

    /// A guess: settling takes some turns of the drive, and nobody knows how many.
    pub fn progress(&self) -> f64 {
        let chunks = self.wafs.len() as f64;
        0.3 + 0.7 * chunks / (chunks + 8.0)
    }
}

/// True if the last quarter of the chunks agrees with the quarter before, and did so one chunk ago
/// too. Quarters, because chunks of skewed work differ by ten percent and more among themselves, and
/// because what came first, the transition itself, is left out in proportion.
fn settled(wafs: &[f64], tolerance: Ratio, to_the_end: bool) -> bool {
    let agree = |wafs: &[f64]| {
        let quarter = wafs.len() / 4;
        let at = |quarters: usize| {
            let end = wafs.len() - quarters * quarter;
            mean(&wafs[end - quarter..end])
        };
        let (last, before) = (at(0), at(1));
        let step = last - before;
        let most = tolerance.as_f64() * last;
        step.abs() <= most && (!to_the_end || to_come(step, before - at(2)).abs() <= most)
    };
    wafs.len() > MIN_CHUNKS && agree(wafs) && agree(&wafs[..wafs.len() - 1])
}

/// How far it is from here if each step is the same part of the one before, as `step` is of `earlier`: the sum of a geometric
/// series. Steps that change their direction are noise.
fn to_come(step: f64, earlier: f64) -> f64 {
    let ratio = if earlier == 0.0 { 0.0 } else { step / earlier };
    let ratio = ratio.clamp(0.0, MOST_RATIO);
    step * ratio / (1.0 - ratio)
}

/// 0 of none.
fn mean(wafs: &[f64]) -> f64 {
    wafs.iter().sum::<f64>() / wafs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_means_that_two_quarters_agree_twice() {
        let percent = Ratio::from_percent(1);
        for to_the_end in [false, true] {
            assert!(!settled(&[2.0; 8], percent, to_the_end), "too few");
            assert!(settled(&[2.0; 9], percent, to_the_end));
            let noisy: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 1.9 } else { 2.1 }).collect();
            let end = (9..40).find(|&end| settled(&noisy[..end], percent, to_the_end));
            assert!(end.is_some(), "noise alone does not count");
            let drifting: Vec<f64> = (0..40).map(|n| 2.0 + 0.01 * f64::from(n)).collect();
            assert!(!settled(&drifting, percent, to_the_end), "a drift is not settled");
            let mut late = vec![3.0; 4];
            late.extend([2.0; 12]);
            assert!(settled(&late, percent, to_the_end), "what came first is left out");
        }
    }

    /// Hot and cold data on a busy drive: from 6.7 to 7.25, with a time constant of 25 chunks.
    #[test]
    fn a_long_way_in_small_steps_is_not_its_end() {
        let wafs: Vec<f64> = (0..400).map(|n| 7.25 - 0.55 * (-f64::from(n) / 25.0).exp()).collect();
        let percent = Ratio::from_percent(1);
        let gap = |to_the_end| {
            let end = (9..400).find(|&end| settled(&wafs[..end], percent, to_the_end));
            1.0 - wafs[end.unwrap() - 1] / 7.25
        };
        assert!(gap(false) > 0.03, "{}", gap(false));
        assert!(gap(true) < 0.01, "{}", gap(true));
        assert!((to_come(1.0, 2.0) - 1.0).abs() < 1e-9);
        assert!(to_come(-1.0, 2.0).abs() < 1e-9);
    }
}

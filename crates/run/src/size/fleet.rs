//! A fleet of drives whose capacitors age unequally: how many of them can no longer hold what a dump takes at worst.
//!
//! Arithmetic alone. The capacitance of a drive's bank is normally distributed. Its mean falls from the sheet's to
//! what `bank.ageing` leaves. Its spread has two parts: the parts' tolerance, independent from part to part and taken
//! for three standard deviations, and ageing, which is that of the drive's temperature and so common to all of its
//! parts: a standard deviation of a quarter of what the mean has lost. Both are assumptions.
//! Tail probabilities are those of the complementary error function (Press et al., "Numerical Recipes", `erfcc`,
//! fractional error below 1.2e-7 everywhere).

use leyden_device::Region;
use leyden_device::provision_of;
use leyden_power::BankConfig;
use leyden_sim::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::run::in_device;
use leyden_config::Scenario;

/// Shares of the bank's life, in percent.
const AGES: [u32; 6] = [0, 25, 50, 75, 100, 125];
/// Probabilities that a margin is computed for.
const TAILS: [f64; 3] = [1e-2, 1e-4, 1e-6];
/// The share of the weakest drives, which decides what a fleet may use of its buffers: one in 10,000, so many standard
/// deviations below the mean.
const WEAKEST_DEVIATIONS: f64 = 3.719;
/// A weak drive's buffer is a multiple of the whole over this.
const BUFFER_STEPS: u64 = 64;
/// Standard deviation of what ageing takes, over its mean.
const AGEING_SPREAD: f64 = 0.25;

/// A fleet of one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// The scenario's name.
    pub name: String,
    /// Drives.
    pub drives: u64,
    /// Parts of each drive's bank.
    pub parts: u64,
    /// The needs of a dump at worst.
    pub need_mj: f64,
    /// By age.
    pub ages: Vec<FleetAge>,
    /// Banks that are sufficient.
    pub margins: Vec<FleetMargin>,
}

/// The fleet at one age.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetAge {
    /// Share of the bank's life that is over.
    pub age: f64,
    /// The energy of the mean bank.
    pub mean_mj: f64,
    /// The standard deviation of that.
    pub deviation_mj: f64,
    /// Probability that a drive's bank holds less than a dump needs at worst.
    pub short: f64,
    /// Drives of the fleet to be expected so.
    pub drives_short: f64,
    /// The protected buffer that all drives but one in 10,000 still hold at worst, in 64ths of the whole: what a drive that
    /// measures its bank may use. With 0 it must write through; none if the mapping table alone takes more than they hold.
    pub buffer_bytes: Option<u64>,
}

/// Parts that keep the probability at the end of life below a bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMargin {
    /// The bound.
    pub short: f64,
    /// Parts; none if no number of them does, since drives age differently.
    pub parts: Option<u64>,
}

/// The fleet of `drives` drives like `scenario`'s. Without a table `[device.power]`, its defaults are taken.
///
/// # Errors
/// If there can be no such drive.
pub fn fleet(scenario: &Scenario, drives: u64) -> Result<Fleet, RunError> {
    let mut device = scenario.device.clone();
    let power = device.power.get_or_insert_default();
    power.allow_underprovisioned = true;
    let bank = power.bank.clone();
    let supply = provision_of(&device).map_err(in_device)?.supply.expect("there is a power table");
    let need = supply.need.energy.as_joules_f64() * 1e3;
    let new = BankConfig {
        parts: Some(1),
        capacitance: None,
        ageing: Some(leyden_sim::Ratio::ZERO),
        ..bank.clone()
    };
    let new = new.bank().map_err(|error| in_device(error.within("power")))?.expect("one part");
    let aged = BankConfig { parts: Some(1), capacitance: None, ..bank.clone() };
    let aged = aged.bank().map_err(|error| in_device(error.within("power")))?.expect("one part");
    let one = Part {
        new_mj: new.energy().as_joules_f64() * 1e3,
        ageing: 1.0 - aged.energy().as_joules_f64() / new.energy().as_joules_f64(),
        tolerance: f64::from(bank.part.body().tolerance_percent) / 100.0,
    };
    let parts = supply.bank.parts();
    let needs = needs_by_buffer(&device);
    let ages = AGES.map(|percent| {
        let age = f64::from(percent) / 100.0;
        let (mean_mj, deviation_mj) = one.of(parts, age);
        let short = tail((mean_mj - need) / deviation_mj);
        let weakest_mj = mean_mj - WEAKEST_DEVIATIONS * deviation_mj;
        let held = needs.iter().find(|(_, need_mj)| *need_mj <= weakest_mj);
        let drives_short = short * drives as f64;
        let buffer_bytes = held.map(|(bytes, _)| *bytes);
        FleetAge { age, mean_mj, deviation_mj, short, drives_short, buffer_bytes }
    });
    let margins = TAILS.map(|bound| {
        let does = |parts: u64| {
            let (mean, deviation) = one.of(parts, 1.0);
            tail((mean - need) / deviation) <= bound
        };
        let least = supply.bank.parts_for(supply.need.energy);
        FleetMargin { short: bound, parts: first(least, does) }
    });
    Ok(Fleet {
        name: scenario.name.clone(),
        drives,
        parts,
        need_mj: need,
        ages: ages.into(),
        margins: margins.into(),
    })
}

/// Sizes of the protected buffer, the largest first, and what a dump needs at worst with each.
fn needs_by_buffer(device: &leyden_device::Config) -> Vec<(u64, f64)> {
    let need = |step: u64| {
        let mut device = device.clone();
        let buffer = &mut device.buffer;
        let size = match buffer.region {
            Region::Selective => &mut buffer.protected_size,
            Region::None | Region::Full => &mut buffer.size,
        };
        let bytes = size.get() / BUFFER_STEPS * step;
        if bytes == 0 {
            buffer.region = Region::None;
        } else {
            *size = Bytes::new(bytes);
        }
        // Too small a buffer is refused: that is no buffer.
        let supply = provision_of(&device).ok()?.supply?;
        Some((bytes, supply.need.energy.as_joules_f64() * 1e3))
    };
    (0..=BUFFER_STEPS).rev().filter_map(need).collect()
}

/// The first number from `least` on that does, if more do as well as fewer; none if not even a very large one does.
fn first(least: u64, does: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut below, mut above) = (least, least.max(1));
    while !does(above) {
        below = above + 1;
        above = above.checked_mul(2).filter(|&parts| parts < 1 << 40)?;
    }
    while below < above {
        let middle = below + (above - below) / 2;
        if does(middle) { above = middle } else { below = middle + 1 }
    }
    Some(above)
}

/// One part of a bank.
struct Part {
    new_mj: f64,
    ageing: f64,
    tolerance: f64,
}

impl Part {
    /// The mean and the standard deviation of what a bank of `parts` holds at `age`.
    fn of(&self, parts: u64, age: f64) -> (f64, f64) {
        let (new, parts) = (self.new_mj * parts as f64, parts as f64);
        let lost = (self.ageing * age).min(1.0);
        let of_parts = self.tolerance / 3.0 / parts.sqrt();
        let of_drive = lost * AGEING_SPREAD;
        (new * (1.0 - lost), new * of_parts.hypot(of_drive))
    }
}

/// The probability of a standard normal value above `z`.
fn tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let terms = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
    ];
    let series = terms.iter().fold(0.0, |sum, term| term + t * sum);
    let erfc = t * (-x * x - 1.265_512_23 + t * series).exp();
    if x >= 0.0 { erfc / 2.0 } else { 1.0 - erfc / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of any table of the normal distribution.
    #[test]
    fn tails_are_those_of_the_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.158_655_25),
            (-1.0, 0.841_344_75),
            (3.0, 1.349_898e-3),
            (5.0, 2.866_516e-7),
        ] {
            assert!((tail(z) / p - 1.0).abs() < 1e-6, "{z}: {}", tail(z));
        }
    }

    #[test]
    fn the_first_number_that_does_is_found() {
        for (least, wanted) in [(1, 1), (1, 2), (3, 3), (3, 4), (7, 1_000), (0, 5), (210, 553)] {
            assert_eq!(first(least, |parts| parts >= wanted), Some(wanted));
        }
        assert_eq!(first(8, |_| true), Some(8));
        assert_eq!(first(8, |_| false), None, "none will do");
    }

    #[test]
    fn banks_spread_less_the_more_parts_they_have_and_more_the_older_they_are() {
        let one = Part { new_mj: 10.0, ageing: 0.2, tolerance: 0.21 };
        let (mean, deviation) = one.of(49, 0.0);
        assert!(
            (mean - 490.0).abs() < 1e-9 && (deviation - 4.9).abs() < 1e-9,
            "{mean}, {deviation}"
        );
        let (mean, deviation) = one.of(1_000_000, 1.0);
        assert!(
            (mean - 8e6).abs() < 1e-3 && (deviation / 1e7 - 0.05).abs() < 1e-5,
            "{mean}, {deviation}"
        );
    }
}

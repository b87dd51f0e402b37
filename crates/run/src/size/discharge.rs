//! The voltage of a drive's bank while it dumps what it may have to at worst.
//!
//! Arithmetic alone: the dump draws its energy at an even rate, `1/2 C (V_charge^2 - V^2) x efficiency` has been
//! drawn when the bank is at `V`, and its series resistance lowers that by the current of the dump's peak.

use leyden_device::{provision_of, provision_of_zones};
use leyden_power::{Bank, BankConfig};

use super::worst::{peak_w, volts};
use crate::RunError;
use crate::run::in_device;
use leyden_config::Scenario;

/// Points of a curve.
const POINTS: u32 = 60;

/// A bank's voltage from a power cut on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discharge {
    /// The bank's parts.
    pub parts: u64,
    /// The kind of part.
    pub part: String,
    /// Below it the converter stops.
    pub minimum_v: f64,
    /// How long the dump takes.
    pub dump_ms: f64,
    /// The bank when new: milliseconds and volts.
    pub new: Vec<(f64, f64)>,
    /// At the end of its life.
    pub aged: Vec<(f64, f64)>,
    /// The same behind its series resistance, while all dies program.
    pub behind_resistance: Vec<(f64, f64)>,
}

/// The discharge of `scenario`'s own bank. Without a table `[device.power]`, its defaults are taken.
///
/// # Errors
/// If there can be no such drive.
pub fn discharge(scenario: &Scenario) -> Result<Discharge, RunError> {
    let mut device = scenario.device.clone();
    let power = device.power.get_or_insert_default();
    power.allow_underprovisioned = true;
    let power = power.clone();
    let supply = if device.zoned.is_some() {
        provision_of_zones(&device).map_err(in_device)?.supply
    } else {
        provision_of(&device).map_err(in_device)?.supply
    };
    let supply = supply.expect("there is a power table");
    let capacitance = Some(supply.bank.capacitance());
    let new = BankConfig {
        parts: None,
        capacitance,
        ageing: Some(leyden_sim::Ratio::ZERO),
        ..power.bank.clone()
    };
    let new = new.bank().map_err(|error| in_device(error.within("power")))?.expect("a bank");
    let body = power.bank.part.body();
    let dump = Dump {
        joules: supply.need.energy.as_joules_f64(),
        ms: supply.need.time.as_secs_f64() * 1e3,
        watts: peak_w(&device, &power) / power.bank.efficiency.as_f64(),
    };
    let ohm = f64::from(body.esr_mohm) / 1e3 / supply.bank.parts() as f64;
    Ok(Discharge {
        parts: supply.bank.parts(),
        part: crate::run::power::bank(&supply, power.bank.part).part,
        minimum_v: volts(supply.bank.minimum_voltage()),
        dump_ms: dump.ms,
        new: dump.curve(&new, 0.0),
        aged: dump.curve(&supply.bank, 0.0),
        behind_resistance: dump.curve(&supply.bank, ohm),
    })
}

/// The needs of a dump.
struct Dump {
    joules: f64,
    ms: f64,
    /// Its peak, at the bank.
    watts: f64,
}

impl Dump {
    /// Ends where the bank is at its minimum voltage.
    fn curve(&self, bank: &Bank, ohm: f64) -> Vec<(f64, f64)> {
        let (charge, minimum) = (volts(bank.charge_voltage()), volts(bank.minimum_voltage()));
        let whole = bank.energy().as_joules_f64();
        let mut points = Vec::new();
        for point in 0..=POINTS {
            let share = f64::from(point) / f64::from(POINTS);
            let drawn = self.joules * share / whole;
            let squared = charge.powi(2) - (charge.powi(2) - minimum.powi(2)) * drawn;
            // A load of `watts` behind `ohm` stands at V with V (open - V) / ohm = watts.
            let loaded = (squared - 4.0 * self.watts * ohm).max(0.0).sqrt();
            let volts = f64::midpoint(squared.max(0.0).sqrt(), loaded);
            if volts < minimum * (1.0 - 1e-9) {
                break;
            }
            points.push((self.ms * share, volts));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_sim::{Capacitance, Ratio};

    /// 1/2 x 2 mF x (12^2 - 6^2) V^2 = 108 mJ.
    fn bank(efficiency: u64) -> Bank {
        let config = BankConfig {
            capacitance: Some(Capacitance::from_uf(2_000)),
            charge_voltage: Some("12 V".parse().unwrap()),
            minimum_voltage: Some("6 V".parse().unwrap()),
            efficiency: Ratio::from_percent(efficiency),
            ageing: Some(Ratio::ZERO),
            ..BankConfig::default()
        };
        config.bank().unwrap().unwrap()
    }

    #[test]
    fn a_bank_ends_at_its_minimum_if_it_holds_what_the_dump_needs() {
        let curve = Dump { joules: 0.108, ms: 30.0, watts: 3.6 }.curve(&bank(100), 0.0);
        let (start, middle, end) = (curve[0], curve[30], curve[60]);
        assert_eq!((start, curve.len()), ((0.0, 12.0), 61));
        // Half of the energy is left: 6^2 + (12^2 - 6^2) / 2 = 90.
        assert!((middle.0 - 15.0).abs() < 1e-9 && (middle.1 - 90.0_f64.sqrt()).abs() < 1e-9);
        assert!((end.0 - 30.0).abs() < 1e-9 && (end.1 - 6.0).abs() < 1e-9, "{end:?}");
    }

    #[test]
    fn a_bank_of_half_the_energy_stops_halfway() {
        let curve = Dump { joules: 0.108, ms: 30.0, watts: 3.6 }.curve(&bank(50), 0.0);
        assert_eq!(curve.len(), 31, "{curve:?}");
    }

    #[test]
    fn a_resistance_takes_its_share_of_the_voltage() {
        let curve = Dump { joules: 0.054, ms: 30.0, watts: 11.0 }.curve(&bank(100), 1.0);
        // 11 V at 1 A, and 1 V over 1 ohm.
        assert!((curve[0].1 - 11.0).abs() < 1e-9, "{curve:?}");
    }
}

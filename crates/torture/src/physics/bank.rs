//! The energy of a bank, worked out from its parts and voltages.

use leyden_power::{BankConfig, Part};
use leyden_sim::Power;

/// A part's figures as docs/power.md gives them: capacitance in nF, charge and lowest voltage in mV, and what
/// ageing takes in parts per million.
const fn sheet(part: Part) -> (u128, u128, u128, u128) {
    match part {
        Part::TantalumPolymer => (180_000, 12_800, 5_500, 200_000),
        Part::Aluminium => (470_000, 28_000, 5_500, 200_000),
        Part::Ceramic => (4_400, 25_000, 5_500, 125_000),
        Part::Supercapacitor => (1_000_000_000, 5_000, 3_000, 300_000),
    }
}

/// `C (V_charge^2 - V_min^2)` in femtojoules, when new: nanofarads times millivolts squared. A bank whose size is left to the
/// drive has `drive_nf`.
fn doubled_femtojoules(bank: &BankConfig, drive_nf: Option<u64>) -> Option<u128> {
    let (nf_of_a_part, charge, minimum, _) = sheet(bank.part);
    let nf = match (bank.capacitance, bank.parts) {
        (Some(capacitance), _) => u128::from(capacitance.as_nf()),
        (None, Some(parts)) => u128::from(parts) * nf_of_a_part,
        (None, None) => drive_nf?.into(),
    };
    let charge = bank.charge_voltage.map_or(charge, |it| it.as_mv().into());
    let minimum = bank.minimum_voltage.map_or(minimum, |it| it.as_mv().into());
    Some(nf * (charge * charge - minimum * minimum))
}

/// `1/2 C (V_charge^2 - V_min^2) x efficiency x (1 - ageing)` in picojoules, rounded down; `None` if the bank's
/// size is left to the drive.
pub(super) fn energy_pj(bank: &BankConfig) -> Option<u128> {
    const PPM: u128 = 1_000_000;
    let (_, _, _, ageing) = sheet(bank.part);
    let left = PPM - bank.ageing.map_or(ageing, |it| it.as_ppm().into());
    let efficiency = u128::from(bank.efficiency.as_ppm());
    // A thousand femtojoules are a picojoule.
    Some(doubled_femtojoules(bank, None)? * efficiency * left / (2 * 1_000 * PPM * PPM))
}

/// How long `power` takes to charge the bank when new, from its lowest voltage: `1/2 C (V_charge^2 - V_min^2) / P` in
/// nanoseconds, rounded up. A bank whose size is left to the drive has `drive_nf`.
pub(super) fn charge_ns(bank: &BankConfig, power: Power, drive_nf: u64) -> u128 {
    let picojoules = doubled_femtojoules(bank, Some(drive_nf)).unwrap_or_default() / 2_000;
    picojoules.div_ceil(u128::from(power.as_mw()).max(1))
}

#[cfg(test)]
mod tests {
    use leyden_sim::{Capacitance, Ratio, Voltage};

    use super::*;

    #[test]
    fn parts_hold_what_the_documentation_says() {
        let holds = |part| energy_pj(&BankConfig { part, parts: Some(1), ..BankConfig::default() });
        assert_eq!(holds(Part::TantalumPolymer), Some(8_656_632_000));
        assert_eq!(holds(Part::Aluminium), Some(127_534_500_000));
        assert_eq!(holds(Part::Ceramic), Some(1_030_404_375));
        assert_eq!(holds(Part::Supercapacitor), Some(5_040_000_000_000));
        assert_eq!(energy_pj(&BankConfig::default()), None);
    }

    #[test]
    fn what_is_given_goes_before_the_sheet() {
        // 1/2 x 2 mF x (12^2 - 6^2) V^2 = 108 mJ; 90 % of it, and 80 % of that.
        let bank = BankConfig {
            capacitance: Some(Capacitance::from_uf(2_000)),
            charge_voltage: Some(Voltage::from_mv(12_000)),
            minimum_voltage: Some(Voltage::from_mv(6_000)),
            ageing: Some(Ratio::from_percent(20)),
            ..BankConfig::default()
        };
        assert_eq!(energy_pj(&bank), Some(77_760_000_000));
    }

    #[test]
    fn a_bank_is_charged_from_its_lowest_voltage_without_losses() {
        // 1/2 x 2 mF x (12^2 - 6^2) V^2 = 108 mJ, at 2 W.
        let bank = BankConfig {
            capacitance: Some(Capacitance::from_uf(2_000)),
            charge_voltage: Some(Voltage::from_mv(12_000)),
            minimum_voltage: Some(Voltage::from_mv(6_000)),
            ..BankConfig::default()
        };
        assert_eq!(charge_ns(&bank, Power::from_mw(2_000), 7), 54_000_000);
        let sized_by_the_drive = BankConfig { capacitance: None, ..bank };
        assert_eq!(charge_ns(&sized_by_the_drive, Power::from_mw(2_000), 1_000_000), 27_000_000);
    }
}

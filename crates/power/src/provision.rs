//! Checks that the bank suffices for the drive, and says what is missing.

use leyden_sim::{Capacitance, ConfigError, Energy};

use crate::{Bank, Budget, Config, Costs, Demand, Need, worst_case};

/// A bank, and the most that may be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// The bank: as configured, or as large as the need.
    pub bank: Bank,
    /// The drive's needs at worst.
    pub need: Need,
    /// The capacitance that this takes.
    pub capacitance: Capacitance,
    /// The shortfall, if the bank is too small: only if `allow_underprovisioned`.
    pub shortfall: Option<Shortfall>,
}

/// The shortfall of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Energy.
    pub energy: Energy,
    /// Capacitance, when new.
    pub capacitance: Capacitance,
}

impl Supply {
    /// The budget of a dump that begins with a full bank.
    pub fn budget(&self, config: &Config) -> Budget {
        let energy = self.bank.energy();
        Budget::new(energy, config.base_power)
    }
}

/// Checks `config`, and holds its bank against what `demand` needs at worst.
///
/// # Errors
/// If a value is impossible; if the bank does not hold what one program takes; if it does not hold
/// what the drive needs at worst, unless `allow_underprovisioned`.
pub fn provision(config: &Config, costs: &Costs, demand: &Demand) -> Result<Supply, ConfigError> {
    config.check()?;
    let need = worst_case(demand, costs, config);
    let bank = match config.bank.bank()? {
        Some(bank) => bank,
        None => config.bank.bank_for(need.energy)?,
    };
    let capacitance = bank.capacitance_for(need.energy);
    let one = config.base_power.during(costs.dump_time()) + costs.dump_energy;
    if bank.energy() < one {
        let problem = format!(
            "it holds {}, and a single page program takes {}: give it {} or more",
            millijoules(bank.energy()),
            millijoules(one),
            microfarads(bank.capacitance_for(one)),
        );
        return Err(ConfigError::new("bank", problem));
    }
    let shortfall = (bank.energy() < need.energy).then(|| Shortfall {
        energy: need.energy.saturating_sub(bank.energy()),
        capacitance: capacitance.saturating_sub(bank.capacitance()),
    });
    if let Some(shortfall) = shortfall
        && !config.allow_underprovisioned
    {
        return Err(refusal(&bank, &need, shortfall));
    }
    Ok(Supply { bank, need, capacitance, shortfall })
}

fn refusal(bank: &Bank, need: &Need, shortfall: Shortfall) -> ConfigError {
    let problem = format!(
        "it holds {} at the end of its life, and a dump needs {} at worst ({} pages in {:.3} ms), \
         {:.6} J or {} more: give it {} ({} parts), protect less, or set allow_underprovisioned",
        millijoules(bank.energy()),
        millijoules(need.energy),
        need.pages,
        need.time.as_secs_f64() * 1e3,
        shortfall.energy.as_joules_f64(),
        microfarads(shortfall.capacitance),
        microfarads(bank.capacitance_for(need.energy)),
        bank.parts_for(need.energy),
    );
    ConfigError::new("bank", problem)
}

fn millijoules(energy: Energy) -> String {
    format!("{:.3} mJ", energy.as_joules_f64() * 1e3)
}

/// Rounded up: what the message asks for must do.
fn microfarads(capacitance: Capacitance) -> String {
    format!("{} uF", capacitance.as_nf().div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_sim::{Bytes, Power, Ratio, Voltage};

    const DEMAND: Demand = Demand {
        buffer: Bytes::new(64 << 20),
        mapping_pages: 1_920,
        journal_pages: 0,
        most_on_one_die: None,
    };

    fn costs(config: &Config) -> Costs {
        let nand = leyden_nand::Config::default();
        Costs::new(config, &nand, nand.geometry(Bytes::new(4096)).unwrap())
    }

    fn with_capacitance(microfarads: u64) -> Config {
        let mut config = Config::default();
        config.bank.capacitance = Some(Capacitance::from_uf(microfarads));
        config
    }

    #[test]
    fn a_bank_left_open_is_as_large_as_the_need() {
        let config = Config::default();
        let supply = provision(&config, &costs(&config), &DEMAND).unwrap();
        assert_eq!(supply.need.pages, 8_192 + 1_920);
        assert!(supply.bank.energy() >= supply.need.energy && supply.shortfall.is_none());
        assert_eq!(supply.bank.parts(), supply.bank.parts_for(supply.need.energy));
    }

    /// The figures of docs/power.md.
    #[test]
    fn needs_of_the_default_drive() {
        let of = |policy| {
            let config =
                Config { dump: crate::DumpConfig::by_name(policy).unwrap(), ..Config::default() };
            let Supply { need, bank, .. } = provision(&config, &costs(&config), &DEMAND).unwrap();
            (need.time.as_ns() / 1_000, need.energy.as_nj() / 1_000, bank.parts())
        };
        // Microseconds, microjoules, parts. A program takes 710.24 us and 117.1896 uJ.
        assert_eq!(of("balanced"), (113_071, 1_475_200, 171));
        assert_eq!(of("balanced_slc"), (34_071, 443_460, 52));
        assert_eq!(of("in_place"), (7_205_384, 19_209_733, 2_220));
    }

    #[test]
    fn too_small_a_bank_is_refused_with_the_shortfall() {
        let small = with_capacitance(2_200);
        let error = provision(&small, &costs(&small), &DEMAND).unwrap_err();
        assert_eq!(error.key, "bank");
        assert!(
            error.problem.contains(" J or ") && error.problem.contains("uF more: give it "),
            "{error}"
        );

        let allowed = Config { allow_underprovisioned: true, ..small };
        let supply = provision(&allowed, &costs(&allowed), &DEMAND).unwrap();
        let shortfall = supply.shortfall.unwrap();
        assert_eq!(shortfall.energy + supply.bank.energy(), supply.need.energy);
        let enough = supply.bank.capacitance().as_nf() + shortfall.capacitance.as_nf();
        assert_eq!(enough, supply.capacitance.as_nf());

        let large = with_capacitance(supply.capacitance.as_nf().div_ceil(1_000));
        assert!(provision(&large, &costs(&large), &DEMAND).unwrap().shortfall.is_none());
        let budget = supply.budget(&allowed);
        assert_eq!(budget.left(), supply.bank.energy());
    }

    #[test]
    fn a_bank_for_less_than_a_program_is_refused_always() {
        // 2.5 W for 710.24 us and 165 mW for the same are 1.8927896 mJ.
        let mut config = with_capacitance(1);
        config.allow_underprovisioned = true;
        config.bank.minimum_voltage = Some(Voltage::from_mv(1));
        let error = provision(&config, &costs(&config), &DEMAND).unwrap_err();
        assert!(error.problem.contains("single page program takes 1.893 mJ"), "{error}");
    }

    #[test]
    fn impossible_values_come_before_the_need() {
        let mut config = with_capacitance(1);
        config.bank.efficiency = Ratio::ZERO;
        assert_eq!(
            provision(&config, &costs(&config), &DEMAND).unwrap_err().key,
            "bank.efficiency"
        );
        let config = Config { base_power: Power::ZERO, ..Config::default() };
        assert_eq!(provision(&config, &costs(&config), &DEMAND).unwrap_err().key, "base_power");
    }
}

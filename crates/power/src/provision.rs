//! Whether the bank does for the drive, and what is missing.

use leyden_sim::{Capacitance, Energy};

use crate::{Bank, Budget, Config, ConfigError, Costs, Demand, Need, worst_case};

/// A bank, and the most that may be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// The bank: as configured, or as large as the need.
    pub bank: Bank,
    /// What the drive needs at worst.
    pub need: Need,
    /// The capacitance that this takes.
    pub capacitance: Capacitance,
    /// What is missing, if the bank is too small: only if `allow_underprovisioned`.
    pub shortfall: Option<Shortfall>,
}

/// What a bank lacks.
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
        Budget::new(self.bank.energy(), config.base_power)
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
        "it holds {} at the end of its life, and a dump needs {} at worst ({} pages in {:.3} ms): \
         {:.6} J or {} short. Give it {} ({} parts), protect less, or set allow_underprovisioned",
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

//! The power supply and its failure: the table `[device.power]`.

use leyden_sim::{ConfigError, Power, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BankConfig, DumpConfig};

/// More than any drive's dump has pages.
const FAILED_PROGRAMS_MOST: u32 = 1_000_000;

/// Power loss: the capacitors, the consumption of a dump, and its layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The capacitors.
    pub bank: BankConfig,
    /// Power of controller and DRAM during a dump, with the host link down.
    pub base_power: Power,
    /// Power of a plane while its die takes in and programs a page. The energy of a program is
    /// this times its time, so it follows the time that each cell mode takes.
    pub program_power: Power,
    /// Charging power of the bank: until it is full, a drive that protects anything is not ready.
    pub charge_power: Power,
    /// Time until a die is free whose erase or read is broken off at the cut (tRST).
    pub reset: Span,
    /// Where the pages of a dump go.
    pub dump: DumpConfig,
    /// Programs of a dump that may fail: the bank and the blocks for dumps allow for this number of further
    /// pages. They fail with
    /// the chance `nand.faults.program_failures`, and no more of them than this; the page is programmed again.
    pub failed_programs: u32,
    /// Run a drive whose bank cannot keep its promises at worst, and see what it loses.
    pub allow_underprovisioned: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bank: BankConfig::default(),
            // An assumption; no paper gives it.
            base_power: Power::from_mw(2_500),
            // An assumption: 50 mA at 3.3 V, meant to be above what a die draws, for a bank must do for
            // the most. Numonyx's NAND01G-B2B (1 Gbit, SLC) has 20 mA at most.
            program_power: Power::from_mw(165),
            // An assumption: a slow start, beside a drive that boots.
            charge_power: Power::from_mw(2_000),
            // The maximum of tRST in ONFI's timing modes 1 to 5 according to Linux
            // (drivers/mtd/nand/raw/nand_timings.c). That today's flash keeps to it is an
            // assumption.
            reset: Span::from_us(500),
            dump: DumpConfig::default(),
            failed_programs: 0,
            allow_underprovisioned: false,
        }
    }
}

impl Config {
    /// The same, with a dump that spreads its pages over all dies if it does not.
    #[must_use]
    pub fn balanced(&self) -> Self {
        let dump = if self.dump.is_in_place() { DumpConfig::default() } else { self.dump.clone() };
        Self { dump, ..self.clone() }
    }

    /// Checks every value; whether the bank is enough for the drive is for [`crate::provision()`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.bank.check()?;
        let powers = [
            ("base_power", self.base_power),
            ("program_power", self.program_power),
            ("charge_power", self.charge_power),
        ];
        for (key, power) in powers {
            if !(Power::from_mw(1)..=Power::from_mw(1_000_000)).contains(&power) {
                return Err(ConfigError::new(key, format!("{power} is not in 1 mW..=1000 W")));
            }
        }
        if self.reset > Span::from_ms(1_000) {
            return Err(ConfigError::new("reset", format!("{} is more than 1 s", self.reset)));
        }
        if self.failed_programs > FAILED_PROGRAMS_MOST {
            let problem = format!("{} is more than {FAILED_PROGRAMS_MOST}", self.failed_programs);
            return Err(ConfigError::new("failed_programs", problem));
        }
        self.dump.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_scenarios_table() {
        let text = r#"{
            "bank": { "part": "aluminium", "capacitance": "2200 uF", "charge_voltage": "28 V" },
            "base_power": "3 W", "dump": { "policy": "balanced_slc", "program": "180 us" }
        }"#;
        let config: Config = serde_json::from_str(text).unwrap();
        config.check().unwrap();
        assert_eq!(config.base_power, Power::from_mw(3_000));
        assert_eq!(config.dump.name(), "balanced_slc");
        assert!(serde_json::from_str::<Config>(r#"{ "base_power": "3 V" }"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{ "basepower": "3 W" }"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{ "base_power": 3 }"#).is_err());
        let again: Config = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }

    #[test]
    fn impossible_values_name_their_key() {
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().key
        };
        assert_eq!(wrong(|c| c.base_power = Power::ZERO), "base_power");
        assert_eq!(wrong(|c| c.program_power = Power::from_mw(u64::MAX)), "program_power");
        assert_eq!(wrong(|c| c.charge_power = Power::ZERO), "charge_power");
        assert_eq!(wrong(|c| c.reset = Span::from_ms(5_000)), "reset");
        assert_eq!(wrong(|c| c.bank.parts = Some(0)), "bank.parts");
        assert_eq!(wrong(|c| c.failed_programs = 1_000_001), "failed_programs");
        Config::default().check().unwrap();
    }
}

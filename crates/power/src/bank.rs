//! The capacitor bank: parts, voltages, losses, and the energy that is left of it all.

use leyden_sim::{Capacitance, ConfigError, Energy, Power, Ratio, Span, Voltage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The capacitors that power the drive after a cut, in parallel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BankConfig {
    /// The kind of part.
    pub part: Part,
    /// How many of them, in parallel. If neither this nor `capacitance` is given: as many as the
    /// drive needs at worst.
    pub parts: Option<u32>,
    /// Capacitance of the bank when new, instead of a number of parts.
    pub capacitance: Option<Capacitance>,
    /// Rated voltage of another part of this kind; give its `capacitance` too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated_voltage: Option<Voltage>,
    /// Charging voltage of the bank. If not given: the derated voltage of the part.
    pub charge_voltage: Option<Voltage>,
    /// Where the converter stops. If not given: 5.5 V; 3 V for supercapacitors.
    pub minimum_voltage: Option<Voltage>,
    /// Share of the energy that the converter hands on.
    pub efficiency: Ratio,
    /// Share of the capacitance that is lost at the end of the bank's life. If not given: the
    /// part's.
    pub ageing: Option<Ratio>,
}

impl Default for BankConfig {
    fn default() -> Self {
        Self {
            part: Part::default(),
            parts: None,
            capacitance: None,
            rated_voltage: None,
            charge_voltage: None,
            minimum_voltage: None,
            // An assumption.
            efficiency: Ratio::from_percent(90),
            ageing: None,
        }
    }
}

/// A type of capacitor, with values for one part. docs/power.md says which have a source and which are
/// assumptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Polymer tantalum: 180 uF, rated 16 V and charged to 12.8 V, 20 % lost at the end of life.
    #[default]
    TantalumPolymer,
    /// Aluminium electrolytic: 470 uF, rated 35 V and charged to 28 V, 20 % lost at the end of life.
    Aluminium,
    /// Multilayer ceramic (MLCC): 22 uF, of which 4.4 uF remain under bias; rated 35 V and charged
    /// to 25 V, 12.5 % lost at the end of life.
    Ceramic,
    /// Supercapacitor, two cells in series: 1 F, rated 5.4 V and charged to 5 V, 30 % lost at the
    /// end of life.
    Supercapacitor,
}

/// A part's figures.
struct Sheet {
    capacitance: Capacitance,
    rated: Voltage,
    charge: Voltage,
    minimum: Voltage,
    ageing: Ratio,
}

impl Part {
    const fn sheet(self) -> Sheet {
        // An assumption: below, a converter to the 3.3 V of the flash has too little to work with.
        const BUCK_ENDS: Voltage = Voltage::from_mv(5_500);
        match self {
            // Capacitance and rating: KEMET T545H187M016, of a series that is sold for hold-up in SSDs.
            // Derating: KEMET's guideline for polymer capacitors rated above 10 V. Ageing: an
            // assumption, on the safe side of what KEMET says of the series.
            Self::TantalumPolymer => Sheet {
                capacitance: Capacitance::from_uf(180),
                rated: Voltage::from_mv(16_000),
                charge: Voltage::from_mv(12_800),
                minimum: BUCK_ENDS,
                ageing: Ratio::from_percent(20),
            },
            // Assumptions, of no particular part.
            Self::Aluminium => Sheet {
                capacitance: Capacitance::from_uf(470),
                rated: Voltage::from_mv(35_000),
                charge: Voltage::from_mv(28_000),
                minimum: BUCK_ENDS,
                ageing: Ratio::from_percent(20),
            },
            // Assumptions: 22 uF, of which a fifth is left under bias; 12.5 % over its life.
            Self::Ceramic => Sheet {
                capacitance: Capacitance::from_nf(4_400),
                rated: Voltage::from_mv(35_000),
                charge: Voltage::from_mv(25_000),
                minimum: BUCK_ENDS,
                ageing: Ratio::from_ppm(125_000),
            },
            // Assumptions: a module of two cells, used until 70 % is left; a boost converter that
            // works down to 3 V.
            Self::Supercapacitor => Sheet {
                capacitance: Capacitance::from_uf(1_000_000),
                rated: Voltage::from_mv(5_400),
                charge: Voltage::from_mv(5_000),
                minimum: Voltage::from_mv(3_000),
                ageing: Ratio::from_percent(30),
            },
        }
    }

    /// Capacitance of one part when new, under bias.
    pub const fn capacitance(self) -> Capacitance {
        self.sheet().capacitance
    }
}

/// A bank whose values are known to be possible; made by [`BankConfig::bank`] and
/// [`BankConfig::bank_for`].
///
/// ```
/// use leyden_power::BankConfig;
/// use leyden_sim::{Capacitance, Energy, Ratio};
/// // 1/2 x 2 mF x (12^2 - 6^2) V^2 = 108 mJ; 90 % of it, and 80 % of that at the end of life.
/// let config = BankConfig {
///     capacitance: Some("2 mF".parse().unwrap()),
///     charge_voltage: Some("12 V".parse().unwrap()),
///     minimum_voltage: Some("6 V".parse().unwrap()),
///     efficiency: Ratio::from_percent(90),
///     ageing: Some(Ratio::from_percent(20)),
///     ..BankConfig::default()
/// };
/// let bank = config.bank().unwrap().unwrap();
/// assert_eq!(bank.energy(), Energy::from_uj(77_760));
/// assert_eq!(bank.capacitance_for(Energy::from_uj(38_880)), Capacitance::from_uf(1_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    part: Part,
    capacitance: Capacitance,
    charge: Voltage,
    minimum: Voltage,
    efficiency: Ratio,
    ageing: Ratio,
}

/// Farads in nanofarads, volts squared in millivolts squared, and two shares in parts per million,
/// all multiplied, are so many times a picojoule: twice the energy of one.
const PER_PICOJOULE: u128 = 2 * 1_000 * 1_000_000 * 1_000_000;

impl BankConfig {
    /// Checks every value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        if self.parts.is_some() && self.capacitance.is_some() {
            let problem = "given beside bank.capacitance: give one of the two";
            return error("bank.parts", problem.to_owned());
        }
        if let Some(parts) = self.parts
            && !(1..=MOST_PARTS).contains(&parts)
        {
            return error("bank.parts", format!("{parts} is not in 1..={MOST_PARTS}"));
        }
        if let Some(capacitance) = self.capacitance
            && !(Capacitance::from_nf(1)..=MOST_CAPACITANCE).contains(&capacitance)
        {
            let problem = format!("{capacitance} is not in 1 nF..={MOST_CAPACITANCE}");
            return error("bank.capacitance", problem);
        }
        if let Some(rated) = self.rated_voltage
            && !(Voltage::from_mv(1)..=MOST_VOLTAGE).contains(&rated)
        {
            return error("bank.rated_voltage", format!("{rated} is not in 1 mV..={MOST_VOLTAGE}"));
        }
        let (charge, minimum) = (self.charge(), self.minimum());
        let rated = self.rated();
        if charge > rated {
            let problem = format!(
                "{charge} is above the part's rating: {rated} or less, or give bank.rated_voltage of another part"
            );
            return error("bank.charge_voltage", problem);
        }
        if minimum == Voltage::default() {
            let problem = "no converter works down to 0 V: give the lowest voltage that it can use";
            return error("bank.minimum_voltage", problem.to_owned());
        }
        if minimum >= charge {
            let problem = format!(
                "{minimum} is not below the {charge} that the bank is charged to: lower it, or \
                 raise bank.charge_voltage"
            );
            return error("bank.minimum_voltage", problem);
        }
        if self.efficiency == Ratio::ZERO || self.efficiency > Ratio::ONE {
            let problem = format!("{} is not above 0 % and up to 100 %", self.efficiency);
            return error("bank.efficiency", problem);
        }
        if let Some(ageing) = self.ageing
            && ageing >= Ratio::ONE
        {
            return error("bank.ageing", format!("{ageing} leaves nothing: give less than 100 %"));
        }
        Ok(())
    }

    /// The bank, or `None` if its size is left to the need.
    pub fn bank(&self) -> Result<Option<Bank>, ConfigError> {
        self.check()?;
        let of_parts = |parts: u32| self.part.capacitance().saturating_mul(parts.into());
        Ok(self.capacitance.or(self.parts.map(of_parts)).map(|c| self.with(c)))
    }

    /// The bank with as many parts as hold `energy`, and no more.
    pub fn bank_for(&self, energy: Energy) -> Result<Bank, ConfigError> {
        self.check()?;
        let parts = self.with(self.part.capacitance()).parts_for(energy);
        if parts > u64::from(MOST_PARTS) {
            let problem = format!(
                "{:.3} J take {parts} parts, more than {MOST_PARTS}: protect less, dump with \
                 `balanced`, or name another part",
                energy.as_joules_f64()
            );
            return Err(ConfigError::new("bank.part", problem));
        }
        Ok(self.with(self.part.capacitance().saturating_mul(parts)))
    }

    fn with(&self, capacitance: Capacitance) -> Bank {
        Bank {
            part: self.part,
            capacitance,
            charge: self.charge(),
            minimum: self.minimum(),
            efficiency: self.efficiency,
            ageing: self.ageing.unwrap_or(self.part.sheet().ageing),
        }
    }

    fn rated(&self) -> Voltage {
        self.rated_voltage.unwrap_or(self.part.sheet().rated)
    }

    /// The configured voltage, or the kind's derating of its rating.
    fn charge(&self) -> Voltage {
        let sheet = self.part.sheet();
        let derated =
            || Voltage::from_mv(self.rated().as_mv() * sheet.charge.as_mv() / sheet.rated.as_mv());
        self.charge_voltage.unwrap_or_else(derated)
    }

    fn minimum(&self) -> Voltage {
        self.minimum_voltage.unwrap_or(self.part.sheet().minimum)
    }
}

/// More than stands on any board.
const MOST_PARTS: u32 = 1_000_000;
/// 1e5 mV: [`Bank::per_nanofarad`] reckons with its square.
const MOST_VOLTAGE: Voltage = Voltage::from_mv(100_000);
const MOST_CAPACITANCE: Capacitance = Capacitance::from_uf(1_000_000_000);

impl Bank {
    /// Its capacitance when new.
    pub const fn capacitance(&self) -> Capacitance {
        self.capacitance
    }

    /// The voltage that it is charged to.
    pub const fn charge_voltage(&self) -> Voltage {
        self.charge
    }

    /// Where the converter stops.
    pub const fn minimum_voltage(&self) -> Voltage {
        self.minimum
    }

    /// The parts that it takes, rounded up.
    pub const fn parts(&self) -> u64 {
        self.capacitance.as_nf().div_ceil(self.part.capacitance().as_nf())
    }

    /// The energy that it hands on at the end of its life, between the two voltages:
    /// `1/2 C (V_charge^2 - V_min^2) x efficiency x (1 - ageing)`, rounded down.
    pub fn energy(&self) -> Energy {
        let picojoules =
            u128::from(self.capacitance.as_nf()) * self.per_nanofarad() / PER_PICOJOULE;
        Energy::from_pj(u64::try_from(picojoules).unwrap_or(u64::MAX))
    }

    /// The capacitance (when new) that hands on `energy` with these voltages and losses, rounded up.
    pub fn capacitance_for(&self, energy: Energy) -> Capacitance {
        let nanofarads =
            (u128::from(energy.as_pj()) * PER_PICOJOULE).div_ceil(self.per_nanofarad());
        Capacitance::from_nf(u64::try_from(nanofarads).unwrap_or(u64::MAX))
    }

    /// The parts that hand on `energy`, at least one.
    pub fn parts_for(&self, energy: Energy) -> u64 {
        self.capacitance_for(energy).as_nf().div_ceil(self.part.capacitance().as_nf()).max(1)
    }

    /// How long `power` takes to charge the bank, when new, from its minimum voltage.
    pub fn charge_time(&self, power: Power) -> Span {
        let lossless = Self { efficiency: Ratio::ONE, ageing: Ratio::ZERO, ..*self };
        power.time_to_bring(lossless.energy())
    }

    /// The energy of a nanofarad, in units of [`PER_PICOJOULE`]. At most 1e10 x 1e6 x 1e6, which
    /// leaves room for 1e16 nF.
    fn per_nanofarad(&self) -> u128 {
        let square = |voltage: Voltage| u128::from(voltage.as_mv()).pow(2);
        let left = Ratio::ONE.as_ppm() - self.ageing.as_ppm();
        (square(self.charge) - square(self.minimum))
            * u128::from(self.efficiency.as_ppm())
            * u128::from(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(parts: u32, part: Part) -> Bank {
        let config = BankConfig { part, parts: Some(parts), ..BankConfig::default() };
        config.bank().unwrap().unwrap()
    }

    #[test]
    fn parts_hold_what_their_sheets_say() {
        // 1/2 x 1.8 mF x (12.8^2 - 5.5^2) = 120.231 mJ; x 0.9 x 0.8 = 86.56632 mJ.
        let tantalum = bank(10, Part::TantalumPolymer);
        assert_eq!(tantalum.energy(), Energy::from_nj(86_566_320));
        assert_eq!(tantalum.capacitance(), Capacitance::from_uf(1_800));
        // 1/2 x 470 uF x (28^2 - 5.5^2) = 177.13125 mJ; x 0.72 = 127.5345 mJ.
        assert_eq!(bank(1, Part::Aluminium).energy(), Energy::from_nj(127_534_500));
        // 1/2 x 4.4 uF x (25^2 - 5.5^2) = 1.30845 mJ; x 0.9 x 0.875 = 1.030404375 mJ.
        assert_eq!(bank(1, Part::Ceramic).energy(), Energy::from_pj(1_030_404_375));
        // 1/2 x 1 F x (5^2 - 3^2) = 8 J; x 0.9 x 0.7 = 5.04 J.
        assert_eq!(bank(1, Part::Supercapacitor).energy(), Energy::from_uj(5_040_000));
    }

    #[test]
    fn it_charges_by_what_it_stores_when_new() {
        // 120.231 mJ at 2 W.
        let time = bank(10, Part::TantalumPolymer).charge_time(Power::from_mw(2_000));
        assert_eq!(time, Span::from_ns(60_115_500));
    }

    #[test]
    fn a_bank_for_an_energy_has_no_part_too_many() {
        let config = BankConfig::default();
        // One part holds 8.656632 mJ.
        let one = Energy::from_nj(8_656_632);
        assert_eq!(config.bank_for(one).unwrap().parts(), 1);
        assert_eq!(config.bank_for(one + Energy::from_pj(1)).unwrap().parts(), 2);
        assert_eq!(config.bank_for(Energy::ZERO).unwrap().parts(), 1);
        assert_eq!(config.bank_for(Energy::MAX).unwrap_err().key, "bank.part");
        assert_eq!(config.bank(), Ok(None));
    }

    #[test]
    fn impossible_values_name_their_key() {
        let volts = |v| Some(Voltage::from_mv(v));
        let wrong = |change: fn(&mut BankConfig)| {
            let mut config = BankConfig::default();
            change(&mut config);
            config.bank().unwrap_err().key
        };
        assert_eq!(wrong(|c| c.parts = Some(0)), "bank.parts");
        assert_eq!(wrong(|c| c.parts = Some(u32::MAX)), "bank.parts");
        assert_eq!(wrong(|c| c.capacitance = Some(Capacitance::default())), "bank.capacitance");
        let both = |c: &mut BankConfig| {
            (c.parts, c.capacitance) = (Some(1), Some(Capacitance::from_uf(1)));
        };
        assert_eq!(wrong(both), "bank.parts");
        assert_eq!(
            wrong(|c| c.charge_voltage = Some(Voltage::from_mv(17_000))),
            "bank.charge_voltage"
        );
        assert_eq!(
            wrong(|c| c.minimum_voltage = Some(Voltage::from_mv(0))),
            "bank.minimum_voltage"
        );
        assert_eq!(wrong(|c| c.efficiency = Ratio::ZERO), "bank.efficiency");
        assert_eq!(wrong(|c| c.efficiency = Ratio::from_percent(101)), "bank.efficiency");
        assert_eq!(wrong(|c| c.ageing = Some(Ratio::ONE)), "bank.ageing");
        assert_eq!(
            wrong(|c| c.rated_voltage = Some(Voltage::from_mv(100_001))),
            "bank.rated_voltage"
        );
        // Another part of the kind: 35 V, charged to 80 % of that as the kind is, and to 28 V if so told.
        let other = BankConfig { rated_voltage: volts(35_000), ..BankConfig::default() };
        assert_eq!(other.charge(), Voltage::from_mv(28_000));
        let told = BankConfig { charge_voltage: volts(30_000), ..other.clone() };
        assert!(told.check().is_ok());
        let above = BankConfig { charge_voltage: volts(36_000), ..other };
        assert_eq!(above.check().unwrap_err().key, "bank.charge_voltage");
        let level = BankConfig {
            charge_voltage: volts(5_500),
            minimum_voltage: volts(5_500),
            ..BankConfig::default()
        };
        let error = level.bank().unwrap_err();
        assert_eq!(error.key, "bank.minimum_voltage");
        assert!(error.problem.contains("5.5 V is not below"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn capacitance_and_energy_are_inverses(
            microfarads in 1_u64..1_000_000_000, charge in 2_u64..35_000, below in 1_u64..35_000,
            efficiency in 1_u64..=1_000_000, ageing in 0_u64..1_000_000,
        ) {
            let config = BankConfig {
                part: Part::Aluminium,
                capacitance: Some(Capacitance::from_uf(microfarads)),
                charge_voltage: Some(Voltage::from_mv(charge)),
                minimum_voltage: Some(Voltage::from_mv(charge.saturating_sub(below).max(1))),
                efficiency: Ratio::from_ppm(efficiency),
                ageing: Some(Ratio::from_ppm(ageing)),
                ..BankConfig::default()
            };
            let bank = config.bank().unwrap().unwrap();
            let needed = bank.capacitance_for(bank.energy());
            proptest::prop_assert!(needed <= bank.capacitance());
            let rebuilt = Bank { capacitance: needed, ..bank };
            proptest::prop_assert_eq!(rebuilt.energy(), bank.energy());
        }
    }
}

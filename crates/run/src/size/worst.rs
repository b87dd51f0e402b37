//! The capacitors that a drive needs at worst, by arithmetic alone: every protection with every
//! dump and every part, and how far each assumption moves the scenario's own.
//!
//! **Invariants**: nothing is run; need and bank are those by which a drive is accepted or refused
//! ([`leyden_power::provision()`]). Series resistance, board and temperature are beside that model.

use leyden_device::{Config, provision_of};
use leyden_power::{Bank, BankConfig, Config as PowerConfig, Part};
use leyden_sim::{Energy, Power, Ratio, Span, Voltage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variants::{Variant, variants};
use crate::RunError;
use crate::run::in_device;
use leyden_config::Scenario;

const PARTS: [Part; 4] =
    [Part::TantalumPolymer, Part::Aluminium, Part::Ceramic, Part::Supercapacitor];
/// A drive's power draw while the cut is not detected: an assumption, the active power of a data
/// centre drive.
const HOST_POWER: Power = Power::from_mw(8_000);

/// All that a drive may need at worst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstCases {
    /// The scenario's name.
    pub name: String,
    /// The drive's logical capacity.
    pub capacity_bytes: u64,
    /// Pages of the mapping table.
    pub table_pages: u64,
    /// The dump policies by the protections by the parts.
    pub banks: Vec<WorstBank>,
    /// The scenario's own bank under other assumptions; the widest range first.
    pub ranges: Vec<Range>,
}

/// The bank that one variant of the drive needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstBank {
    /// Protection of the mapping table.
    pub protection: String,
    /// Share of the table's pages that is protected, if the policy has one.
    pub protected: Option<f64>,
    /// Where dumps go.
    pub dump: String,
    /// The kind of part.
    pub part: String,
    /// This is the scenario's own.
    pub own: bool,
    /// Pages to dump.
    pub pages: u64,
    /// From the cut until all is on flash.
    pub dump_ms: f64,
    /// Its time.
    pub energy_mj: f64,
    /// The capacitance that holds it.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
    /// The parts if their series resistance counts, too; none if no number of them does.
    pub parts_with_esr: Option<u64>,
    /// The board that these parts cover.
    pub area_cm2: f64,
    /// Their height.
    pub height_mm: f64,
    /// Why there can be no such drive.
    pub problem: Option<String>,
}

/// The scenario's own bank, with one assumption at its least and at its most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The assumption.
    pub what: String,
    /// Its values, with units.
    pub values: [String; 2],
    /// Parts with these values.
    pub parts: [u64; 2],
    /// Capacitance with these values.
    pub capacitance_uf: [f64; 2],
}

/// The worst cases of `scenario`'s drive. Without a table `[device.power]`, its defaults are taken.
///
/// # Errors
/// If there can be no such drive.
pub fn worst_cases(scenario: &Scenario) -> Result<WorstCases, RunError> {
    let mut scenario = scenario.clone();
    let spare = provision_of(&scenario.device).map_err(in_device)?;
    let capacity_bytes = u64::from(spare.mapping_units) * scenario.device.ftl.mapping_unit.get();
    scenario.device.ftl.capacity = Some(leyden_sim::Bytes::new(capacity_bytes));
    let power = scenario.device.power.get_or_insert_default();
    power.allow_underprovisioned = false;
    (power.bank.parts, power.bank.capacitance) = (None, None);
    let bank = power.bank.clone();
    let geometry = scenario.device.nand.geometry(scenario.device.ftl.mapping_unit);
    let per_page = geometry.map_or(1, |it| scenario.device.ftl.map.entries_per_page(&it));
    let variants = variants(&scenario, &spare);
    let banks = variants.iter().flat_map(|it| PARTS.map(|part| worst_bank(it, &bank, part)));
    let banks = banks.collect();
    let own = variants.iter().find(|variant| variant.sized.own && variant.sized.problem.is_none());
    Ok(WorstCases {
        name: scenario.name.clone(),
        capacity_bytes,
        table_pages: u64::from(spare.mapping_units.div_ceil(per_page)),
        banks,
        ranges: own.map(|own| ranges(&own.scenario.device)).unwrap_or_default(),
    })
}

fn worst_bank(variant: &Variant, own: &BankConfig, part: Part) -> WorstBank {
    let sized = &variant.sized;
    let mut row = WorstBank {
        protection: sized.protection.clone(),
        protected: sized.protected,
        dump: sized.dump.clone(),
        part: name(part),
        own: sized.own && part == own.part,
        problem: sized.problem.clone(),
        ..WorstBank::default()
    };
    if row.problem.is_some() {
        return row;
    }
    let mut device = variant.scenario.device.clone();
    if let Some(power) = &mut device.power {
        // Voltages and ageing are those of a part.
        let other = BankConfig { part, efficiency: own.efficiency, ..BankConfig::default() };
        power.bank = if part == own.part { own.clone() } else { other };
    }
    match Need::of(&device, &Beside::default()) {
        Ok(need) => {
            let body = part.body();
            let parts = need.parts_with_esr();
            let area_um2 = f64::from(body.length_um) * f64::from(body.width_um);
            row.pages = need.pages;
            row.dump_ms = need.time.as_secs_f64() * 1e3;
            row.energy_mj = need.energy.as_joules_f64() * 1e3;
            row.capacitance_uf = need.bank.capacitance_for(need.energy).as_uf_f64();
            row.parts = need.bank.parts_for(need.energy);
            row.parts_with_esr = parts;
            row.area_cm2 = area_um2 * parts.unwrap_or(row.parts) as f64 / 1e8;
            row.height_mm = f64::from(body.height_um) / 1e3;
        }
        Err(problem) => row.problem = Some(problem),
    }
    row
}

fn name(part: Part) -> String {
    let value = serde_json::to_value(part).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Effects that the model leaves out.
#[derive(Clone, Copy)]
struct Beside {
    /// How long the host's power level is drawn until the cut is detected.
    detection: Span,
    /// Share of the capacitance that is lost in the cold.
    cold: f64,
    /// Series resistance, over that of a new part.
    esr: f64,
}

impl Default for Beside {
    fn default() -> Self {
        Self { detection: Span::ZERO, cold: 0.0, esr: 1.0 }
    }
}

/// The needs of a drive, and a part of its bank.
struct Need {
    pages: u64,
    time: Span,
    energy: Energy,
    /// One part.
    bank: Bank,
    efficiency: f64,
    /// All dies program, and the controller works.
    peak_w: f64,
    beside: Beside,
    esr_ohm: f64,
}

impl Need {
    fn of(device: &Config, beside: &Beside) -> Result<Self, String> {
        let text = |error: leyden_sim::ConfigError| error.to_string();
        let need = provision_of(device).map_err(text)?.supply.expect("there is a power table").need;
        let power = device.power.as_ref().expect("there is a power table");
        let part = power.bank.part;
        let one = BankConfig { parts: Some(1), capacitance: None, ..power.bank.clone() };
        let bank = one.bank().map_err(text)?.expect("a bank of one part");
        let energy = need.energy + HOST_POWER.during(beside.detection);
        let kept = 1.0 - beside.cold;
        let energy = Energy::from_pj((energy.as_pj() as f64 / kept).ceil() as u64);
        Ok(Self {
            pages: need.pages,
            time: need.time,
            energy,
            bank,
            efficiency: power.bank.efficiency.as_f64(),
            peak_w: peak_w(device, power),
            beside: *beside,
            esr_ohm: f64::from(part.body().esr_mohm) / 1e3,
        })
    }

    /// The parts that hold the need in spite of their resistance: the voltage behind it may not fall below the
    /// converter's minimum while all dies program, and what it turns into heat is lost.
    fn parts_with_esr(&self) -> Option<u64> {
        let (charge, minimum) =
            (volts(self.bank.charge_voltage()), volts(self.bank.minimum_voltage()));
        let one = self.bank.energy().as_joules_f64();
        let does = |parts: u64| {
            let ohm = self.esr_ohm * self.beside.esr / parts as f64;
            let amperes = |at: f64| self.peak_w / self.efficiency / at;
            let end = minimum + amperes(minimum) * ohm;
            if end >= charge {
                return false;
            }
            let usable = (charge.powi(2) - end.powi(2)) / (charge.powi(2) - minimum.powi(2));
            let middle = f64::midpoint(charge, end);
            let heat = amperes(middle) * ohm / middle;
            one * parts as f64 * usable * (1.0 - heat) >= self.energy.as_joules_f64()
        };
        let least = self.bank.parts_for(self.energy);
        let mut enough = least;
        while !does(enough) {
            enough = enough.checked_mul(2).filter(|&parts| parts <= 1_000_000)?;
        }
        let mut short = if enough == least { return Some(least) } else { enough / 2 };
        while enough - short > 1 {
            let middle = short.midpoint(enough);
            if does(middle) { enough = middle } else { short = middle }
        }
        Some(enough)
    }
}

pub(super) fn volts(voltage: Voltage) -> f64 {
    voltage.as_mv() as f64 / 1e3
}

pub(super) fn peak_w(device: &Config, power: &PowerConfig) -> f64 {
    let nand = &device.nand;
    let planes = if nand.multi_plane { nand.planes_per_die } else { 1 };
    let programs = f64::from(nand.channels * nand.dies_per_channel * planes);
    (power.base_power.as_mw() as f64 + programs * power.program_power.as_mw() as f64) / 1e3
}

/// Each assumption of docs/power.md at two plausible values, the others as configured.
fn ranges(device: &Config) -> Vec<Range> {
    let power = device.power.as_ref().expect("there is a power table");
    let minimum = power.bank.bank_for(Energy::from_pj(1)).map(|bank| bank.minimum_voltage());
    let minimum = minimum.unwrap_or_default();
    let of_minimum = |percent: u64| Voltage::from_mv(minimum.as_mv() * percent / 100);
    let mut ranges = Vec::new();
    let mut key = |what: &str, values: [String; 2], set: &dyn Fn(&mut PowerConfig, usize)| {
        let devices = [0, 1].map(|at| {
            let mut device = device.clone();
            set(device.power.as_mut().expect("there is a power table"), at);
            device
        });
        ranges.extend(range(
            what,
            values,
            [(&devices[0], Beside::default()), (&devices[1], Beside::default())],
        ));
    };
    let base = [1_500, 4_000].map(Power::from_mw);
    key("power.base_power", base.map(|it| it.to_string()), &|power, at| {
        power.base_power = base[at];
    });
    let program = [33, 330].map(Power::from_mw);
    key("power.program_power", program.map(|it| it.to_string()), &|power, at| {
        power.program_power = program[at];
    });
    let reset = [100, 1_000].map(Span::from_us);
    key("power.reset", reset.map(|it| it.to_string()), &|power, at| {
        power.reset = reset[at];
    });
    let efficiency = [95, 80].map(Ratio::from_percent);
    key("power.bank.efficiency", efficiency.map(|it| it.to_string()), &|power, at| {
        power.bank.efficiency = efficiency[at];
    });
    let ageing = [0, 40].map(Ratio::from_percent);
    key("power.bank.ageing", ageing.map(|it| it.to_string()), &|power, at| {
        power.bank.ageing = Some(ageing[at]);
    });
    let minima = [80, 125].map(of_minimum);
    key("power.bank.minimum_voltage", minima.map(|it| it.to_string()), &|power, at| {
        power.bank.minimum_voltage = Some(minima[at]);
    });
    let mut beside = |what: &str, values: [&str; 2], besides: [Beside; 2]| {
        let [low, high] = besides;
        ranges.extend(range(what, values.map(str::to_owned), [(device, low), (device, high)]));
    };
    let usual = Beside::default();
    let late = Beside { detection: Span::from_ms(5), ..usual };
    beside("time to detect the cut, at 8 W", ["0 ms", "5 ms"], [usual, late]);
    beside(
        "capacitance lost in the cold",
        ["0 %", "15 %"],
        [usual, Beside { cold: 0.15, ..usual }],
    );
    let (none, double) = (Beside { esr: 0.0, ..usual }, Beside { esr: 2.0, ..usual });
    beside("series resistance, over a new part's", ["0", "2"], [none, double]);
    ranges.sort_by_key(|range| std::cmp::Reverse(range.parts[0].abs_diff(range.parts[1])));
    ranges
}

/// None if a value is impossible for this drive.
fn range(what: &str, values: [String; 2], drives: [(&Config, Beside); 2]) -> Option<Range> {
    let [low, high] = drives.map(|(device, beside)| Need::of(device, &beside).ok());
    let (low, high) = (low?, high?);
    let uf = |need: &Need| need.bank.capacitance_for(need.energy).as_uf_f64();
    Some(Range {
        what: what.to_owned(),
        values,
        parts: [low.parts_with_esr()?, high.parts_with_esr()?],
        capacitance_uf: [uf(&low), uf(&high)],
    })
}

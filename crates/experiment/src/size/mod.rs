//! How much capacitance a drive and its workload need, and what is lost with less.
//!
//! **What lives here**: the variants of a scenario's drive, by dump policy and by protection of the
//! mapping table; their worst cases by arithmetic, and short runs of some of them. **What doesn't**: the
//! arithmetic ([`leyden_power`]), running, showing.
//!
//! **Invariants**: every variant offers the host the same capacity and has the same spare blocks. What
//! dumps and mapping pages keep back is added to the flash, so that speeds can be compared.

mod variants;

use leyden_power::BankConfig;
use leyden_sim::{Bytes, Energy, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Bank, Spread, WithLess, Worst};
use crate::run::{Bounds, in_device, power, run_within};
use crate::scenario::Scenario;
use crate::{Hooks, Outcome, Phase, RunError};
use variants::{Variant, variants};

/// Banks that hold so much of the worst case are asked what they lose, in percent.
const LESS: [u64; 5] = [100, 75, 50, 25, 10];

/// What a drive and its workload need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizing {
    /// The scenario's name.
    pub name: String,
    /// What everything random came from.
    pub seed: u64,
    /// Each variant was run for so many commands, or a few thousand more.
    pub commands: u64,
    /// The drive's configuration, with every default filled in.
    pub device: serde_json::Value,
    /// The scenario's own capacitors: as configured, or as many as the drive needs at worst.
    pub bank: Bank,
    /// The variants of the drive: the dump policies by the protections of the mapping table.
    pub variants: Vec<SizedDrive>,
    /// What cuts would lose with less than the scenario's drive needs at worst.
    pub with_less: Vec<WithLess>,
}

/// A variant of the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizedDrive {
    /// Protection of the mapping table.
    pub protection: String,
    /// Share of the table's pages that is protected, if the policy has one.
    pub protected: Option<f64>,
    /// Where dumps go.
    pub dump: String,
    /// This is the scenario's own drive.
    pub own: bool,
    /// Blocks of each die that are kept back for dumps and mapping pages.
    pub kept_blocks_per_die: u32,
    /// What a dump needs at worst.
    pub worst: Option<Worst>,
    /// Why there can be no such drive.
    pub problem: Option<String>,
    /// What a run showed. The scenario's dump policy is run with every protection, and its protection
    /// with every dump policy.
    pub measured: Option<Shown>,
}

/// What a run of a variant showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// Reads and writes per simulated second.
    pub iops: f64,
    /// Mean latency of writes.
    pub write_mean_us: f64,
    /// Their 99th percentile.
    pub write_p99_us: f64,
    /// Write amplification.
    pub waf: f64,
    /// The most bytes that a cut would have had to save.
    pub protected_bytes_peak: u64,
    /// How long dumps would have taken.
    pub dump_ms: Spread,
    /// What they would have taken.
    pub energy_mj: Spread,
    /// The capacitance that holds the most of that.
    pub capacitance_uf: f64,
    /// The parts that this takes.
    pub parts: u64,
    /// Until the drive was ready again after the cut that ended the run.
    pub ready_ms: f64,
    /// Of that, until its state was rebuilt from flash; the bank is charged meanwhile.
    pub recovery_ms: f64,
}

/// How far a sizing is, in 0..=1, and which variant runs.
pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

/// Sizes the capacitors of `scenario`'s drive for its workload, with runs of some `commands`. True if it
/// was cancelled: then variants are missing.
///
/// Without a table `[device.power]`, its defaults are taken.
pub fn size(
    scenario: &Scenario,
    commands: u64,
    hooks: &Hooks<'_>,
    progress: Progress<'_>,
) -> Result<(Sizing, bool), RunError> {
    let mut scenario = scenario.clone();
    let spare = leyden_device::provision_of(&scenario.device).map_err(in_device)?;
    let power = scenario.device.power.get_or_insert_default().clone();
    let own = leyden_device::provision_of(&scenario.device).map_err(in_device)?;
    let supply = own.supply.expect("there is a power table");
    let unit = scenario.device.ftl.mapping_unit.get();
    scenario.device.ftl.capacity = Some(Bytes::new(u64::from(spare.mapping_units) * unit));
    // A snapshot is of one configuration; content is for runs to verify.
    scenario.precondition.snapshot_file = None;
    scenario.run.stamps = false;
    // The dumps thought through are of moments, and the cut made ends the run.
    scenario.run.cut.clear();

    let mut sizing = Sizing {
        name: scenario.name.clone(),
        seed: scenario.seed,
        commands,
        device: serde_json::to_value(&scenario.device).unwrap_or_default(),
        bank: power::bank(&supply, power.bank.part),
        ..Sizing::default()
    };
    if let Some(power) = &mut scenario.device.power {
        let bank = BankConfig { parts: None, capacitance: None, ..power.bank.clone() };
        (power.bank, power.allow_underprovisioned) = (bank, false);
    }
    let mut banks: Vec<Energy> = LESS.map(|percent| part_of(supply.need.energy, percent)).into();
    if supply.shortfall.is_some() {
        banks.push(supply.bank.energy());
    }

    let variants = variants(&scenario, &spare);
    let runs = variants.iter().filter(|variant| variant.is_run()).count();
    let mut done = 0;
    for variant in variants {
        let mut sized = variant.sized.clone();
        if variant.is_run() {
            let bounds =
                Bounds { limit: Some(commands), banks: if sized.own { &banks } else { &[] } };
            let mut tell = |phase, fraction: f64| {
                let of_run = match phase {
                    Phase::Preconditioning => fraction / 2.0,
                    Phase::Running => f64::midpoint(1.0, fraction),
                };
                progress(&variant.label(), (f64::from(done) + of_run) / runs as f64);
            };
            let mut watched = Hooks { cancel: hooks.cancel, progress: Some(&mut tell) };
            match run_within(&variant.scenario, &mut watched, bounds) {
                Ok(outcome) if outcome.interrupted => return Ok((sizing, true)),
                Ok(outcome) => take(&mut sized, &mut sizing, outcome),
                Err(RunError::Interrupted) => return Ok((sizing, true)),
                Err(RunError::Config { problem, .. }) if !sized.own => {
                    sized.problem = Some(problem);
                }
                Err(error) => return Err(error),
            }
            done += 1;
        }
        sizing.variants.push(sized);
    }
    Ok((sizing, false))
}

fn part_of(energy: Energy, percent: u64) -> Energy {
    Energy::from_pj(Ratio::from_percent(percent).of(energy.as_pj()))
}

/// What a run showed of its variant.
fn take(sized: &mut SizedDrive, sizing: &mut Sizing, outcome: Outcome) {
    let (host, waf) = (&outcome.record.host, outcome.record.flash.waf);
    let (Some(power), Some(recovery)) = (outcome.record.power, outcome.record.recovery) else {
        return; // a drive with a power table says both
    };
    sized.measured = Some(Shown {
        iops: host.iops,
        write_mean_us: host.write_latency_us.mean,
        write_p99_us: host.write_latency_us.p99,
        waf,
        protected_bytes_peak: power.protected_bytes_peak,
        dump_ms: power.dump_ms,
        energy_mj: power.energy_mj,
        capacitance_uf: power.capacitance_uf,
        parts: power.parts,
        ready_ms: recovery.time_ms.max,
        recovery_ms: recovery.scan_ms.max,
    });
    if sized.own {
        sizing.with_less = power.with_less;
    }
}

impl Variant {
    /// Whether it is run, and not only computed.
    fn is_run(&self) -> bool {
        self.sized.problem.is_none() && (self.own_dump || self.own_protection)
    }

    fn label(&self) -> String {
        let share = self.sized.protected.map(|share| format!(" {} %", share * 100.0));
        format!("{}{}, {}", self.sized.protection, share.unwrap_or_default(), self.sized.dump)
    }
}

#[cfg(test)]
mod tests;

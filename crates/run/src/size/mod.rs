//! How much capacitance a drive and its workload need, and what is lost with less.
//!
//! **What lives here**: the variants of a scenario's drive, by dump policy and by protection of the
//! mapping table; their worst cases by arithmetic, and short runs of some of them. **What doesn't**: the
//! arithmetic ([`leyden_power`]), running, showing.
//!
//! **Invariants**: every variant offers the host the same capacity and has the same spare blocks. What
//! dumps and mapping pages keep back is added to the flash, so that speeds can be compared.

mod discharge;
mod fleet;
mod variants;
mod worst;
mod zones;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use leyden_power::BankConfig;
use leyden_sim::{Bytes, Energy, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{Bounds, Watch, each, in_device, needs_bytes, power, run_within};
use crate::{Hooks, Outcome, Plan, RunError};
pub use discharge::{Discharge, discharge};
pub use fleet::{Fleet, FleetAge, FleetMargin, fleet};
use leyden_config::Scenario;
use leyden_record::{Bank, Spread, WithLess, Worst};
use variants::{Variant, variants};
pub use worst::{Range, WorstBank, WorstCases, worst_cases};
pub use zones::{SizedRegion, ZoneSizing, ZonesFor};

/// Banks of a table of losses: they hold so much of the worst case, in percent.
pub const LESS: [u64; 5] = [100, 75, 50, 25, 10];
/// Banks of a curve of losses, about equally far apart on a logarithmic axis.
pub const CURVE: [u64; 21] =
    [100, 85, 70, 60, 50, 42, 35, 30, 25, 21, 18, 15, 12, 10, 8, 7, 6, 5, 4, 3, 2];

/// The needs of a drive and its workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sizing {
    /// The scenario's name.
    pub name: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Each variant was run for so many commands, or a few thousand more.
    pub commands: u64,
    /// The drive's configuration, with every default filled in.
    pub device: serde_json::Value,
    /// The scenario's own capacitors: as configured, or as many as the drive needs at worst.
    pub bank: Bank,
    /// The variants of the drive: the dump policies by the protections of the mapping table.
    pub variants: Vec<SizedDrive>,
    /// The losses of cuts with less than the scenario's drive needs at worst.
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
    /// The needs of a dump at worst.
    pub worst: Option<Worst>,
    /// Why there can be no such drive.
    pub problem: Option<String>,
    /// The measurements of a run. The scenario's dump policy is run with every protection, and its
    /// protection with every dump policy.
    pub measured: Option<Shown>,
}

/// The measurements of a run of a variant.
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
    /// Their needs.
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

/// How many runs to make at once, and how a caller watches and stops them.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Threads, at most.
    pub jobs: usize,
    /// Once true, no further run is begun and those under way end soon.
    pub cancel: &'a AtomicBool,
    /// Told from any thread which variant runs, and how far the sizing is, in 0..=1.
    pub progress: &'a (dyn Fn(&str, f64) + Sync),
}

/// Sizes the capacitors of `scenario`'s drive for its workload, with runs of some `commands`; banks that hold so
/// many `percents` of the worst case are asked what they lose. True if it was cancelled: then variants are missing.
///
/// Without a table `[device.power]`, its defaults are taken.
pub fn size(
    scenario: &Scenario,
    commands: u64,
    percents: &[u64],
    watched: &Watched<'_>,
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
    scenario.run.faults.clear();

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
    let banks = percents.iter().map(|&percent| part_of(supply.need.energy, percent));
    let mut banks: Vec<Energy> = banks.collect();
    if supply.shortfall.is_some() {
        banks.push(supply.bank.energy());
    }

    let variants = variants(&scenario, &spare);
    let mut made = make(&variants, commands, &banks, watched);
    for (index, variant) in variants.into_iter().enumerate() {
        let mut sized = variant.sized.clone();
        if variant.is_run() {
            match made.remove(&index) {
                Some(Ok(Made::Outcome(outcome))) => take(&mut sized, &mut sizing, *outcome),
                Some(Ok(Made::Impossible(problem))) => sized.problem = Some(problem),
                Some(Err(RunError::Interrupted)) | None => return Ok((sizing, true)),
                Some(Err(error)) => return Err(error),
            }
        }
        sizing.variants.push(sized);
    }
    Ok((sizing, false))
}

/// Sizes the capacitors of `scenario`'s zoned drive. True if it was cancelled: then speeds are missing.
///
/// Without a table `[device.power]`, its defaults are taken.
///
/// # Errors
/// If the scenario can't be run.
pub fn size_zones(
    scenario: &Scenario,
    commands: u64,
    watched: &Watched<'_>,
) -> Result<(ZoneSizing, bool), RunError> {
    zones::size(scenario, commands, watched)
}

/// The result of a run.
enum Made {
    Outcome(Box<Outcome>),
    /// There can be no such drive.
    Impossible(String),
}

/// Runs those of `variants` that are to be run; by their place. Some are missing if it was cancelled, or if
/// one before them failed.
fn make(
    variants: &[Variant],
    commands: u64,
    banks: &[Energy],
    watched: &Watched<'_>,
) -> BTreeMap<usize, Result<Made, RunError>> {
    let runs: Vec<usize> = (0..variants.len()).filter(|&at| variants[at].is_run()).collect();
    let progress = |run: usize, done| (watched.progress)(&variants[runs[run]].label(), done);
    // Each drive has a configuration of its own: none is told of its snapshot.
    let plan = Plan {
        jobs: watched.jobs,
        cancel: watched.cancel,
        progress: &progress,
        note: &|_, _| {},
        cache: None,
    };
    let watch = Watch::new(runs.len(), &plan);
    let sizes: Vec<u64> =
        runs.iter().map(|&at| needs_bytes(&variants[at].scenario, &plan)).collect();
    let made = each(&plan, &sizes, |run| {
        let variant = &variants[runs[run]];
        let banks = if variant.sized.own { banks } else { &[] };
        let mut tell = |phase, fraction| watch.tell(run, phase, fraction);
        let mut hooks =
            Hooks { cancel: Some(watched.cancel), progress: Some(&mut tell), ..Hooks::default() };
        let bounds = Bounds { limit: Some(commands), banks, ..Bounds::default() };
        match run_within(&variant.scenario, &mut hooks, bounds) {
            Ok(outcome) if outcome.interrupted => Err(RunError::Interrupted),
            Ok(outcome) => Ok(Made::Outcome(Box::new(outcome))),
            Err(RunError::Config { problem, .. }) if !variant.sized.own => {
                Ok(Made::Impossible(problem))
            }
            Err(error) => Err(error),
        }
    });
    runs.into_iter().zip(made).filter_map(|(at, made)| Some((at, made?))).collect()
}

fn part_of(energy: Energy, percent: u64) -> Energy {
    Energy::from_pj(Ratio::from_percent(percent).of(energy.as_pj()))
}

/// Enters the measurements of a variant's run.
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

//! How much capacitance a zoned drive needs: with each part of its buffer protected, and how much may be protected,
//! and how many zones written at once, with less.
//!
//! All of it is arithmetic but the speeds, which short runs tell.

use leyden_buffer::Region;
use leyden_device::{Config, provision_of_zones};
use leyden_power::{BankConfig, DumpConfig};
use leyden_sim::{Bytes, Energy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LESS, Watched, part_of};
use crate::run::{Bounds, in_device, power, run_within};
use crate::{Hooks, RunError};
use leyden_config::Scenario;
use leyden_record::{Bank, Worst};

/// The needs of a zoned drive and its workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneSizing {
    /// The scenario's name.
    pub name: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Each drive was run for so many commands, or a few thousand more.
    pub commands: u64,
    /// The scenario's own capacitors.
    pub bank: Bank,
    /// The costs of protecting each part of the buffer: none of it, parts, all of it.
    pub regions: Vec<SizedRegion>,
    /// The buffers and zones that less capacitance protects.
    pub with_less: Vec<ZonesFor>,
}

/// A drive with so much of its buffer protected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizedRegion {
    /// Bytes that are protected.
    pub protected_bytes: u64,
    /// Where dumps go.
    pub dump: String,
    /// This is the scenario's own drive.
    pub own: bool,
    /// The needs of a dump at worst.
    pub worst: Option<Worst>,
    /// Why there can be no such drive.
    pub problem: Option<String>,
    /// Reads and writes per simulated second.
    pub iops: Option<f64>,
    /// Pairs put per simulated second, if the workload is a store.
    pub puts_per_s: Option<f64>,
    /// The 99th percentile of writes, in microseconds.
    pub write_p99_us: Option<f64>,
}

/// The buffer and the zones that a bank of some capacitance protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZonesFor {
    /// Its share of what the scenario's own drive needs at worst.
    pub share: f64,
    /// Its energy.
    pub energy_mj: f64,
    /// The most bytes that it protects at worst.
    pub protected_bytes: u64,
    /// Zones that may be open, if each is to have as much of the region as each of the scenario's own has when as
    /// many are active as may be.
    pub open_zones: u64,
    /// The most zones that may be active at once with a region of that size: each gathers up to a page in it.
    pub active_zones: u64,
    /// The most Zone Random Write Areas that such a region holds, of the scenario's size, or of the default one.
    pub areas: u64,
}

/// Sizes the capacitors of `scenario`'s zoned drive. True if it was cancelled: then speeds are missing.
pub(super) fn size(
    scenario: &Scenario,
    commands: u64,
    watched: &Watched<'_>,
) -> Result<(ZoneSizing, bool), RunError> {
    let mut scenario = scenario.clone();
    scenario.run.stamps = false;
    scenario.run.cut.clear();
    scenario.device.power.get_or_insert_default();
    let own = provision_of_zones(&scenario.device).map_err(in_device)?;
    let supply = own.supply.expect("there is a power table");
    if let Some(power) = &mut scenario.device.power {
        power.bank = BankConfig { parts: None, capacitance: None, ..power.bank.clone() };
        power.allow_underprovisioned = false;
    }
    let part = scenario.device.power.as_ref().expect("there is a power table").bank.part;
    let mut sizing = ZoneSizing {
        name: scenario.name.clone(),
        seed: scenario.seed,
        commands,
        bank: power::bank(&supply, part),
        ..ZoneSizing::default()
    };
    let need = supply.need.energy;
    for percent in LESS {
        sizing.with_less.push(with_less(&scenario.device, part_of(need, percent), percent));
    }
    let drives = drives(&scenario.device);
    for (number, (device, is_own)) in drives.iter().enumerate() {
        if watched.cancel.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok((sizing, true));
        }
        (watched.progress)("zones", number as f64 / drives.len() as f64);
        sizing.regions.push(sized(&scenario, device, *is_own, commands, watched)?);
    }
    Ok((sizing, false))
}

/// The scenario's drive with other parts of its buffer protected, and with its own but another dump.
fn drives(own: &Config) -> Vec<(Config, bool)> {
    let unit = own.ftl.mapping_unit.get();
    let mut parts: Vec<u64> = [0, 1, 2, 4, 8].map(|of_8| own.buffer.size.get() / 8 * of_8).into();
    parts.push(protected(own));
    for part in &mut parts {
        *part -= *part % unit;
    }
    parts.sort_unstable();
    parts.dedup();
    let mut drives: Vec<(Config, bool)> = parts
        .into_iter()
        .map(|bytes| (with_protected(own, bytes), bytes == protected(own)))
        .collect();
    let dump = own.power.as_ref().map_or("", |power| power.dump.name());
    for info in DumpConfig::POLICIES.iter().filter(|info| info.name != dump) {
        let mut device = own.clone();
        if let (Some(power), Some(dump)) = (&mut device.power, DumpConfig::by_name(info.name)) {
            power.dump = dump;
        }
        drives.push((device, false));
    }
    drives
}

/// Bytes of the buffer that are protected.
fn protected(device: &Config) -> u64 {
    match device.buffer.region {
        Region::None => 0,
        Region::Full => device.buffer.size.get(),
        Region::Selective => device.buffer.protected_size.get(),
    }
}

fn with_protected(own: &Config, bytes: u64) -> Config {
    let mut device = own.clone();
    let buffer = &mut device.buffer;
    (buffer.region, buffer.protected_size) = match bytes {
        0 => (Region::None, Bytes::new(0)),
        all if all == buffer.size.get() => (Region::Full, Bytes::new(0)),
        part => (Region::Selective, Bytes::new(part)),
    };
    device
}

fn sized(
    scenario: &Scenario,
    device: &Config,
    own: bool,
    commands: u64,
    watched: &Watched<'_>,
) -> Result<SizedRegion, RunError> {
    let dump = device.power.as_ref().map_or("", |power| power.dump.name()).to_owned();
    let mut sized =
        SizedRegion { protected_bytes: protected(device), dump, own, ..SizedRegion::default() };
    match provision_of_zones(device) {
        Ok(provision) => sized.worst = provision.supply.as_ref().map(power::worst),
        Err(error) => {
            sized.problem = Some(error.to_string());
            return Ok(sized);
        }
    }
    let scenario = Scenario { device: device.clone(), ..scenario.clone() };
    let mut hooks = Hooks { cancel: Some(watched.cancel), ..Hooks::default() };
    let bounds = Bounds { limit: Some(commands), ..Bounds::default() };
    let record = run_within(&scenario, &mut hooks, bounds)?.record;
    sized.iops = Some(record.host.iops);
    sized.write_p99_us = Some(record.host.write_latency_us.p99);
    sized.puts_per_s = record.zones.and_then(|zones| zones.store).map(|store| store.puts_per_s);
    Ok(sized)
}

/// The buffer and the zones that a bank of `energy` protects.
fn with_less(own: &Config, energy: Energy, percent: u64) -> ZonesFor {
    let unit = own.ftl.mapping_unit.get();
    let fits = |bytes: u64| {
        let supply = provision_of_zones(&with_protected(own, bytes)).ok().and_then(|it| it.supply);
        supply.is_some_and(|supply| supply.need.energy <= energy)
    };
    // The least that a region may be is refused as too small, not as too costly: search above it.
    let units = own.buffer.size.get() / unit;
    let all: Vec<u64> =
        (0..u64::BITS).map(|power| 1 << power).take_while(|&it| it < units).collect();
    let found = all.into_iter().chain([units]).rfind(|&units| fits(units * unit));
    let protected = found.map_or(0, |low| most(low, units, |units| fits(units * unit)));
    // The share of the region of each of the scenario's zones.
    let own_zones = provision_of_zones(own).map_or(1, |it| u64::from(it.zones.max_active));
    let share = self::protected(own) / own_zones.max(1);
    let zones = |count: u64| {
        let mut device = with_protected(own, protected * unit);
        if let Some(zoned) = &mut device.zoned {
            (zoned.max_open, zoned.max_active) = (count as u32, count as u32);
        }
        protected > 0 && provision_of_zones(&device).is_ok()
    };
    let areas = |count: u64| {
        let mut device = with_protected(own, protected * unit);
        if let Some(zoned) = &mut device.zoned {
            zoned.zrwa.get_or_insert_default().count = count as u32;
        }
        protected > 0 && provision_of_zones(&device).is_ok()
    };
    ZonesFor {
        share: percent as f64 / 100.0,
        energy_mj: power::millijoules(energy),
        protected_bytes: protected * unit,
        open_zones: (protected * unit).checked_div(share).unwrap_or(0),
        active_zones: if zones(1) { most(1, 1 << 20, zones) } else { 0 },
        areas: if areas(1) { most(1, 1 << 20, areas) } else { 0 },
    }
}

/// The most of `low..=high` that `fits`, which `low` does; what is more than one that does not fit does not either.
fn most(low: u64, high: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (low, high + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

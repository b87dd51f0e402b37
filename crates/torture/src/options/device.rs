//! Small random drives: geometry, timing, faults, every policy of every registry.
//!
//! **Invariants**: a policy takes one number from the generator, whichever it is, and is drawn by name: one
//! that is added to a registry leaves all seeds alone but those that draw it.

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{Config, NoData, Ssd};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::logs::LogConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_power::{DumpConfig, Part};
use leyden_sim::{Bytes, BytesPerSec, Power, Ratio, Rng, Span};

use super::chance::{coin, spread};

const UNIT_BYTES: u64 = 4_096;

/// A drive of at most `most_units` mapping units of flash; `None` if this draw is too large or
/// impossible.
pub(super) fn draw_device(rng: &mut Rng, most_units: u64) -> Option<Config> {
    let mut config = Config::default();
    draw_nand(rng, &mut config);
    draw_faults(rng, &mut config);
    draw_frontend(rng, &mut config);
    config.ftl.gc.victim = VictimConfig::drawn(rng.next_u64());
    config.ftl.gc.hard_free_blocks = rng.below(3) as u32;
    config.ftl.gc.soft_free_blocks = config.ftl.gc.hard_free_blocks + rng.below(4) as u32;
    config.ftl.zombie_block = coin(rng);
    config.ftl.log_stream = LogConfig::drawn(rng.next_u64());
    config.ftl.placement = PlacementConfig::drawn(rng.next_u64());
    if let PlacementConfig::Dac(dac) = &mut config.ftl.placement {
        dac.regions = 2 + rng.below(3) as u8;
    }
    draw_map(rng, &mut config);
    let geometry = config.nand.geometry(config.ftl.mapping_unit).ok()?;
    let page_bytes = UNIT_BYTES * u64::from(geometry.units_per_page());
    if u64::from(geometry.units()) > most_units {
        return None;
    }
    draw_buffer(rng, &mut config, page_bytes);

    draw_power(rng, &mut config);
    let most = most_capacity(&config, u64::from(geometry.units()))?;
    let part = if coin(rng) { 100 } else { 30 + rng.below(70) };
    config.ftl.capacity = Some(Bytes::new((most * part / 100).max(1) * UNIT_BYTES));
    Some(config)
}

/// The most units that the drive would promise, by bisection: what a drive refuses is its own
/// business. `None` if it refuses all.
fn most_capacity(config: &Config, flash_units: u64) -> Option<u64> {
    let mut config = config.clone();
    let mut accepts = |units: u64| {
        config.ftl.capacity = Some(Bytes::new(units * UNIT_BYTES));
        Ssd::<NoData>::new(&config, 0).is_ok()
    };
    let (mut low, mut high) = (0, flash_units);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if accepts(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}

fn draw_nand(rng: &mut Rng, config: &mut Config) {
    let nand = &mut config.nand;
    nand.channels = 1 + rng.below(4) as u32;
    nand.dies_per_channel = 1 + rng.below(4) as u32;
    nand.blocks_per_plane = 6 + rng.below(20) as u32;
    nand.pages_per_block = 4 + rng.below(29) as u32;
    nand.page_size = Bytes::new(UNIT_BYTES << rng.below(3));
    if rng.below(4) == 0 {
        nand.planes_per_die = 2;
        nand.multi_plane = coin(rng);
    }
    let mut time = |longest_us: u64| Span::from_ns(spread(rng, longest_us * 1_000));
    (nand.read, nand.program, nand.erase) = (time(200), time(2_000), time(8_000));
    nand.channel_rate = BytesPerSec::new(1_000_000 * spread(rng, 2_000));
}

fn draw_faults(rng: &mut Rng, config: &mut Config) {
    let nand = &mut config.nand;
    let mut rare = |most_ppm: u64| {
        let ppm = spread(rng, most_ppm);
        if rng.below(4) == 0 { Ratio::from_ppm(ppm) } else { Ratio::ZERO }
    };
    nand.faults.program_failures = rare(20_000);
    nand.faults.erase_failures = rare(20_000);
    nand.faults.factory_bad_blocks = rare(50_000);
    if rng.below(12) == 0 {
        nand.endurance_cycles = 5 + rng.below(100) as u32;
    }
}

fn draw_frontend(rng: &mut Rng, config: &mut Config) {
    config.frontend.command = Span::from_ns(spread(rng, 20_000) - 1);
    config.frontend.link_rate = BytesPerSec::new(10_000_000 * spread(rng, 1_000));
    config.frontend.queues = 1 + rng.below(2) as u32;
    config.frontend.queue_depth = spread(rng, 32) as u32;
}

/// Small mapping pages, so that even a tiny drive has many; now and then whole ones.
fn draw_map(rng: &mut Rng, config: &mut Config) {
    let map = &mut config.ftl.map;
    map.protection = ProtectionConfig::drawn(rng.next_u64());
    if let ProtectionConfig::Partial(partial) = &mut map.protection {
        partial.protected = Ratio::from_ppm(spread(rng, 1_000_000));
    }
    if let ProtectionConfig::Journal(journal) = &mut map.protection {
        // Small, so that it overflows within a run.
        journal.size = Bytes::new(spread(rng, 64 << 10));
        journal.flash = Ratio::from_ppm(spread(rng, 1_000_000));
    }
    let entries = 3 + spread(rng, 64) as u32;
    map.entries_per_page = (rng.below(8) > 0).then_some(entries);
}

/// As many parts as the drive needs, or now and then fewer, which it is allowed to have.
fn draw_power(rng: &mut Rng, config: &mut Config) {
    let power = config.power.insert(leyden_power::Config::default());
    power.dump = DumpConfig::drawn(rng.next_u64());
    let parts = [Part::TantalumPolymer, Part::Aluminium, Part::Ceramic, Part::Supercapacitor];
    power.bank.part = parts[rng.below(4) as usize];
    power.reset = Span::from_ns(spread(rng, 500_000));
    power.charge_power = Power::from_mw(spread(rng, 1_000_000));
    if rng.below(10) == 0 {
        power.allow_underprovisioned = true;
        power.bank.parts = Some(1);
        power.bank.part = Part::Ceramic;
    }
}

fn draw_buffer(rng: &mut Rng, config: &mut Config, page_bytes: u64) {
    config.buffer.schedule = ScheduleConfig::drawn(rng.next_u64());
    config.buffer.region = if coin(rng) { Region::Full } else { Region::None };
    config.buffer.flush_threshold = Ratio::from_percent(1 + rng.below(100));
    let least = page_bytes * u64::from(config.ftl.streams().of_host()) * 2;
    config.buffer.size = Bytes::new(least + UNIT_BYTES * (spread(rng, 256) - 1));
}

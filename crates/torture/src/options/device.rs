//! Small random drives: geometry, timing, faults, every policy of every registry, and banks at the edge.
//!
//! **Invariants**: a policy takes one number from the generator, whichever it is, and is drawn by name: one
//! that is added to a registry leaves all seeds alone but those that draw it.

use std::num::NonZeroU32;

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{Config, NoData, Ssd};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::gc::level::LevelConfig;
use leyden_ftl::logs::LogConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_nand::{FaultTarget, Occasion};
use leyden_sim::{Bytes, BytesPerSec, Ratio, Rng, Span};

use super::bank::{draw_bank, fit_bank};
use super::chance::{coin, spread};

/// How large a drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    /// Written over within a run.
    Small,
    /// With large tables.
    Large,
    /// With so many mapping pages that a dump's root takes several pages.
    LargeRoot,
}

impl Size {
    /// One in 64 seeds has large tables, and two have large roots, which cuts seldom fall on.
    pub(super) fn drawn(rng: &mut Rng) -> Self {
        match rng.below(64) {
            0 => Self::Large,
            1 | 2 => Self::LargeRoot,
            _ => Self::Small,
        }
    }

    /// The most mapping units of flash.
    const fn most_units(self) -> u64 {
        match self {
            Self::Small => 2_048,
            Self::Large | Self::LargeRoot => 16_384,
        }
    }
}

/// A drive; `None` if this draw is too large or impossible.
pub(super) fn draw_device(rng: &mut Rng, size: Size) -> Option<Config> {
    let mut config = Config::default();
    draw_nand(rng, &mut config, size);
    draw_faults(rng, &mut config);
    draw_frontend(rng, &mut config);
    let number = rng.next_u64();
    config.ftl.gc.victim = VictimConfig::drawn(number);
    config.ftl.gc.levelling = draw_levelling(number);
    config.ftl.gc.hard_free_blocks = rng.below(3) as u32;
    config.ftl.gc.soft_free_blocks = config.ftl.gc.hard_free_blocks + rng.below(4) as u32;
    config.ftl.zombie_block = coin(rng);
    config.ftl.log_stream = LogConfig::drawn(rng.next_u64());
    config.ftl.placement = PlacementConfig::drawn(rng.next_u64());
    if let PlacementConfig::Dac(dac) = &mut config.ftl.placement {
        dac.regions = 2 + rng.below(3) as u8;
    }
    draw_map(rng, &mut config, size);
    let geometry = config.nand.geometry(config.ftl.mapping_unit).ok()?;
    if u64::from(geometry.units()) > size.most_units() {
        return None;
    }
    draw_buffer(rng, &mut config, u64::from(geometry.page_bytes()));
    draw_bank(rng, &mut config);
    let most = most_capacity(&config, u64::from(geometry.units()))?;
    let part = if coin(rng) { 100 } else { 30 + rng.below(70) };
    let part = if size == Size::LargeRoot { 100 } else { part };
    let units = (most * part / 100).max(1);
    if rng.below(8) == 0 {
        // The same as a share, which rounds to somewhat less.
        let spare = u64::from(geometry.units()) - units;
        config.ftl.over_provisioning = Ratio::from_ppm((spare * 1_000_000).div_ceil(units));
    } else {
        config.ftl.capacity = Some(Bytes::new(units * config.ftl.mapping_unit.get()));
    }
    fit_bank(rng, &mut config)?;
    Some(config)
}

/// Wear levelling for one drive in eight, which moves blocks within so short a run. `number` has drawn the victim
/// policy; a stream of its own leaves the others as they are.
pub(crate) fn draw_levelling(number: u64) -> LevelConfig {
    let rng = &mut Rng::new(number, "levelling");
    if rng.below(8) != 0 {
        return LevelConfig::default();
    }
    let mut config = LevelConfig::drawn(number);
    if let LevelConfig::LeastWorn(least_worn) = &mut config {
        least_worn.spread = NonZeroU32::MIN.saturating_add(rng.below(3) as u32);
    }
    config
}

/// The most units that the drive would promise, by bisection: what a drive refuses is its own
/// business. `None` if it refuses all.
pub(super) fn most_capacity(config: &Config, flash_units: u64) -> Option<u64> {
    let mut config = config.clone();
    let unit_bytes = config.ftl.mapping_unit.get();
    let mut accepts = |units: u64| {
        config.ftl.capacity = Some(Bytes::new(units * unit_bytes));
        Ssd::<NoData>::new(&config, 0).is_ok()
    };
    let (mut low, mut high) = (0, flash_units);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if accepts(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}

fn draw_nand(rng: &mut Rng, config: &mut Config, size: Size) {
    // 512 B to 16 KiB, half of them 4 KiB; up to 16 of them in a page of up to 64 KiB.
    let unit_bytes = if coin(rng) { 4_096 } else { 512 << rng.below(6) };
    let most_bits = if coin(rng) { 3 } else { 5 };
    let page_bytes = (unit_bytes << rng.below(most_bits)).min(64 << 10);
    let (unit_bytes, page_bytes) =
        if size == Size::LargeRoot { (512, 512) } else { (unit_bytes, page_bytes) };
    config.ftl.mapping_unit = Bytes::new(unit_bytes);
    let nand = &mut config.nand;
    nand.page_size = Bytes::new(page_bytes);
    nand.channels = 1 + rng.below(4) as u32;
    nand.dies_per_channel = 1 + rng.below(4) as u32;
    nand.blocks_per_plane = 6 + rng.below(20) as u32;
    nand.pages_per_block = 4 + rng.below(29) as u32;
    if size != Size::Small {
        nand.blocks_per_plane = 20 + rng.below(30) as u32;
        nand.pages_per_block = 24 + rng.below(40) as u32;
    }
    if rng.below(4) == 0 {
        nand.planes_per_die = 2 + rng.below(3) as u32;
        nand.multi_plane = coin(rng);
    }
    let mut time = |longest_us: u64| Span::from_ns(spread(rng, longest_us * 1_000));
    (nand.read, nand.program, nand.erase) = (time(200), time(2_000), time(8_000));
    nand.channel_rate = BytesPerSec::new(1_000_000 * spread(rng, 2_000));
}

/// Half of the drives never fail: of those no command may. The others do so by chance, rarely or often, by
/// wear, or on single occasions.
fn draw_faults(rng: &mut Rng, config: &mut Config) {
    let nand = &mut config.nand;
    let fails = coin(rng);
    let most_ppm = if rng.below(4) == 0 { 60_000 } else { 20_000 };
    let mut rare = |most_ppm: u64| {
        let ppm = spread(rng, most_ppm);
        let is_on = coin(rng) && fails;
        if is_on { Ratio::from_ppm(ppm) } else { Ratio::ZERO }
    };
    nand.faults.program_failures = rare(most_ppm);
    nand.faults.erase_failures = rare(20_000);
    nand.faults.factory_bad_blocks = rare(50_000);
    if rng.below(6) == 0 && fails {
        // Often enough to hit data of which a newer version is buffered, and a FLUSH that waits for it.
        nand.faults.program_failures = Ratio::from_ppm(10_000 + rng.below(90_000));
    }
    if rng.below(12) == 0 && fails {
        nand.endurance_cycles = 5 + rng.below(100) as u32;
    }
    let kinds = [
        (FaultTarget::Data, 2_000),
        (FaultTarget::Mapping, 200),
        (FaultTarget::Journal, 100),
        (FaultTarget::Erase, 200),
    ];
    let occasion = |rng: &mut Rng| {
        let (what, most) = kinds[rng.below(4) as usize];
        Occasion { what, nth: spread(rng, most) }
    };
    if rng.below(4) == 0 && fails {
        nand.faults.occasions = (0..=rng.below(4)).map(|_| occasion(rng)).collect();
    }
}

fn draw_frontend(rng: &mut Rng, config: &mut Config) {
    config.frontend.command = Span::from_ns(spread(rng, 20_000) - 1);
    config.frontend.link_rate = BytesPerSec::new(10_000_000 * spread(rng, 1_000));
    config.frontend.queues = 1 + rng.below(2) as u32;
    config.frontend.queue_depth = spread(rng, 32) as u32;
}

/// Small mapping pages, so that even a tiny drive has many; now and then whole ones.
fn draw_map(rng: &mut Rng, config: &mut Config, size: Size) {
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
    if size == Size::LargeRoot {
        map.entries_per_page = Some(1);
    }
}

fn draw_buffer(rng: &mut Rng, config: &mut Config, page_bytes: u64) {
    config.buffer.schedule = ScheduleConfig::drawn(rng.next_u64());
    config.buffer.region = match rng.below(4) {
        0 => Region::Full,
        1 => Region::Selective,
        _ => Region::None,
    };
    config.buffer.flush_threshold = Ratio::from_percent(1 + rng.below(100));
    let least = page_bytes * u64::from(config.ftl.streams().of_host()) * 2;
    let more = config.ftl.mapping_unit.get() * (spread(rng, 256) - 1);
    config.buffer.size = Bytes::new(least + more);
    if config.buffer.region == Region::Selective {
        let protected = config.ftl.mapping_unit.get() * (spread(rng, 64) - 1);
        config.buffer.protected_size = Bytes::new(least + protected);
        config.buffer.size = Bytes::new(2 * least + protected + more);
    }
}

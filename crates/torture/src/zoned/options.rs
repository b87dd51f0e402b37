//! A zoned drive and its work, drawn from a seed.

use leyden_buffer::Region;
use leyden_buffer::zoned::schedule::ZoneScheduleConfig;
use leyden_buffer::zoned::{BelowProtected, DuringFlush, ZonePoolConfig};
use leyden_device::{Config, provision_of_zones};
use leyden_ftl::zoned::place::PlaceConfig;
use leyden_ftl::zoned::{Config as Zones, ZrwaConfig};
use leyden_power::DumpConfig;

use leyden_sim::{Bytes, Capacitance, PolicyInfo, Ratio, Rng};

use serde::{Deserialize, Serialize};

use crate::options::{draw_failed_programs, rng};

/// Draws until a drive can be built: some combinations are refused, as they must be.
const MOST_DRAWS: u64 = 200;
/// Zones that are used, at most: each is a bit of what takes resources.
pub(super) const MOST_ZONES: u32 = 64;

/// A zoned drive, its work, and its power cuts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonedOptions {
    /// Where it was drawn from.
    pub seed: u64,
    /// The drive.
    pub device: Config,
    /// Zones that are used.
    pub zones: u32,
    /// Commands under way at once.
    pub queue_depth: u32,
    /// Power cuts.
    pub cuts: u32,
    /// The most commands between two cuts.
    pub commands: u32,
    /// The most units of a write.
    pub largest: u32,
    /// Share of writes that carry the PLP flag, where there is a region for it.
    pub plp: Ratio,
    /// Share of writes with FUA.
    pub fua: Ratio,
    /// Share of recoveries that are cut short.
    pub again: Ratio,
    /// How often the host copies, if it can, before anything else that it does.
    #[serde(default)]
    pub copies: Ratio,
    /// How often the host sends a command that hosts of zones seldom send.
    #[serde(default)]
    pub others: Ratio,
    /// Share of the cuts that fall on an event or just before it, not on any moment.
    #[serde(default)]
    pub aimed: Ratio,
}

impl ZonedOptions {
    /// The options that `seed` draws.
    ///
    /// # Panics
    /// If it draws no drive that can be built.
    pub fn draw(seed: u64) -> Self {
        let built = (0..MOST_DRAWS).find_map(|attempt| {
            let options = Self::draw_once(seed, attempt);
            let zones = provision_of_zones(&options.device).ok()?.zones.zones;
            Some(Self { zones: options.zones.min(zones), ..options })
        });
        built.expect("a seed draws a drive that can be built")
    }

    fn draw_once(seed: u64, attempt: u64) -> Self {
        let mut rng = rng(seed.wrapping_add(attempt << 40), "zoned");
        let rng = &mut rng;
        let mut device = draw_device(rng);
        // From a stream of its own: what seeds draw otherwise stays.
        if coin(&mut crate::options::rng(seed, "zoned flushes")) {
            device.buffer.zones.during_flush = DuringFlush::Suspend;
        }
        let mut limits = crate::options::rng(seed, "zoned copy limit");
        if let Some(zoned) = device.zoned.as_mut().filter(|_| limits.below(16) == 0) {
            zoned.copy_limit = Bytes::new(4096 * (1 + limits.below(32)));
        }
        let mut few = crate::options::rng(seed, "zoned few blocks");
        let is_short = few.below(16) == 0;
        if is_short {
            wear_out(&mut device, &mut few);
        }
        // Erases fail so often that dies lose their blocks for dumps: the drive can only be read.
        let is_dying = is_short && few.below(2) == 0;
        if is_dying {
            device.nand.faults.erase_failures = Ratio::from_percent(30 + few.below(21));
        }
        let mut wear = crate::options::rng(seed, "zoned wear");
        if wear.below(16) == 0 {
            device.nand.endurance_cycles = 2 + wear.below(12) as u32;
        }
        let zones = 2 + rng.below(8) as u32;
        Self {
            seed,
            // All of them: what others do not take is to spare.
            zones: if is_short { MOST_ZONES } else { zones },
            queue_depth: 1 + rng.below(24) as u32,
            cuts: 8 + rng.below(40) as u32 + if is_dying { 40 } else { 0 },
            commands: 4 + rng.below(200) as u32,
            largest: 1 + rng.below(24) as u32,
            plp: Ratio::from_percent(rng.below(70)),
            fua: Ratio::from_percent(rng.below(20)),
            again: Ratio::from_percent(rng.below(40)),
            copies: Ratio::from_percent(crate::options::rng(seed, "zoned host").below(20)),
            others: Ratio::from_percent(crate::options::rng(seed, "zoned others").below(10)),
            aimed: Ratio::from_percent(25 * crate::options::rng(seed, "zoned aims").below(4)),
            device,
        }
    }
}

/// So many programs and erases fail, with nothing to spare, that zones die, and drives that can only be read.
fn wear_out(device: &mut Config, rng: &mut Rng) {
    let faults = &mut device.nand.faults;
    faults.program_failures = Ratio::from_ppm(5_000 + rng.below(30_000));
    faults.erase_failures = Ratio::from_ppm(10_000 + rng.below(100_000));
    let nand = &mut device.nand;
    let planes = if nand.multi_plane { u64::from(nand.planes_per_die) } else { 1 };
    let block = nand.page_size.get() * u64::from(nand.pages_per_block) * planes;
    if let Some(zoned) = &mut device.zoned {
        zoned.spare = Ratio::ZERO;
        // The host uses every zone: unused ones would be spare.
        let zone_blocks = zoned.zone_capacity.unwrap_or(zoned.zone_size).get() / block;
        let dies = u64::from(nand.channels * nand.dies_per_channel);
        let most = u64::from(MOST_ZONES / 2) * zone_blocks / dies + 8;
        nand.blocks_per_plane = nand.blocks_per_plane.min(most as u32);
    }
}

fn coin(rng: &mut Rng) -> bool {
    rng.below(2) == 0
}

fn drawn<T>(rng: &mut Rng, policies: &'static [PolicyInfo], by_name: fn(&str) -> Option<T>) -> T {
    by_name(PolicyInfo::drawn(policies, rng.next_u64()).name).expect("a policy of the list")
}

/// A small zoned drive.
pub(crate) fn draw_device(rng: &mut Rng) -> Config {
    let mut config = Config::default();
    let nand = &mut config.nand;
    nand.channels = 1 + rng.below(3) as u32;
    nand.dies_per_channel = 1 + rng.below(3) as u32;
    nand.pages_per_block = [4, 8, 16][rng.below(3) as usize];
    nand.page_size = Bytes::new(4096 << rng.below(3));
    if rng.below(4) == 0 {
        (nand.planes_per_die, nand.multi_plane) = (2, true);
    }
    let dies = u64::from(nand.channels * nand.dies_per_channel);
    let per_zone = 1 + rng.below(dies);
    let planes = if nand.multi_plane { 2 } else { 1 };
    let block = nand.page_size.get() * u64::from(nand.pages_per_block) * planes;
    let capacity = block * per_zone * (1 + rng.below(3));
    let size = if coin(rng) { capacity } else { capacity.next_power_of_two() };
    // Blocks for a dozen zones, for dumps, and to spare.
    nand.blocks_per_plane = (16 * capacity / block / dies + 48) as u32;
    let is_faulty = rng.below(4) == 0;
    if is_faulty {
        nand.blocks_per_plane *= 2;
        nand.faults.program_failures = Ratio::from_ppm(rng.below(10_000));
        nand.faults.erase_failures = Ratio::from_ppm(rng.below(3_000));
    }
    let active = 2 + rng.below(6) as u32;
    config.buffer.region =
        [Region::None, Region::Full, Region::Selective, Region::Selective][rng.below(4) as usize];
    let zrwa = (config.buffer.region != Region::None && coin(rng)).then(|| {
        let granularity = 4096 << rng.below(2);
        ZrwaConfig {
            size: Bytes::new(granularity * (1 + rng.below(4))),
            granularity: Bytes::new(granularity),
            count: 1 + rng.below(3) as u32,
        }
    });
    config.zoned = Some(Zones {
        zone_size: Bytes::new(size),
        zone_capacity: Some(Bytes::new(capacity)),
        dies_per_zone: per_zone as u32,
        place: drawn(rng, PlaceConfig::POLICIES, PlaceConfig::by_name),
        max_open: 1 + rng.below(u64::from(active)) as u32,
        max_active: active,
        append_limit: Bytes::new(4096 * (4 + rng.below(60))),
        spare: Ratio::from_percent(if is_faulty { 60 } else { 5 }),
        zrwa,
        ..Zones::default()
    });
    config.buffer.size = Bytes::new((64 + rng.below(400)) * 4096);
    config.buffer.protected_size = Bytes::new((16 + rng.below(100)) * 4096);
    if config.buffer.region != Region::Selective {
        config.buffer.protected_size = Bytes::new(0);
    }
    config.buffer.flush_threshold = Ratio::from_percent(10 + rng.below(90));
    let schedule = drawn(rng, ZoneScheduleConfig::POLICIES, ZoneScheduleConfig::by_name);
    let drain_to = Ratio::from_percent(rng.below(100));
    config.buffer.drain_to = Some(drain_to.min(config.buffer.flush_threshold));
    config.buffer.zones = ZonePoolConfig {
        schedule,
        below_protected: [BelowProtected::Promote, BelowProtected::Promote, BelowProtected::Refuse]
            [rng.below(3) as usize],
        ..ZonePoolConfig::default()
    };
    let mut power = leyden_power::Config {
        dump: drawn(rng, DumpConfig::POLICIES, DumpConfig::by_name),
        ..leyden_power::Config::default()
    };
    if !matches!(power.dump, DumpConfig::InPlace(_)) {
        power.failed_programs = draw_failed_programs(rng);
    }
    if rng.below(4) == 0 {
        power.allow_underprovisioned = true;
        power.bank.capacitance = Some(Capacitance::from_uf(40 + rng.below(1_500)));
    }
    config.power = Some(power);
    config
}

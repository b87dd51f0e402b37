//! A device on two drives, and its work, drawn from a seed.

use leyden_buffer::Region;
use leyden_device::{Config, NoData, Ssd, provision_of_zones};
use leyden_ftl::gc::VictimConfig;
use leyden_host::zoned_block::victim::ReclaimConfig;
use leyden_host::zoned_block::{GiveUp, IdleOf, JournalConfig, Merge, Recognise, ZonedBlockConfig};
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Ratio, Rng, Span};
use serde::{Deserialize, Serialize};

use crate::options::chance::{coin, spread};
use crate::options::{draw_levelling, draw_rounds, draw_work, rng};
use crate::traced::Grain;
use crate::{Cut, Options, Round, zoned};

/// Draws until there is such a device: some combinations are refused, as they must be.
const MOST_DRAWS: u64 = 400;

/// The largest zones: what a device holds is written over within a run.
const MOST_ZONE_BLOCKS: u32 = 96;

/// Two drives, the layer on them, its work, and its power cuts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonedBlockOptions {
    /// The layer.
    pub layer: ZonedBlockConfig,
    /// The journal is somewhere else every so many commands; 0: never.
    #[serde(default)]
    pub journal_moves: u32,
    /// The zoned member.
    pub zoned: Config,
    /// The work, the cuts, and, as its device, the conventional member.
    pub run: Options,
}

impl ZonedBlockOptions {
    /// The options that `seed` draws.
    ///
    /// # Panics
    /// If it draws no device that can be.
    pub fn draw(seed: u64) -> Self {
        let built = (0..MOST_DRAWS).find_map(|attempt| draw_once(seed, attempt));
        built.expect("a seed draws a device that can be built")
    }
}

fn draw_once(seed: u64, attempt: u64) -> Option<ZonedBlockOptions> {
    let mut choices = rng(seed.wrapping_add(attempt << 40), "zoned block");
    let is_faulty = choices.below(8) == 0;
    let zoned = draw_zoned(&mut choices, is_faulty);
    let zones = provision_of_zones(&zoned).ok()?.zones;
    if zones.capacity > MOST_ZONE_BLOCKS || zones.zones < 6 {
        return None;
    }
    let mut layer = draw_layer(&mut choices);
    let random = 4 + choices.below(8);
    let meta = 2 * metadata_units(zones.zones + 16, zones.capacity);
    let units = random * u64::from(zones.capacity) + meta;
    if layer.journal.recognise == Recognise::Range {
        let unit = 4096;
        let first = choices.below(u64::from(zones.capacity) * 2);
        layer.journal.offset = Bytes::new(first * unit);
        layer.journal.size = Bytes::new((1 + choices.below(u64::from(zones.capacity) * 2)) * unit);
    }
    let mut device = draw_conventional(&mut choices, units, is_faulty)?;
    let grain = if choices.below(8) == 0 { Grain::Sector } else { Grain::Unit };
    let mut work = draw_work(&mut rng(seed, "work"));
    // Reclaim needs a device that is in use.
    if choices.below(4) > 0 {
        work.fill = Ratio::from_percent(30 + choices.below(71));
    }
    let mut rounds = draw_rounds(&mut rng(seed, "rounds"));
    for round in &mut rounds {
        round.reload = false;
        // A command is several here, on two drives: rounds half as long as one drive's have as many cuts a second.
        round.commands = round.commands.div_ceil(2);
    }
    let mut stages = rng(seed, "cuts at stages");
    if stages.below(4) == 0 {
        cut_at_stages(&mut rounds, &mut stages);
    }
    // Drawn apart: what else a seed draws does not depend on it.
    let mut moves = rng(seed, "journal moves");
    let mut journal_moves = 0;
    if layer.journal.separate && moves.below(2) == 0 {
        layer.journal.recognise = Recognise::Superblock;
        (layer.journal.offset, layer.journal.size) = (Bytes::new(0), Bytes::new(0));
        journal_moves = spread(&mut moves, 400) as u32;
    }
    let mut extra = rng(seed, "protected journal");
    if layer.journal.separate && device.buffer.region == Region::Full && extra.below(2) == 0 {
        device.buffer.region = Region::Selective;
        device.buffer.protected_size = Bytes::new(device.buffer.size.get() / 2);
        layer.journal.protect = true;
    }
    if coin(&mut rng(seed, "moves given up")) {
        layer.give_up = GiveUp::AfterCopy;
    }
    if coin(&mut rng(seed, "idle of")) {
        layer.idle_of = IdleOf::Both;
    }
    layer.writers_first = Ratio::from_percent(50 * rng(seed, "after a move").below(3));
    let run = Options { seed, grain, device, host: None, work, rounds };
    let options = ZonedBlockOptions { layer, journal_moves, zoned, run };
    super::device::<leyden_device::Stamp>(&options).is_ok().then_some(options)
}

/// Most cuts fall on a stage of a commit, and a quarter of them is followed by another cut at once: of two sets of tables one
/// must be whole at any moment.
fn cut_at_stages(rounds: &mut [Round], rng: &mut Rng) {
    for round in rounds {
        let stages = spread(rng, 32) as u32;
        if rng.below(4) == 0 {
            continue;
        }
        round.cut = Cut::AtStage { stages };
        if rng.below(4) == 0 {
            round.again = vec![Ratio::from_ppm(rng.below(1_000_001))];
        }
    }
}

/// About how many units the tables of so many zones take.
fn metadata_units(zones: u32, zone_blocks: u32) -> u64 {
    let words = u64::from(zones) * (1 + u64::from(zone_blocks.div_ceil(64))) + 4_096;
    2 + words / 511
}

fn draw_zoned(rng: &mut Rng, is_faulty: bool) -> Config {
    let mut config = zoned::draw_device(rng);
    let zoned = config.zoned.as_mut().expect("a zoned drive");
    zoned.zrwa = None;
    // All zones are used here, and blocks lie where dies have them: with few to spare, a die may have none left for a
    // zone that must have one of its.
    zoned.spare = Ratio::from_percent(if is_faulty { 60 } else { 40 });
    config.nand.blocks_per_plane = config.nand.blocks_per_plane.min(96);
    if !is_faulty {
        config.nand.faults = leyden_nand::FaultConfig::default();
    }
    // Losses of a member's promised data are no matter of the layer's.
    let power = leyden_power::Config::default();
    config.power = Some(leyden_power::Config { dump: DumpConfig::drawn(rng.next_u64()), ..power });
    config
}

fn draw_conventional(rng: &mut Rng, units: u64, is_faulty: bool) -> Option<Config> {
    let mut config = Config::default();
    let nand = &mut config.nand;
    nand.channels = 1 + rng.below(2) as u32;
    nand.dies_per_channel = 1 + rng.below(2) as u32;
    nand.pages_per_block = 4 << rng.below(3);
    nand.page_size = Bytes::new(4096 << rng.below(3));
    let block_units = u64::from(nand.pages_per_block) * nand.page_size.get() / 4096;
    let dies = u64::from(nand.channels * nand.dies_per_channel);
    nand.blocks_per_plane = ((units * 3 / 2).div_ceil(block_units * dies) + 12) as u32;
    if is_faulty {
        nand.faults.program_failures = Ratio::from_ppm(rng.below(1_000));
        nand.blocks_per_plane *= 2;
    }
    config.ftl.capacity = Some(Bytes::new(units * 4096));
    let number = rng.next_u64();
    config.ftl.gc.victim = VictimConfig::drawn(number);
    config.ftl.gc.levelling = draw_levelling(number);
    config.buffer.region = if coin(rng) { Region::Full } else { Region::None };
    config.buffer.size = Bytes::new((32 + rng.below(200)) * 4096);
    config.buffer.flush_threshold = Ratio::from_percent(10 + rng.below(90));
    config.power = Some(leyden_power::Config::default());
    Ssd::<NoData>::new(&config, 0).is_ok().then_some(config)
}

/// Times short enough for idle reclaim and commits within a run.
fn draw_layer(rng: &mut Rng) -> ZonedBlockConfig {
    let low = rng.below(60);
    let or_never = |rng: &mut Rng, span: Span| if rng.below(4) == 0 { Span::ZERO } else { span };
    let idle = Span::from_us(10 * spread(rng, 10_000));
    let interval = Span::from_us(10 * spread(rng, 10_000));
    ZonedBlockConfig {
        reserved_zones: 2 + rng.below(3) as u32,
        victim: ReclaimConfig::drawn(rng.next_u64()),
        merge: if coin(rng) { Merge::IntoBuffer } else { Merge::NewZone },
        low_free: Ratio::from_percent(low),
        high_free: Ratio::from_percent(low + rng.below(101 - low)),
        idle: or_never(rng, idle),
        idle_of: IdleOf::default(),
        reclaims: 1 + rng.below(3) as u32,
        copy_size: Bytes::new(4096 * spread(rng, 64)),
        commit_interval: or_never(rng, interval),
        // Drawn apart, as `idle_of` is.
        give_up: GiveUp::default(),
        writers_first: Ratio::ZERO,
        journal: JournalConfig {
            separate: coin(rng),
            recognise: if coin(rng) { Recognise::Class } else { Recognise::Range },
            max_zones: 1 + rng.below(2) as u32,
            ..JournalConfig::default()
        },
    }
}

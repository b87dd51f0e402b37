//! Drives so small that every moment of a short run can be looked at.

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{Config, NoData, Ssd};
use leyden_ftl::map::ProtectionConfig;
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, BytesPerSec, Ratio, Span};

use super::device::most_capacity;
use super::{Cut, Mix, Options, Round, Verify, Work};
use crate::traced::Grain;

/// The differences between tiny drives; `None` is a name that is not known.
pub(crate) struct Policies {
    pub(crate) region: Region,
    pub(crate) protection: Option<ProtectionConfig>,
    pub(crate) dump: Option<DumpConfig>,
    pub(crate) schedule: Option<ScheduleConfig>,
}

/// Two dies on a channel, a full drive, a bank of exactly what it needs, and `commands` of every kind. `None` if
/// there is no such drive.
pub(crate) fn options(policies: &Policies, commands: u32) -> Option<Options> {
    let mut device = device(policies)?;
    let units = most_capacity(&device, 4_096)?.min(64);
    device.ftl.capacity = Some(Bytes::new(units * device.ftl.mapping_unit.get()));
    let supply = Ssd::<NoData>::new(&device, 0).ok()?.power_supply()?;
    device.power.as_mut()?.bank.capacitance = Some(supply.capacitance);
    let plp = if policies.region == Region::Selective { 30 } else { 0 };
    Some(run(device, commands, Ratio::from_percent(plp)))
}

/// `commands` for a block device that is made of drives.
pub(crate) fn options_of_block(commands: u32) -> Options {
    run(Config::default(), commands, Ratio::ZERO)
}

fn run(device: Config, commands: u32, plp: Ratio) -> Options {
    let work = Work {
        fill: Ratio::from_percent(100),
        queue_depth: 4,
        mix: Mix { reads: 50, trims: 120, write_zeroes: 60, flushes: 80 },
        fua: Ratio::from_percent(15),
        unaligned: Ratio::from_percent(20),
        hot: Ratio::from_percent(50),
        hot_part: Ratio::from_percent(25),
        sequential: Ratio::from_percent(20),
        largest_units: 4,
        hints: Ratio::ZERO,
        tenants: 1,
        trace: false,
        late: Ratio::ZERO,
        plp,
    };
    let round = Round {
        number: 0,
        commands,
        reload: false,
        skip: Vec::new(),
        cut: Cut::Never,
        off: Span::ZERO,
        again: Vec::new(),
        early: false,
        check: false,
        verify: Verify::All,
    };
    Options { seed: 1, grain: Grain::Unit, device, host: None, work, rounds: vec![round] }
}

fn device(policies: &Policies) -> Option<Config> {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 16;
    config.nand.pages_per_block = 4;
    config.nand.page_size = Bytes::new(8_192);
    config.nand.read = Span::from_us(50);
    config.nand.program = Span::from_us(400);
    config.nand.erase = Span::from_us(2_000);
    config.nand.channel_rate = BytesPerSec::new(400_000_000);
    config.ftl.map.protection = policies.protection.clone()?;
    config.ftl.map.entries_per_page = Some(8);
    if let ProtectionConfig::Journal(journal) = &mut config.ftl.map.protection {
        journal.size = Bytes::new(8 << 10);
    }
    config.buffer.region = policies.region;
    config.buffer.schedule = policies.schedule.clone()?;
    config.buffer.size = Bytes::new(8 * 4_096);
    if policies.region == Region::Selective {
        config.buffer.protected_size = Bytes::new(4 * 4_096);
    }
    config.buffer.flush_threshold = Ratio::from_percent(50);
    let power = config.power.insert(leyden_power::Config::default());
    power.dump = policies.dump.clone()?;
    Some(config)
}

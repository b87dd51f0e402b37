//! Hexa, figure 1, on a whole drive: seven writes, and how many mapping pages each schedule makes it
//! write back.
//!
//! Four entries per mapping page, five mapping pages, m0 dirty, two pages protected. Units and pages of
//! flash are both 4 KiB, so that each program changes one entry: the limit of two dirty pages holds
//! as the paper means it. The buffer is not protected and never full: the FLUSH makes the drive
//! write out all seven at once, whichever die is free.

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{BlockDevice, Command, Config, Lba, Ssd, Stamp};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::map::partial::Partial;
use leyden_sim::{Bytes, Ratio};

const REQUESTS: [u64; 7] = [4, 17, 12, 2, 6, 18, 7];

fn config(schedule: &str) -> Config {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 16;
    config.nand.pages_per_block = 16;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.capacity = Some(Bytes::new(20 * 4096));
    config.ftl.map.entries_per_page = Some(4);
    let protected = Ratio::from_percent(40);
    config.ftl.map.protection = ProtectionConfig::Partial(Partial { protected });
    config.buffer.region = Region::None;
    config.buffer.flush_threshold = Ratio::ONE;
    config.buffer.schedule = ScheduleConfig::by_name(schedule).expect("a schedule");
    config
}

/// Buffers a write of each unit, then has the drive write them out.
fn write_out(ssd: &mut Ssd<Stamp>, units: &[u64]) {
    let before = ssd.stats().ftl.user_units;
    for &unit in units {
        ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, 100 + unit));
    }
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    assert_eq!(ssd.stats().ftl.user_units, before, "all of them are in the buffer");
    ssd.submit(ssd.now(), Command::flush());
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    assert_eq!(done.len(), units.len() + 1);
}

/// The mapping pages written back because of the seven requests.
fn writebacks(schedule: &str) -> u64 {
    let mut ssd = Ssd::<Stamp>::new(&config(schedule), 1).expect("a good configuration");
    assert_eq!((ssd.stats().map_pages.get(), ssd.stats().map_protected_pages.get()), (5, 2));
    write_out(&mut ssd, &[0]);
    assert_eq!(
        (ssd.stats().map.dirty_peak.get(), ssd.stats().map.writebacks),
        (1, 0),
        "m0 is dirty"
    );
    write_out(&mut ssd, &REQUESTS);
    ssd.check();
    let stats = ssd.stats();
    assert_eq!((stats.ftl.user_units, stats.map.dirty_peak.get()), (8, 2));
    assert_eq!(stats.ftl.programs.map, stats.map.writebacks);
    stats.map.writebacks
}

#[test]
fn fifo_writes_five_mapping_pages_back() {
    assert_eq!(writebacks("fifo"), 5);
}

#[test]
fn hexa_writes_two_back() {
    assert_eq!(writebacks("hexa"), 2);
}

#[test]
fn dawid_writes_two_back() {
    assert_eq!(writebacks("dawid"), 2);
}

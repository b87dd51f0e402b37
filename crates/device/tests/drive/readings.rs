//! Open questions of Hexa's text (decision 18): how far a half-full buffer is written out, the
//! effect of copies on the mapping table, and the number of blocks kept back.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd, provision_of};
use leyden_ftl::Copies;
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Ratio, Rng};

fn config(protection: &str) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 128;
    config.nand.pages_per_block = 32;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.over_provisioning = Ratio::from_percent(30);
    config.ftl.map.protection = ProtectionConfig::by_name(protection).unwrap();
    config.ftl.map.entries_per_page = Some(64);
    config.buffer.size = Bytes::new(64 * 4096);
    config
}

/// Writes these units, until nothing is left to be done.
fn write(ssd: &mut Ssd<NoData>, units: impl Iterator<Item = u64>) {
    let mut done = Vec::new();
    for unit in units {
        ssd.submit(ssd.now(), Command::write(Lba(unit * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    }
}

#[test]
fn a_buffer_is_drained_from_the_threshold_on() {
    let programmed = |drain_to: Option<u64>| {
        let mut config = config("full");
        config.buffer.drain_to = drain_to.map(Ratio::from_percent);
        let mut ssd = Ssd::new(&config, 1).unwrap();
        write(&mut ssd, 0..31);
        assert_eq!(ssd.stats().ftl.user_units, 0, "less than half is dirty");
        write(&mut ssd, 31..32);
        ssd.stats().ftl.user_units
    };
    assert_eq!([None, Some(50), Some(25), Some(0)].map(programmed), [1, 1, 16, 32]);
}

#[test]
fn more_than_the_threshold_is_no_mark_to_drain_to() {
    let mut config = config("full");
    for region in [Region::Full, Region::None] {
        config.buffer.region = region;
        config.buffer.drain_to = Some(Ratio::from_percent(51));
        let error = provision_of(&config).unwrap_err();
        assert_eq!(error.key, "buffer.drain_to", "{error}");
    }
}

#[test]
fn copies_change_mapping_pages_or_leave_it_to_later() {
    for copies in [Copies::Deferred, Copies::Dirty] {
        let mut config = config("partial");
        config.ftl.map.copies = copies;
        let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
        let units = u64::from(ssd.mapping_units());
        let mut rng = Rng::new(1, "readings");
        write(&mut ssd, (0..units).chain((0..4 * units).map(|_| rng.below(units))));
        ssd.check();
        let stats = ssd.stats();
        let copied = stats.ftl.gc.copied_units;
        assert!(copied > units, "garbage was collected");
        let counted = if copies == Copies::Dirty { copied } else { 0 };
        assert_eq!(stats.map.updates, stats.ftl.user_units + counted, "{copies:?}");
    }
}

#[test]
fn protections_have_as_many_blocks_for_data() {
    for protection in ["full", "partial", "journal", "none"] {
        let mut config = config(protection);
        let needed = provision_of(&config).unwrap().kept_blocks_per_die;
        assert!(needed < 12, "{protection}: {needed}");
        config.ftl.map.kept_blocks = Some(12);
        assert_eq!(provision_of(&config).unwrap().kept_blocks_per_die, 12, "{protection}");
        config.ftl.map.kept_blocks = Some(1);
        let kept = provision_of(&config).unwrap().kept_blocks_per_die;
        assert_eq!(kept, needed.max(1), "{protection}: no fewer than it needs");
        config.ftl.map.kept_blocks = Some(12);
        let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
        let units = u64::from(ssd.mapping_units());
        write(&mut ssd, (0..2 * units).map(|unit| unit % units));
        ssd.check();
    }
}

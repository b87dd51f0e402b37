//! Configurations that there can be no zoned drive of: each is refused with its key.

use leyden_buffer::Region;
use leyden_device::{Config, provision_of_zones};
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Ratio};

use super::{SIZE, selective};

type Wrong = (&'static str, fn(&mut Config));

fn zoned(config: &mut Config) -> &mut leyden_ftl::zoned::Config {
    config.zoned.as_mut().unwrap()
}

fn zrwa(config: &mut Config) -> &mut leyden_ftl::zoned::ZrwaConfig {
    zoned(config).zrwa.as_mut().unwrap()
}

#[test]
fn what_contradicts_itself_is_refused_with_its_key() {
    assert!(provision_of_zones(&selective()).is_ok());
    let wrong: [Wrong; 24] = [
        ("zoned.zone_capacity", |c| zoned(c).zone_capacity = Some(Bytes::new(33 * 4096))),
        ("zoned.zone_capacity", |c| zoned(c).zone_capacity = Some(Bytes::new(0))),
        ("zoned.zone_size", |c| {
            (zoned(c).zone_capacity, zoned(c).zone_size) = (None, Bytes::new(SIZE * 4096 + 4096));
        }),
        ("zoned.zone_size", |c| zoned(c).zone_size = Bytes::new(16 * 4096)),
        ("zoned.zone_size", |c| {
            (zoned(c).zone_capacity, zoned(c).zone_size) = (None, Bytes::new(1 << 40));
        }),
        ("zoned.dies_per_zone", |c| zoned(c).dies_per_zone = 0),
        ("zoned.dies_per_zone", |c| zoned(c).dies_per_zone = 5),
        ("zoned.max_open", |c| zoned(c).max_open = 6),
        ("zoned.max_open", |c| zoned(c).max_open = 0),
        ("zoned.max_active", |c| zoned(c).max_active = 10_000),
        ("zoned.append_limit", |c| zoned(c).append_limit = Bytes::new(100)),
        ("zoned.copy_limit", |c| zoned(c).copy_limit = Bytes::new(2 << 30)),
        ("zoned.spare", |c| zoned(c).spare = Ratio::from_percent(95)),
        ("zoned.descriptor_extension", |c| zoned(c).descriptor_extension = Bytes::new(65)),
        ("zoned.zrwa.granularity", |c| zrwa(c).granularity = Bytes::new(1000)),
        ("zoned.zrwa.size", |c| zrwa(c).size = Bytes::new(3 * 4096)),
        ("zoned.zrwa.size", |c| zrwa(c).size = Bytes::new(64 * 4096)),
        ("zoned.zrwa.count", |c| zrwa(c).count = 0),
        // More areas, or active zones, than the region holds.
        ("buffer.protected_size", |c| zrwa(c).count = 8),
        ("buffer.protected_size", |c| c.buffer.protected_size = Bytes::new(2 * 4096)),
        ("buffer.protected_size", |c| c.buffer.protected_size = c.buffer.size),
        ("buffer.region", |c| c.buffer.region = Region::None),
        ("buffer.flush_threshold", |c| c.buffer.flush_threshold = Ratio::ZERO),
        ("power.failed_programs", |c| {
            let power = c.power.get_or_insert_default();
            (power.dump, power.failed_programs) = (DumpConfig::by_name("in_place").unwrap(), 1);
        }),
    ];
    for (number, (key, change)) in wrong.into_iter().enumerate() {
        let mut config = selective();
        change(&mut config);
        match provision_of_zones(&config) {
            Err(error) => assert_eq!(error.key, key, "{number}: {error}"),
            Ok(provision) => panic!("{number}, {key}: {provision:?}"),
        }
    }
}

//! Snapshots: a loaded drive goes on as the saved one would have; damaged ones are refused.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Lba, Payload, SnapshotError, Ssd, Stamp};
use leyden_sim::{Bytes, Ratio, Rng};
use proptest::prelude::*;

fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 16;
    config.nand.pages_per_block = 8;
    config.nand.faults.program_failures = Ratio::from_ppm(500);
    config.ftl.over_provisioning = Ratio::from_percent(60);
    config.ftl.placement = leyden_ftl::place::PlacementConfig::by_name("dac").unwrap();
    config.buffer.region = Region::None;
    config.buffer.size = Bytes::new(256 << 10);
    config
}

/// Random writes, then whatever background work they leave.
fn work<P: Payload<WriteData = u64>>(ssd: &mut Ssd<P>, count: u64, seed: u64) {
    let mut rng = Rng::new(seed, "snapshot");
    let units = u64::from(ssd.mapping_units());
    for i in 0..count {
        let command = Command::write(Lba(rng.below(units) * 8), 8, i + 1);
        ssd.submit(ssd.now(), command);
        let mut done = Vec::new();
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
    }
}

fn saved() -> (Ssd<Stamp>, Vec<u8>) {
    let mut ssd = Ssd::<Stamp>::new(&config(), 5).unwrap();
    ssd.set_untimed(true);
    work(&mut ssd, 2_000, 1);
    ssd.set_untimed(false);
    let mut bytes = Vec::new();
    ssd.save(&mut bytes).unwrap();
    (ssd, bytes)
}

#[test]
fn a_loaded_drive_goes_on_where_the_saved_one_was() {
    let (mut ssd, bytes) = saved();
    let mut loaded = Ssd::<Stamp>::load(&config(), 5, &mut bytes.as_slice()).unwrap();
    assert_eq!(loaded.now(), ssd.now());
    work(&mut ssd, 1_000, 2);
    work(&mut loaded, 1_000, 2);
    ssd.check();
    loaded.check();
    assert_eq!(loaded.digest(), ssd.digest());
}

/// Wherever the drive stands: whose turn it is among the dies is part of its state.
#[test]
fn any_moment_at_rest_can_be_saved() {
    for count in 100..130 {
        let mut ssd = Ssd::<Stamp>::new(&config(), 5).unwrap();
        work(&mut ssd, count, 1);
        let mut bytes = Vec::new();
        ssd.save(&mut bytes).unwrap();
        let mut loaded = Ssd::<Stamp>::load(&config(), 5, &mut bytes.as_slice()).unwrap();
        work(&mut ssd, 50, 2);
        work(&mut loaded, 50, 2);
        assert_eq!(loaded.digest(), ssd.digest(), "after {count} writes");
    }
}

#[test]
fn foreign_snapshots_are_refused() {
    let (_, bytes) = saved();
    let mut other = config();
    other.nand.pages_per_block = 10;
    let load = |config: &Config, bytes: &[u8]| Ssd::<Stamp>::load(config, 5, &mut { bytes });
    assert!(matches!(load(&other, &bytes), Err(SnapshotError::Foreign(_))));
    assert!(matches!(
        load(&config(), b"not a snapshot, but long enough"),
        Err(SnapshotError::Foreign(_))
    ));
    assert!(matches!(load(&config(), b""), Err(SnapshotError::Corrupt(_))));
    let no_data = Ssd::<leyden_device::NoData>::load(&config(), 5, &mut bytes.as_slice());
    assert!(matches!(no_data, Err(SnapshotError::Foreign(_))));
    let longer = [bytes.as_slice(), b"x"].concat();
    assert!(matches!(load(&config(), &longer), Err(SnapshotError::Corrupt(_))));
    let mut newer = bytes;
    newer[8] += 1;
    let error = load(&config(), &newer).unwrap_err().to_string();
    assert!(error.contains("version") && error.contains("precondition again"), "{error}");
}

proptest! {
    #[test]
    fn damage_anywhere_is_noticed(at: prop::sample::Index, bit in 0_u8..8, cut in any::<bool>()) {
        let (_, mut bytes) = saved();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        prop_assert!(Ssd::<Stamp>::load(&config(), 5, &mut bytes.as_slice()).is_err());
    }
}

//! Snapshots of zoned drives: a loaded drive goes on as the saved one would have; damaged ones are refused.

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, Config, Lba, SnapshotError, Ssd, Stamp, ZnsSsd, ZoneAction, ZoneId,
};
use leyden_sim::{Ratio, Rng};
use proptest::prelude::*;

use super::{BLOCK, CAPACITY, Drive, config, selective};

fn drawn(region: Region, faults: bool, schedule: u64) -> Config {
    let mut config = if region == Region::Selective { selective() } else { config() };
    config.buffer.region = region;
    config.buffer.flush_threshold = Ratio::from_percent([30, 90][(schedule % 2) as usize]);
    if faults {
        config.nand.faults.program_failures = Ratio::from_percent(1);
    }
    if region == Region::None {
        config.zoned.as_mut().unwrap().zrwa = None; // there is nowhere to keep them
    }
    config
}

/// Any commands, most of them right. Power cuts come between them.
fn work(ssd: &mut ZnsSsd<Stamp>, count: u64, seed: u64) {
    let mut rng = Rng::new(seed, "zones.saved");
    let (zones, selective) = (ssd.zone_shape().zones.min(9), ssd.region() == Region::Selective);
    for stamp in 1..=count {
        let zone = rng.below(u64::from(zones)) as u32;
        let first = Drive::lba(zone, 0);
        let descriptor = ssd.zone(ZoneId(zone));
        let at = descriptor.write_pointer.unwrap_or(first);
        let above = if descriptor.has_zrwa { rng.below(10) } else { 0 };
        let blocks = 1 + rng.below(6) as u32;
        let write = |rng: &mut Rng| {
            let at = Lba(at.0 + above * u64::from(BLOCK));
            let write = Command::write(at, blocks * BLOCK, seed * 10_000 + stamp);
            write.plp(selective && rng.below(2) == 0).fua(rng.below(8) == 0)
        };
        let command = match rng.below(24) {
            0 => Command::flush(),
            1 => Command::zone(ZoneAction::Reset, first),
            2 => Command::zone(ZoneAction::Finish, first),
            3 => Command::zone(ZoneAction::Close, first),
            4 => Command::zone(ZoneAction::Open, first).zrwa(rng.below(2) == 0),
            5 => Command::zone(ZoneAction::FlushZrwa, Lba(at.0 + u64::from(2 * BLOCK) - 1)),
            6..9 => Command::read(first, CAPACITY as u32 * BLOCK),
            9..12 => Command::zone_append(first, blocks * BLOCK, seed * 10_000 + stamp),
            12 if rng.below(4) == 0 => {
                ssd.cut_power(ssd.now());
                ssd.restore_power(ssd.now());
                continue;
            }
            _ => write(&mut rng),
        };
        ssd.submit(ssd.now(), command);
        let mut done = Vec::new();
        while done.is_empty() {
            let time = ssd.next_event().expect("a command is under way");
            ssd.advance(time, &mut done);
        }
    }
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut Vec::new());
    }
}

fn saved(ssd: &ZnsSsd<Stamp>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ssd.save(&mut bytes).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever the drive stands: whose turn it is, and what the areas hold, is part of its state.
    #[test]
    fn any_moment_at_rest_can_be_saved(
        before in 0_u64..300, after in 1_u64..200, seed in 0_u64..10_000, region in 0_usize..3,
        faults: bool, schedule: u64,
    ) {
        let region = [Region::None, Region::Selective, Region::Full][region];
        let config = drawn(region, faults, schedule);
        let mut ssd = ZnsSsd::<Stamp>::new(&config, seed).unwrap();
        work(&mut ssd, before, seed);
        prop_assume!(ssd.is_idle()); // a drive that has run out of blocks never is
        let mut loaded = ZnsSsd::<Stamp>::load(&config, seed, &mut &saved(&ssd)[..]).unwrap();
        prop_assert_eq!(loaded.all_zones(), ssd.all_zones());
        prop_assert_eq!(loaded.whole(), ssd.whole());
        prop_assert_eq!(loaded.pool_fill(), ssd.pool_fill());
        for ssd in [&mut ssd, &mut loaded] {
            work(ssd, after, seed + 1);
            ssd.check();
        }
        prop_assert_eq!(loaded.digest(), ssd.digest());
        prop_assert_eq!(loaded.all_zones(), ssd.all_zones());
        prop_assert_eq!(loaded.whole(), ssd.whole());
    }

    #[test]
    fn damage_anywhere_is_noticed(at: prop::sample::Index, bit in 0_u8..8, cut: bool) {
        let mut ssd = ZnsSsd::<Stamp>::new(&selective(), 5).unwrap();
        work(&mut ssd, 200, 5);
        let mut bytes = saved(&ssd);
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        prop_assert!(ZnsSsd::<Stamp>::load(&selective(), 5, &mut &bytes[..]).is_err());
    }

    /// A state that no drive was in is refused or taken, and breaks nothing in loading.
    #[test]
    fn damage_under_a_right_checksum_is_no_panic(at: prop::sample::Index, byte: u8) {
        let mut ssd = ZnsSsd::<Stamp>::new(&selective(), 5).unwrap();
        work(&mut ssd, 200, 5);
        let mut bytes = saved(&ssd);
        let end = bytes.len() - 4;
        let at = 21 + at.index(end - 21);
        bytes[at] = byte;
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
        let _ = ZnsSsd::<Stamp>::load(&selective(), 5, &mut &bytes[..]);
    }
}

#[test]
fn foreign_snapshots_are_refused() {
    let ssd = ZnsSsd::<Stamp>::new(&config(), 5).unwrap();
    let bytes = saved(&ssd);
    let mut other = config();
    other.nand.blocks_per_plane = 26;
    let foreign = |result: Result<ZnsSsd<Stamp>, SnapshotError>| {
        matches!(result, Err(SnapshotError::Foreign(_)))
    };
    assert!(foreign(ZnsSsd::load(&other, 5, &mut &bytes[..])));
    let mut conventional = config();
    conventional.zoned = None;
    conventional.power = None;
    conventional.ftl.over_provisioning = Ratio::from_percent(60);
    let taken = Ssd::<Stamp>::load(&conventional, 5, &mut &bytes[..]);
    assert!(matches!(taken, Err(SnapshotError::Foreign(_))));
    let mut bytes = Vec::new();
    Ssd::<Stamp>::new(&conventional, 5).unwrap().save(&mut bytes).unwrap();
    assert!(foreign(ZnsSsd::load(&config(), 5, &mut &bytes[..])));
}

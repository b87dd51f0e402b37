//! Blocks go bad as the configuration says, and are never used again.

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd, Status};
use leyden_sim::{Bytes, Ratio, Rng};

fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 64;
    config.nand.pages_per_block = 8;
    config.ftl.over_provisioning = Ratio::from_percent(100);
    config.buffer.size = Bytes::new(128 << 10);
    config
}

/// Overwrites the drive `times` times over, or until it has no room left; returns the erases of
/// every block.
fn wear(config: &Config, times: u64) -> Vec<Option<u32>> {
    let mut ssd = Ssd::<NoData>::new(config, 1).unwrap();
    ssd.set_untimed(true);
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(1, "bad_blocks");
    let mut done = Vec::new();
    for _ in 0..units * times {
        ssd.submit(ssd.now(), Command::write(Lba(rng.below(units) * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        if done.drain(..).any(|completion| completion.status == Status::WriteFault) {
            break;
        }
    }
    ssd.check();
    ssd.wear().collect()
}

fn bad(wear: &[Option<u32>]) -> usize {
    wear.iter().filter(|erases| erases.is_none()).count()
}

#[test]
fn bad_from_the_factory() {
    let mut config = config();
    assert_eq!(bad(&wear(&config, 0)), 0);
    config.nand.faults.factory_bad_blocks = Ratio::from_percent(10);
    let new = bad(&wear(&config, 0));
    assert!((4..26).contains(&new), "{new} of 128");
    assert_eq!(bad(&wear(&config, 4)), new);
}

#[test]
fn failed_erases_retire_blocks() {
    let mut config = config();
    config.nand.faults.erase_failures = Ratio::from_percent(1);
    // Some 300 erases.
    let bad = bad(&wear(&config, 4));
    assert!((1..12).contains(&bad), "{bad}");
}

/// A block in which a program has failed is emptied and retired, and every failure is counted.
#[test]
fn failed_programs_retire_blocks() {
    let mut config = config();
    config.nand.faults.program_failures = Ratio::from_ppm(1_000);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(1, "bad_blocks");
    let mut done = Vec::new();
    for _ in 0..units * 8 {
        ssd.submit(ssd.now(), Command::write(Lba(rng.below(units) * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
    }
    ssd.check();
    let stats = ssd.stats();
    let programs = stats.ftl.programs.user + stats.ftl.programs.gc_user;
    assert!(done.iter().all(|completion| completion.status == Status::Success));
    // Some 4,000 programs.
    assert!((1..15).contains(&stats.ftl.program_failures), "{}", stats.ftl.program_failures);
    assert!(programs > 3_000, "{programs}");
    // A block may fail but once before it is retired, and blocks wait to be emptied.
    assert!(stats.bad_blocks.get() > 0 && stats.bad_blocks.get() <= stats.ftl.program_failures);
}

#[test]
fn worn_out_blocks_are_retired() {
    let mut config = config();
    config.nand.endurance_cycles = 5;
    let wear = wear(&config, 50);
    assert!(bad(&wear) > 30, "the drive wears out");
    assert!(wear.iter().flatten().all(|&erases| erases < 5));
}

//! Force unit access on a drive whose trims only flash keeps: a FUA write that a trim drops ends when the trim is on flash, and so do
//! zeroes with FUA.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Completion, Config, Lba, Ssd, Stamp, Status};
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Capacitance, Ratio};

const UNIT: u64 = 8;
/// The unit that is watched. Its mapping page is the second that a trim of all up to it makes dirty: programs that are under way at
/// a cut come to their end, so that a page alone would always be in time.
const WATCHED: u64 = 17;

/// One die of pages of two units. Only flash keeps trims: the bank pays for one page of a dump.
fn config(region: Region, failures: u64) -> Config {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 64;
    config.nand.pages_per_block = 8;
    config.nand.faults.program_failures = Ratio::from_percent(failures);
    config.ftl.over_provisioning = Ratio::from_percent(300);
    config.ftl.map.entries_per_page = Some(16);
    config.ftl.map.protection = ProtectionConfig::by_name("none").unwrap();
    config.buffer.region = region;
    config.buffer.size = Bytes::new(64 << 10);
    if region == Region::Selective {
        config.buffer.protected_size = Bytes::new(16 << 10);
    }
    let power = config.power.get_or_insert_default();
    power.allow_underprovisioned = true;
    power.bank.capacitance = Some(Capacitance::from_uf(40));
    config
}

fn write(unit: u64, stamp: u64) -> Command<Stamp> {
    Command::write(Lba(unit * UNIT), UNIT as u32, stamp)
}

fn finish(ssd: &mut Ssd<Stamp>) {
    while let Some(next) = ssd.next_event() {
        ssd.advance(next, &mut Vec::new());
    }
}

/// The watched unit as a cut now leaves it; 0 for zeroes.
fn left(ssd: &Ssd<Stamp>) -> u64 {
    let mut ssd = ssd.clone();
    ssd.cut_power(ssd.now());
    ssd.restore_power(ssd.now());
    finish(&mut ssd);
    ssd.stored(Lba(WATCHED * UNIT)).map_or(0, |stamp| stamp.0)
}

/// The watched unit and unit 0 are on flash; then others keep the die busy, `forced` is submitted, and `events` later `then`. What
/// cuts leave of the watched unit once `forced` has ended.
fn after(config: &Config, seed: u64, commands: [Command<Stamp>; 2], events: u64) -> Vec<u64> {
    let mut ssd = Ssd::<Stamp>::new(config, seed).unwrap();
    for command in [write(0, 1), write(WATCHED, 1), Command::flush()] {
        ssd.submit(ssd.now(), command);
        finish(&mut ssd);
    }
    assert_eq!(left(&ssd), 1);
    for unit in 1..4 {
        ssd.submit(ssd.now(), write(unit, 10).fua(true));
    }
    let [forced, then] = commands;
    ssd.submit(ssd.now(), forced.tag(7));
    let mut done: Vec<Completion<Stamp>> = Vec::new();
    for _ in 0..events {
        let Some(next) = ssd.next_event() else { break };
        ssd.advance(next, &mut done);
    }
    ssd.submit(ssd.now(), then);
    let mut found = Vec::new();
    while let Some(next) = ssd.next_event() {
        ssd.advance(next, &mut done);
        let ended = done.iter().find(|done| done.tag == 7);
        if let Some(ended) = ended {
            assert_eq!(ended.status, Status::Success);
            found.push(left(&ssd));
        }
    }
    assert!(done.iter().any(|done| done.tag == 7), "every command ends");
    found
}

/// A cut after a FUA write has ended never brings back what was there before, whenever a trim of it came.
#[test]
fn a_trim_takes_a_forced_write_along_only_for_good() {
    let mut zeroes = 0;
    for failures in [0, 40] {
        for seed in 0..100 {
            for events in 0..8 {
                let trim = Command::trim(Lba(0), (WATCHED + 1) as u32 * UNIT as u32);
                let commands = [write(WATCHED, 2).fua(true), trim];
                let found = after(&config(Region::None, failures), seed, commands, events);
                assert!(!found.contains(&1), "{failures} % fail, seed {seed}, {events}: {found:?}");
                zeroes += found.iter().filter(|&&stamp| stamp == 0).count();
            }
        }
    }
    assert!(zeroes > 0, "the trims take effect");
}

#[test]
fn forced_zeroes_are_on_flash_when_they_end() {
    for region in [Region::None, Region::Selective] {
        for (seed, failures) in (0..20).flat_map(|seed| [(seed, 0), (seed, 40)]) {
            for events in 0..8 {
                let zeroes =
                    Command::write_zeroes(Lba(0), (WATCHED + 1) as u32 * UNIT as u32, 2).fua(true);
                let found = after(&config(region, failures), seed, [zeroes, write(9, 11)], events);
                assert!(!found.is_empty());
                assert!(found.iter().all(|&stamp| stamp == 0), "{region:?}: {found:?}");
            }
        }
    }
}

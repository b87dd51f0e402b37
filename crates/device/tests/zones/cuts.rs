//! Power cuts: what is protected is kept with everything below it, and nothing else comes back.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Stamp, Status, ZnsSsd, ZoneAction, ZoneState};
use leyden_power::DumpConfig;
use leyden_sim::{Ratio, Rng, Time};

use super::{CAPACITY, Drive, SIZE, config, selective};

fn with_dump(mut config: Config, dump: &str) -> Config {
    config.power.get_or_insert_default().dump = DumpConfig::by_name(dump).unwrap();
    config
}

/// The contents that a zone must have, block by block, and the end of the certain part.
#[derive(Clone, Default, Debug)]
struct Model {
    stamps: Vec<u64>,
    promised: usize,
}

/// Writes at random, cuts at random, and looks at every zone after each cut.
fn torture(config: &Config, seed: u64, cuts: u32) {
    let mut rng = Rng::new(seed, "zones");
    let mut drive = Drive::new(config);
    let zones = 6;
    let mut models = vec![Model::default(); zones];
    let region = config.buffer.region;
    for cut in 0..cuts {
        for _ in 0..rng.below(60) {
            let zone = rng.below(zones as u64) as u32;
            let model = &mut models[zone as usize];
            let blocks = 1 + rng.below(6) as u32;
            let plp = region != Region::None && rng.below(3) == 0;
            match rng.below(12) {
                0 => {
                    if drive.act(ZoneAction::Reset, zone) == Status::Success {
                        *model = Model::default();
                    }
                }
                1 => {
                    assert_eq!(drive.run(Command::flush()).status, Status::Success);
                    for model in &mut models {
                        model.promised = model.stamps.len();
                    }
                }
                2 if drive.zone(zone).state.is_active() => {
                    drive.act(ZoneAction::Finish, zone);
                }
                _ => {
                    let Some(at) = drive.wp(zone) else { continue };
                    let command = drive.write_at(zone, at, blocks).plp(plp);
                    let end = drive.run(command);
                    if end.status == Status::Success {
                        model.stamps.extend(vec![drive.stamp(); blocks as usize]);
                        if plp || region == Region::Full {
                            model.promised = model.stamps.len();
                        }
                    }
                }
            }
        }
        // Programs are on their way, in any phase.
        if let Some(next) = drive.ssd.next_event() {
            let at = next + leyden_sim::Span::from_ns(rng.below(2_000_000));
            drive.ssd.advance(at, &mut Vec::new());
        }
        drive.cut();
        for (zone, model) in models.iter_mut().enumerate() {
            let found = drive.read(zone as u32, 0, CAPACITY as u32);
            let kept = found.iter().take_while(|&&stamp| stamp != 0).count();
            assert!(
                kept >= model.promised,
                "seed {seed}, cut {cut}, zone {zone}: {kept} {model:?}"
            );
            assert_eq!(found[..kept], model.stamps[..kept], "seed {seed}, cut {cut}, zone {zone}");
            assert!(found[kept..].iter().all(|&stamp| stamp == 0), "nothing above what was kept");
            if drive.zone(zone as u32).state != ZoneState::Full {
                assert_eq!(drive.wp(zone as u32), Some(kept as u64), "seed {seed}, cut {cut}");
            }
            model.stamps.truncate(kept);
            model.promised = kept;
        }
    }
    drive.settle();
}

#[test]
fn random_cuts_lose_nothing_that_was_promised() {
    for dump in ["balanced", "in_place", "balanced_slc"] {
        for seed in 0..12 {
            torture(&with_dump(selective(), dump), seed, 12);
            torture(&with_dump(config(), dump), seed, 12);
        }
    }
    let mut none = config();
    none.buffer.region = Region::None;
    none.zoned.as_mut().unwrap().zrwa = None;
    (0..12).for_each(|seed| torture(&none, seed, 12));
}

#[test]
fn nor_do_they_with_faults() {
    for dump in ["balanced", "in_place"] {
        let mut config = with_dump(selective(), dump);
        config.nand.faults.program_failures = Ratio::from_percent(1);
        config.nand.faults.erase_failures = Ratio::from_ppm(2_000);
        config.nand.blocks_per_plane = 64;
        config.zoned.as_mut().unwrap().spare = Ratio::from_percent(60);
        (0..12).for_each(|seed| torture(&config, seed, 12));
    }
}

/// Programs of the dump fail, as many as the bank and the blocks for dumps are made for; their blocks are retired.
#[test]
fn nor_do_dumps_whose_programs_fail() {
    for dump in ["balanced", "balanced_slc"] {
        let mut config = with_dump(selective(), dump);
        config.nand.faults.program_failures = Ratio::from_percent(50);
        config.power.as_mut().unwrap().failed_programs = 8;
        let mut drive = Drive::new(&config);
        let command = drive.write_at(2, 0, 3).plp(true);
        assert_eq!(drive.run(command).status, Status::Success);
        let stamp = drive.stamp();
        let mut failed = 0;
        for _ in 0..4 {
            failed += drive.ssd.cut_cost().map_or(0, |cost| cost.failed_programs);
            drive.cut();
            assert_eq!(drive.read(2, 0, 3), [stamp; 3], "{dump}");
        }
        assert!(failed > 0, "{dump}: none of the dumps' programs has failed");
        drive.ssd.cut_power(drive.ssd.now());
        assert!(drive.ssd.into_medium().bad_blocks() > 0, "{dump}");
    }
}

/// A dump pays for programs that it lets go on to their end: what they hold is kept, though nobody protected it.
#[test]
fn programs_that_still_end_count() {
    for dump in ["balanced", "in_place", "balanced_slc"] {
        let mut config = with_dump(config(), dump);
        config.buffer.region = Region::None;
        config.zoned.as_mut().unwrap().zrwa = None;
        let mut drive = Drive::new(&config);
        assert_eq!(drive.write(2, 2), Status::Success);
        drive.ssd.submit(drive.ssd.now(), Command::flush());
        while drive.ssd.medium().on_the_way().all(|op| op.end.is_none()) {
            let time = drive.ssd.next_event().expect("a program begins");
            drive.ssd.advance(time, &mut Vec::new());
        }
        drive.cut();
        assert_eq!(drive.read(2, 0, 3), [1, 1, 0], "{dump}");
        assert_eq!(drive.wp(2), Some(2), "{dump}");
    }
}

/// The same drive on the medium alone, as another process would find it.
#[test]
fn the_medium_alone_is_enough() {
    let config = selective();
    let mut drive = Drive::new(&config);
    let command = drive.write_at(2, 0, 7).plp(true);
    drive.run(command);
    drive.write(2, 2);
    drive.write(4, 3);
    drive.run(Command::flush());
    drive.act(ZoneAction::Finish, 4);
    let now = drive.ssd.now();
    drive.ssd.cut_power(now);
    let medium = drive.ssd.into_medium();
    let mut again = ZnsSsd::<Stamp>::on_medium(&config, medium).unwrap();
    let ready = again.restore_power(Time::ZERO).ready_at;
    again.advance(ready, &mut Vec::new());
    again.check();
    let mut again = Drive { ssd: again, stamp: 100 };
    assert_eq!(again.read(2, 0, 10), [1, 1, 1, 1, 1, 1, 1, 2, 2, 0]);
    assert_eq!((again.wp(2), again.zone(4).state), (Some(9), ZoneState::Full));
    assert_eq!(again.read(4, 0, 4), [3, 3, 3, 0]);
}

/// A bank that does not reach for all pages of the zone table: a scan finds the zones.
#[test]
fn a_scan_finds_the_zones_where_the_table_is_lost() {
    let mut config = selective();
    config.nand.blocks_per_plane = 600;
    let power = config.power.as_mut().unwrap();
    power.allow_underprovisioned = true;
    power.bank.capacitance = Some("60 uF".parse().unwrap());
    let mut drive = Drive::new(&config);
    for zone in 0..4 {
        drive.write(zone, 9);
    }
    drive.act(ZoneAction::Reset, 1);
    drive.write(1, 4);
    drive.run(Command::flush());
    let command = drive.write_at(5, 0, 20).plp(true);
    drive.run(command);
    let loss = drive.ssd.cut_power(drive.ssd.now());
    assert!(loss.lost_map_pages > 0, "{loss:?}");
    let recovery = drive.ssd.restore_power(drive.ssd.now());
    assert_eq!(recovery.scanned_map_pages, 1);
    drive.ssd.advance(recovery.ready_at, &mut Vec::new());
    drive.ssd.check();
    for zone in [0, 2, 3] {
        assert_eq!(drive.read(zone, 0, 10), [vec![u64::from(zone) + 1; 9], vec![0]].concat());
        assert_eq!((drive.wp(zone), drive.zone(zone).state), (Some(9), ZoneState::Closed));
    }
    assert_eq!(drive.read(1, 0, 5), [5, 5, 5, 5, 0], "what was reset does not come back");
    drive.append(0, 3);
    drive.run(Command::flush());
    drive.cut();
    assert_eq!(drive.read(0, 8, 5), [1, 7, 7, 7, 0]);
}

/// The bank reaches for part of the dump only: what is lost is named, and zones end before it.
#[test]
fn what_a_small_bank_loses_is_named() {
    for dump in ["balanced", "in_place"] {
        let mut named = 0;
        for microfarads in (200..3_000).step_by(200) {
            let mut config = with_dump(config(), dump);
            let power = config.power.as_mut().unwrap();
            power.allow_underprovisioned = true;
            power.bank.capacitance = Some(format!("{microfarads} uF").parse().unwrap());
            let mut drive = Drive::new(&config);
            for zone in 0..3 {
                drive.write(zone, 19);
            }
            let loss = drive.ssd.cut_power(drive.ssd.now());
            let ready = drive.ssd.restore_power(drive.ssd.now()).ready_at;
            drive.ssd.advance(ready, &mut Vec::new());
            drive.ssd.check();
            if loss.lost_map_pages > 0 {
                continue; // all of it is uncertain
            }
            named += loss.lost.len();
            for zone in 0..3 {
                let found = drive.read(zone, 0, CAPACITY as u32);
                let kept = found.iter().take_while(|&&stamp| stamp != 0).count() as u64;
                assert_eq!(drive.wp(zone), Some(kept));
                for block in 0..19 {
                    let unit = leyden_nand::Lpn((u64::from(zone) * SIZE + block) as u32);
                    let is_lost = loss.lost.contains(&unit);
                    assert_eq!(block >= kept, is_lost, "{dump} {microfarads} zone {zone} {block}");
                }
            }
        }
        assert!(named > 0, "no bank was too small for {dump}");
    }
}

//! Zoned drives in images: what was promised is there after a kill, and a killed drive comes back exactly.
//!
//! Two twins. A slow one lists what each zone was given, and how much of that is promised: against it the drive
//! may lose nothing. The other is a drive that is never killed: it gets the same commands, and its power fails at the
//! moment of the kill. Both drives must then be the same to the digest.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_buffer::Region;
use leyden_device::{Config, Lba, SECTOR_BYTES, Status, ZoneAction, ZoneId, ZoneState};
use leyden_image::recording::{Recording, Replay};
use leyden_image::{Done, Drive, ImageConfig, ImageError, WriteFlags, ZoneAsk};
use leyden_sim::{Bytes, Ratio, Rng};
use proptest::prelude::*;

const BLOCK: usize = 4_096;
const BLOCK_SECTORS: u64 = BLOCK as u64 / SECTOR_BYTES;
/// Blocks from a zone to the next, and of what can be written of it.
const SIZE: u64 = 64;
const CAPACITY: u64 = 32;
const AREA: u64 = 8;

/// Four dies with pages of two blocks; zones of 32 blocks on two dies.
fn config(region: Region, seed: u64) -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (2, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.nand.page_size = Bytes::new(8 << 10);
    device.buffer.size = Bytes::new(512 << 10);
    device.buffer.region = region;
    device.buffer.flush_threshold = Ratio::from_percent(30);
    if region == Region::Selective {
        device.buffer.protected_size = Bytes::new(256 << 10);
    }
    let zrwa = leyden_ftl::zoned::ZrwaConfig {
        size: Bytes::new(AREA * BLOCK as u64),
        granularity: Bytes::new(2 * BLOCK as u64),
        count: 2,
    };
    device.zoned = Some(leyden_ftl::zoned::Config {
        zone_size: Bytes::new(SIZE * BLOCK as u64),
        zone_capacity: Some(Bytes::new(CAPACITY * BLOCK as u64)),
        dies_per_zone: 2,
        max_open: 4,
        max_active: 5,
        zrwa: (region != Region::None).then_some(zrwa),
        ..leyden_ftl::zoned::Config::default()
    });
    device.power = Some(leyden_power::Config::default());
    ImageConfig { name: "test".to_owned(), seed, device, stack: None, made_by: "test".to_owned() }
}

/// The content of a block after write `number`; 0 is zeroes.
fn block(number: u64) -> Vec<u8> {
    number.to_le_bytes().iter().copied().cycle().take(BLOCK).collect()
}

fn lba(zone: u32, block: u64) -> Lba {
    Lba((u64::from(zone) * SIZE + block) * BLOCK_SECTORS)
}

#[derive(Clone, Debug)]
enum ZonedCommand {
    Write { zone: u32, at: u64, blocks: u64, number: u64, flags: WriteFlags },
    Append { zone: u32, blocks: u64, number: u64, flags: WriteFlags },
    Read { zone: u32 },
    Zone { zone: u32, ask: ZoneAsk },
    Report,
    Flush,
}

fn submit(drive: &mut Drive, asked: &ZonedCommand) {
    let now = drive.now();
    let data = |blocks: u64, number: u64| {
        (0..blocks).flat_map(|at| block(number + at)).collect::<Vec<_>>()
    };
    let done = match *asked {
        ZonedCommand::Write { zone, at, blocks, number, flags } => {
            drive.write(now, 0, lba(zone, at), &data(blocks, number), flags)
        }
        ZonedCommand::Append { zone, blocks, number, flags } => {
            drive.append(now, 0, lba(zone, 0), &data(blocks, number), flags)
        }
        ZonedCommand::Read { zone } => {
            drive.read(now, 0, lba(zone, 0), (CAPACITY * BLOCK_SECTORS) as u32)
        }
        ZonedCommand::Zone { ask, .. } => drive.zone(now, 0, ask),
        ZonedCommand::Report => drive.zone_report(now, 0, Lba(0), 3),
        ZonedCommand::Flush => drive.flush(now, 0),
    };
    done.unwrap();
}

fn wait(drive: &mut Drive) -> Done {
    let mut done = Vec::new();
    while done.is_empty() {
        let next = drive.next_event().expect("a drive that owes an answer has something to do");
        drive.advance(next, &mut done).unwrap();
    }
    assert_eq!(done.len(), 1);
    done.remove(0)
}

/// Draws commands, most of them right.
struct Work {
    rng: Rng,
    number: u64,
    region: Region,
}

impl Work {
    fn new(seed: u64, region: Region) -> Self {
        Self { rng: Rng::new(seed, "image.zoned"), number: 1, region }
    }

    fn next(&mut self, drive: &Drive) -> ZonedCommand {
        let rng = &mut self.rng;
        let zone = rng.below(6) as u32;
        let descriptor = drive.device().zoned().unwrap().zone(ZoneId(zone));
        let wp =
            descriptor.write_pointer.map_or(0, |wp| wp.0 / BLOCK_SECTORS - u64::from(zone) * SIZE);
        let blocks = 1 + rng.below(5);
        let flags = WriteFlags {
            fua: rng.below(8) == 0,
            plp: self.region == Region::Selective && rng.below(2) == 0,
        };
        let number = self.number;
        self.number += blocks;
        let ask = |action| ZonedCommand::Zone { zone, ask: ZoneAsk::new(action, lba(zone, 0)) };
        let in_area = if descriptor.has_zrwa { rng.below(AREA + 4) } else { 0 };
        match rng.below(20) {
            0 => ZonedCommand::Flush,
            1 => ZonedCommand::Read { zone },
            2 => ZonedCommand::Report,
            3 => ask(ZoneAction::Reset),
            4 => ask(ZoneAction::Finish),
            5 => ask(ZoneAction::Close),
            6 | 7 => {
                let zrwa = rng.below(2) == 0;
                ZonedCommand::Zone {
                    zone,
                    ask: ZoneAsk { zrwa, ..ZoneAsk::new(ZoneAction::Open, lba(zone, 0)) },
                }
            }
            8 => {
                let last = lba(zone, wp + 2 * (1 + rng.below(3)) - 1);
                ZonedCommand::Zone { zone, ask: ZoneAsk::new(ZoneAction::FlushZrwa, last) }
            }
            9..12 => ZonedCommand::Append { zone, blocks, number, flags },
            _ => ZonedCommand::Write { zone, at: wp + in_area, blocks, number, flags },
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Zone {
    /// The blocks written below its write pointer.
    blocks: Vec<u64>,
    /// How much of that is promised.
    kept: usize,
    /// The contents of its area, by block: the version that is promised, then newer ones.
    area: BTreeMap<u64, Vec<u64>>,
    has_area: bool,
}

impl Zone {
    /// Moves the write pointer of a zone with an area to `wp`.
    fn commit(&mut self, wp: u64) {
        while (self.blocks.len() as u64) < wp {
            let at = self.blocks.len() as u64;
            self.blocks.push(self.area.remove(&at).map_or(0, |all| *all.last().unwrap()));
        }
        if !self.area.is_empty() || self.has_area {
            self.kept = self.blocks.len();
        }
    }
}

/// The slow twin.
#[derive(Clone)]
struct Twin {
    zones: Vec<Zone>,
    region: Region,
}

impl Twin {
    fn new(region: Region) -> Self {
        Self { zones: vec![Zone::default(); 6], region }
    }

    /// A command has ended well; or, if it is not `promised`, it was asked for and may have happened.
    fn happened(&mut self, asked: &ZonedCommand, appended: Option<Lba>, promised: bool) {
        let region = self.region;
        let keeps =
            |flags: WriteFlags| promised && (region == Region::Full || flags.plp || flags.fua);
        match *asked {
            ZonedCommand::Write { zone, at, blocks, number, .. }
                if self.zones[zone as usize].has_area =>
            {
                let zone = &mut self.zones[zone as usize];
                let (wp, end) = (zone.blocks.len() as u64, at + blocks);
                for index in 0..blocks {
                    let versions = zone.area.entry(at + index).or_insert_with(|| vec![0]);
                    versions.push(number + index);
                    if promised {
                        versions.drain(..versions.len() - 1);
                    }
                }
                let beyond = end.saturating_sub(wp + AREA).next_multiple_of(2);
                if beyond > 0 && promised {
                    zone.commit((wp + beyond).min(CAPACITY));
                }
            }
            // A zone with a Zone Random Write Area takes no appends.
            ZonedCommand::Append { zone, .. } if self.zones[zone as usize].has_area => {}
            ZonedCommand::Write { zone, blocks, number, flags, .. }
            | ZonedCommand::Append { zone, blocks, number, flags } => {
                let twin = &mut self.zones[zone as usize];
                let at = twin.blocks.len() as u64;
                assert!(appended.is_none_or(|appended| appended == lba(zone, at)));
                if at + blocks <= CAPACITY {
                    twin.blocks.extend(number..number + blocks);
                }
                if keeps(flags) {
                    twin.kept = twin.blocks.len();
                }
            }
            ZonedCommand::Flush if promised => {
                for zone in &mut self.zones {
                    zone.kept = zone.blocks.len();
                }
            }
            ZonedCommand::Zone { zone, ask } if promised => {
                let zone = &mut self.zones[zone as usize];
                match ask.action {
                    ZoneAction::Reset => *zone = Zone::default(),
                    ZoneAction::Open => zone.has_area |= ask.zrwa,
                    ZoneAction::Finish => {
                        zone.area.clear();
                        zone.has_area = false;
                    }
                    ZoneAction::FlushZrwa => {
                        let wp = ask.lba.0 / BLOCK_SECTORS % SIZE + 1;
                        zone.commit(wp);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        for zone in &mut self.zones {
            if zone.blocks.len() as u64 == CAPACITY {
                zone.has_area = false;
                zone.area.clear();
            }
        }
    }

    /// Holds the drive against this, and takes over what is there. `last` was not answered.
    fn check(&mut self, drive: &Drive, last: Option<&ZonedCommand>, was_cut: bool) {
        let ssd = drive.device().zoned().unwrap();
        let may_be_empty = |zone: u32| match last {
            Some(ZonedCommand::Zone { zone: asked, ask }) => {
                *asked == zone && ask.action == ZoneAction::Reset
            }
            _ => false,
        };
        let before = self.clone();
        if let Some(last) = last {
            self.happened(last, None, false);
        }
        for (number, twin) in (0..).zip(&mut self.zones) {
            let found = ssd.zone(ZoneId(number));
            let held = ssd.held_sectors(ZoneId(number)) / BLOCK_SECTORS;
            let mut bytes = vec![0xaa; CAPACITY as usize * BLOCK];
            assert_eq!(drive.look(lba(number, 0), &mut bytes).unwrap(), Status::Success);
            let holds: Vec<u64> = bytes
                .chunks_exact(BLOCK)
                .map(|bytes| {
                    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                    assert_eq!(bytes, block(number), "a block is whole");
                    number
                })
                .collect();
            if may_be_empty(number) && found.state == ZoneState::Empty {
                *twin = Zone::default();
            }
            // A commit or a write that was not answered may have moved the write pointer.
            if last.is_some() && found.has_zrwa {
                let wp = found.write_pointer.unwrap().0 / BLOCK_SECTORS - u64::from(number) * SIZE;
                let area = twin.area.clone();
                twin.commit(wp);
                for (at, versions) in area.into_iter().filter(|(at, _)| *at < wp) {
                    assert!(versions.contains(&holds[at as usize]), "zone {number}, block {at}");
                    twin.blocks[at as usize] = holds[at as usize];
                }
            }
            let least =
                if was_cut { twin.kept } else { before.zones[number as usize].blocks.len() };
            let given = twin.blocks.len();
            let is_full_by_now = last.is_some() && found.state == ZoneState::Full;
            assert!(
                (least..=given).contains(&(held as usize)) || is_full_by_now,
                "zone {number} holds {held}, of {given}, {least} promised ({last:?})"
            );
            let below = (held as usize).min(given);
            assert_eq!(holds[..below], twin.blocks[..below], "zone {number}");
            let mut seen = Zone { blocks: holds[..held as usize].to_vec(), ..Zone::default() };
            seen.kept = if was_cut { seen.blocks.len() } else { twin.kept.min(seen.blocks.len()) };
            seen.has_area = found.has_zrwa;
            for (at, number) in (held..CAPACITY).zip(&holds[held as usize..]) {
                let versions = twin.area.get(&at).cloned().unwrap_or_else(|| vec![0]);
                if found.has_zrwa {
                    assert!(versions.contains(number), "block {at}: {number}, of {versions:?}");
                    if *number != 0 {
                        seen.area.insert(at, vec![*number]);
                    }
                } else {
                    assert_eq!(*number, 0, "above what zone holds");
                }
            }
            *twin = seen;
        }
    }
}

/// Opens an image that was left in the midst of work, and turns the power on. Says whether that was a cut.
fn reopen(path: &Path) -> (Drive, bool) {
    let (mut drive, opened) = Drive::open(path).unwrap();
    let was_cut = drive.is_off();
    if was_cut {
        assert!(
            opened.cut.is_none_or(|cut| cut.lost.is_empty()),
            "the bank of these drives reaches"
        );
        drive.restore(drive.now(), None).unwrap();
        let mut nothing = Vec::new();
        while !drive.device().is_idle() {
            let Some(next) = drive.next_event() else { break };
            drive.advance(next, &mut nothing).unwrap();
        }
    }
    (drive, was_cut)
}

#[derive(Clone, Debug)]
struct Life {
    steps: u32,
    closes: bool,
    checkpoints: bool,
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let life = (0_u32..250, prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let life = life.prop_map(|(steps, closes, checkpoints)| Life { steps, closes, checkpoints });
    prop::collection::vec(life, 1..5)
}

fn regions() -> impl Strategy<Value = Region> {
    prop::sample::select(vec![Region::None, Region::Selective, Region::Full])
}

/// One life of a process: it is killed, and returns the command that was not answered; or it closes the image.
fn live(mut drive: Drive, life: &Life, work: &mut Work, twin: &mut Twin) -> Option<ZonedCommand> {
    for step in 0..life.steps {
        let asked = work.next(&drive);
        submit(&mut drive, &asked);
        if step + 1 == life.steps && !life.closes {
            return Some(asked);
        }
        let done = wait(&mut drive);
        if done.status == Status::Success {
            twin.happened(&asked, done.appended, true);
        }
        assert_eq!(done.zones.is_some(), matches!(asked, ZonedCommand::Report));
        if life.checkpoints && step % 64 == 63 {
            drive.rest().unwrap();
            drive.checkpoint(false).unwrap();
        }
    }
    if life.closes {
        drive.rest().unwrap();
        drive.close().unwrap();
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn promised_data_is_there_after_a_kill(lives in lives(), seed: u64, region in regions()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.leyden");
        let mut drive = Drive::create(&path, config(region, seed)).unwrap();
        let (mut work, mut twin) = (Work::new(seed, region), Twin::new(region));
        for life in lives {
            let last = live(drive, &life, &mut work, &mut twin);
            let was_cut;
            (drive, was_cut) = reopen(&path);
            twin.check(&drive, last.as_ref(), was_cut);
        }
    }
}

/// A drive killed after any number of commands, the last of them answered or not, is the drive whose power
/// failed there.
#[test]
fn a_kill_at_each_position_of_the_log_is_a_cut_there() {
    let folder = tempfile::tempdir().unwrap();
    for region in [Region::Selective, Region::Full, Region::None] {
        for (kept, is_answered) in (0..90).flat_map(|kept| [(kept, false), (kept, true)]) {
            let [path, other] = ["killed", "alive"].map(|name| folder.path().join(name));
            let mut killed = Drive::create(&path, config(region, 3)).unwrap();
            let mut alive = Drive::create(&other, config(region, 3)).unwrap();
            for (drive, is_killed) in [(&mut killed, true), (&mut alive, false)] {
                let mut work = Work::new(3, region);
                for step in 0..=kept {
                    let asked = work.next(drive);
                    submit(drive, &asked);
                    if step < kept || is_answered {
                        wait(drive);
                    }
                    if step == 40 {
                        drive.rest().unwrap();
                        // The one that is killed goes on from a checkpoint, the other from its own memory.
                        if is_killed {
                            drive.checkpoint(false).unwrap();
                        }
                    }
                }
            }
            drop(killed);
            let (mut killed, opened) = Drive::open(&path).unwrap();
            // Of a command that was not answered nobody knows whether it was logged.
            let logged = opened.cut.as_ref().map_or(alive.now(), |cut| cut.time);
            if opened.cut.is_some() && (is_answered || killed.now() == alive.now()) {
                let cut = alive.cut(logged).unwrap();
                if is_answered {
                    assert_eq!(opened.cut, Some(cut), "after {kept}");
                    assert_eq!(killed.device().digest(), alive.device().digest(), "after {kept}");
                    let mut zones = Vec::new();
                    for drive in [&mut killed, &mut alive] {
                        drive.restore(drive.now(), None).unwrap();
                        drive.rest().unwrap();
                        zones.push(drive.device().zoned().unwrap().all_zones());
                    }
                    assert_eq!(zones[0], zones[1], "after {kept}");
                    assert_eq!(killed.device().digest(), alive.device().digest(), "after {kept}");
                }
            }
            drop((killed, alive));
            std::fs::remove_file(path).unwrap();
            std::fs::remove_file(other).unwrap();
        }
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.leyden");
    let mut drive = Drive::create(&path, config(Region::Selective, 1)).unwrap();
    let mut work = Work::new(1, Region::Selective);
    for step in 0..120 {
        let asked = work.next(&drive);
        submit(&mut drive, &asked);
        wait(&mut drive);
        if step == 60 {
            drive.rest().unwrap();
            drive.checkpoint(false).unwrap();
        }
    }
    drop(drive);
    let file = std::fs::File::open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    let mut rng = Rng::new(1, "image.zoned.damage");
    let (mut refused, mut failed, mut at) = (0, 0, 0);
    while let Ok(begin) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
        at = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(begin)).unwrap().min(length);
        let mut bytes = vec![0; (at - begin) as usize];
        file.read_exact_at(&mut bytes, begin).unwrap();
        // Not what is only room that is set aside, and as large as the file system's blocks are.
        let written: Vec<usize> = (0..bytes.len()).filter(|&place| bytes[place] != 0).collect();
        for _ in 0..40.min(written.len()) {
            let place = written[rng.below(written.len() as u64) as usize];
            let (byte, place) = (bytes[place], begin + place as u64);
            let copy = folder.path().join("copy");
            Drive::copy(&path, &copy).unwrap();
            let other = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
            other.write_all_at(&[byte ^ 1 << rng.below(8)], place).unwrap();
            drop(other);
            match Drive::open(&copy) {
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
                Ok((mut drive, _)) => {
                    drive.restore(drive.now(), None).unwrap();
                    for zone in 0..6 {
                        let mut bytes = vec![0; CAPACITY as usize * BLOCK];
                        let status = drive.look(lba(zone, 0), &mut bytes).unwrap();
                        assert!(matches!(status, Status::Success | Status::UnrecoveredRead));
                        failed += usize::from(status != Status::Success);
                    }
                }
            }
            std::fs::remove_file(&copy).unwrap();
        }
    }
    assert!(refused > 10 && failed > 0, "{refused} refused, {failed} reads failed");
    let checked = Drive::check(&path).unwrap();
    assert_eq!((checked.damaged_units, checked.is_closed), (0, false));
}

#[test]
fn a_recording_of_zones_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("disk.leyden"), folder.path().join("work.leyrec"));
    let mut drive = Drive::create(&path, config(Region::Selective, 2)).unwrap();
    let mut work = Work::new(2, Region::Selective);
    let mut run = |drive: &mut Drive| {
        for _ in 0..150 {
            let asked = work.next(drive);
            submit(drive, &asked);
            wait(drive);
        }
        drive.rest().unwrap();
    };
    run(&mut drive); // there is something at rest when it begins
    drive.record(&to).unwrap();
    run(&mut drive);
    drive.cut(drive.now()).unwrap();
    drive.restore(drive.now(), None).unwrap();
    drive.rest().unwrap();
    run(&mut drive);
    let contents = |drive: &Drive| {
        let units = drive.capacity_sectors() / BLOCK_SECTORS;
        let unit = |unit| drive.peek(Lba(unit * BLOCK_SECTORS), BLOCK_SECTORS as u32);
        (0..units).map(|at| unit(at).unwrap().unwrap()).collect::<Vec<_>>()
    };
    let (expected, digest) = (contents(&drive), drive.device().digest());
    drive.close().unwrap();
    let recording = Recording::open(&to).unwrap();
    assert!(recording.is_whole());
    let mut replay = Replay::new(&recording).unwrap();
    replay.run().unwrap();
    assert_eq!(replay.device().digest(), digest);
    for (unit, bytes) in (0..).zip(&expected) {
        assert_eq!(replay.read_unit(unit).as_ref(), Some(bytes), "unit {unit}");
    }
}

#[test]
fn commands_of_other_kinds_of_drives_have_their_status() {
    let folder = tempfile::tempdir().unwrap();
    let mut conventional = config(Region::Full, 1);
    conventional.device.zoned = None;
    conventional.device.ftl.over_provisioning = Ratio::from_percent(70);
    let path = folder.path().join("conventional");
    let mut drive = Drive::create(&path, conventional).unwrap();
    for asked in [
        ZonedCommand::Report,
        ZonedCommand::Append { zone: 0, blocks: 1, number: 1, flags: WriteFlags::default() },
        ZonedCommand::Zone { zone: 0, ask: ZoneAsk::new(ZoneAction::Reset, Lba(0)) },
    ] {
        submit(&mut drive, &asked);
        assert_eq!(wait(&mut drive).status, Status::InvalidOpcode, "{asked:?}");
    }
    drop(drive);
    let mut drive = Drive::create(&folder.path().join("zoned"), config(Region::None, 1)).unwrap();
    let plp = WriteFlags { plp: true, fua: false };
    for (asked, status) in [
        (
            ZonedCommand::Write { zone: 0, at: 1, blocks: 1, number: 1, flags: plp },
            Status::InvalidField,
        ),
        (
            ZonedCommand::Write {
                zone: 0,
                at: 1,
                blocks: 1,
                number: 1,
                flags: WriteFlags::default(),
            },
            Status::ZoneInvalidWrite,
        ),
    ] {
        submit(&mut drive, &asked);
        assert_eq!(wait(&mut drive).status, status, "{asked:?}");
    }
    let hints = leyden_device::Hint::covering(Lba(0), 64).collect();
    drive.write_prepare(drive.now(), 1, hints).unwrap();
    assert_eq!(wait(&mut drive).status, Status::Success, "advice, and nothing comes of it");
    let raw = std::fs::File::create_new(folder.path().join("raw")).unwrap();
    let error = leyden_image::raw::import(&mut drive, &raw).unwrap_err();
    assert!(matches!(error, ImageError::Config(error) if error.problem.contains("conventional")));
}

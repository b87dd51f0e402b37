//! A process that has an image open is killed: what it was told is kept is there.
//!
//! Against the slow twin: the newest write of each sector, told of or not. Some tests kill a real process
//! by SIGKILL while it is at work; the others leave the drive where it is, which to the image is the same.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use leyden_buffer::Region;
use leyden_device::{Config, Hint, Lba, SECTOR_BYTES, Status};
use leyden_image::{Done, Drive, ImageConfig, ImageError, WriteFlags};
use leyden_sim::{Bytes, Ratio, Rng};
use proptest::prelude::*;

const SECTOR: usize = SECTOR_BYTES as usize;

/// Two dies of 96 blocks with 16 pages of 8 KiB.
fn config(region: Region, seed: u64) -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
    device.ftl.over_provisioning = Ratio::from_percent(60);
    device.buffer.region = region;
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    // A drive to which announced writes matter.
    device.ftl.gc.victim = leyden_ftl::gc::VictimConfig::by_name("z_greedy").unwrap();
    device.ftl.zombie_block = true;
    ImageConfig { name: "test".to_owned(), seed, device, stack: None, made_by: "test".to_owned() }
}

/// The content of sector `lba` after write `number`.
fn sector(lba: u64, number: u64) -> Vec<u8> {
    let words = [lba, number].map(u64::to_le_bytes).concat();
    words.iter().copied().cycle().take(SECTOR).collect()
}

/// Draws the commands of a process: the seed determines them all.
struct Work {
    rng: Rng,
    sectors: u64,
    number: u64,
}

enum Step {
    Write { lba: u64, sectors: u64, number: u64, fua: bool },
    Read { lba: u64, sectors: u64 },
    Trim { lba: u64, sectors: u64 },
    Announce { lba: u64, sectors: u64 },
    Zeroes { lba: u64, sectors: u64 },
    Flush,
}

impl Work {
    fn new(seed: u64, sectors: u64) -> Self {
        Self { rng: Rng::new(seed, "image.kill"), sectors, number: 0 }
    }

    fn step(&mut self) -> Step {
        let sectors = [1, 3, 8, 8, 8, 16, 40][self.rng.below(7) as usize];
        let lba = self.rng.below(self.sectors - sectors);
        self.number += 1;
        match self.rng.below(20) {
            0 => Step::Flush,
            1 => Step::Trim { lba, sectors },
            2 => Step::Zeroes { lba, sectors },
            3..5 => Step::Read { lba, sectors },
            5 => Step::Announce { lba, sectors },
            draw => Step::Write { lba, sectors, number: self.number, fua: draw == 6 },
        }
    }
}

fn data_of(lba: u64, sectors: u64, number: u64) -> Vec<u8> {
    (lba..lba + sectors).flat_map(|lba| sector(lba, number)).collect()
}

fn submit(drive: &mut Drive, tag: u32, step: &Step) {
    let now = drive.now();
    let asked = match *step {
        Step::Write { lba, sectors, number, fua } => {
            drive.write(now, tag, Lba(lba), &data_of(lba, sectors, number), WriteFlags::fua(fua))
        }
        Step::Read { lba, sectors } => drive.read(now, tag, Lba(lba), sectors as u32),
        Step::Trim { lba, sectors } => drive.trim(now, tag, Lba(lba), sectors as u32),
        Step::Announce { lba, sectors } => {
            let ranges = Hint::covering(Lba(lba), sectors as u32).collect();
            drive.write_prepare(now, tag, ranges)
        }
        Step::Zeroes { lba, sectors } => {
            drive.write_zeroes(now, tag, Lba(lba), sectors as u32, false)
        }
        Step::Flush => drive.flush(now, tag),
    };
    asked.unwrap();
}

/// Lets the drive go on until something has ended.
fn wait(drive: &mut Drive, done: &mut Vec<Done>) {
    while done.is_empty() {
        let next = drive.next_event().expect("a drive that owes an answer has something to do");
        drive.advance(next, done).unwrap();
    }
}

fn read(drive: &mut Drive, lba: u64, sectors: u32) -> Vec<u8> {
    drive.read(drive.now(), 0, Lba(lba), sectors).unwrap();
    let mut done = Vec::new();
    wait(drive, &mut done);
    assert_eq!(done[0].status, Status::Success);
    done.remove(0).data
}

/// The contents that a sector may have: the promised one, or a newer one.
#[derive(Clone, Default)]
struct Twin {
    /// All versions of each sector since the promised one, that first; `None` are zeroes.
    versions: BTreeMap<u64, Vec<Option<u64>>>,
}

impl Twin {
    fn versions(&mut self, lba: u64) -> &mut Vec<Option<u64>> {
        self.versions.entry(lba).or_insert_with(|| vec![None])
    }

    /// A change was asked for; `trim`, if part of a unit may stay as it is.
    fn asked(&mut self, step: &Step) {
        match *step {
            Step::Write { lba, sectors, number, .. } => {
                (lba..lba + sectors).for_each(|lba| self.versions(lba).push(Some(number)));
            }
            Step::Trim { lba, sectors } => {
                let whole = lba.next_multiple_of(8)..(lba + sectors) / 8 * 8;
                whole.for_each(|lba| self.versions(lba).push(None));
            }
            Step::Zeroes { lba, sectors } => {
                (lba..lba + sectors).for_each(|lba| self.versions(lba).push(None));
            }
            Step::Read { .. } | Step::Announce { .. } | Step::Flush => {}
        }
    }

    /// The newest version of these is promised.
    fn promised(&mut self, lbas: impl Iterator<Item = u64>) {
        for lba in lbas {
            let versions = self.versions(lba);
            versions.drain(..versions.len() - 1);
        }
    }

    fn ended(&mut self, step: &Step, keeps_all: bool) {
        match *step {
            Step::Flush => {
                let all: Vec<_> = self.versions.keys().copied().collect();
                self.promised(all.into_iter());
            }
            Step::Write { lba, sectors, fua, .. } if fua || keeps_all => {
                self.promised(lba..lba + sectors);
            }
            Step::Zeroes { lba, sectors } if keeps_all => self.promised(lba..lba + sectors),
            _ => {}
        }
    }

    /// Checks that the content after a cut is one of the versions; from now on it is the only one.
    /// After the image was closed it is the newest, which is promised no more than before.
    fn check(&mut self, drive: &mut Drive, was_cut: bool) {
        let lbas: Vec<_> = self.versions.keys().copied().collect();
        for lba in lbas {
            let bytes = read(drive, lba, 1);
            let versions = self.versions(lba);
            let holds = |version: &Option<u64>| match version {
                Some(number) => bytes == sector(lba, *number),
                None => bytes.iter().all(|&byte| byte == 0),
            };
            let found = versions.iter().rev().copied().find(holds);
            let Some(found) = found else {
                panic!("sector {lba} holds {:?}, of {versions:?}", &bytes[..16]);
            };
            if was_cut {
                *versions = vec![found];
            } else {
                assert_eq!(found, *versions.last().unwrap(), "sector {lba} of a closed image");
            }
        }
    }
}

/// Opens an image that was left in the midst of work, and turns the power on.
/// Also says whether that was a cut.
fn reopen(path: &Path) -> (Drive, bool) {
    let (mut drive, opened) = loop {
        match Drive::open(path) {
            // Between its fork and its exec, the child of another test holds what this process had open.
            Err(ImageError::InUse) => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    let was_cut = drive.is_off();
    if was_cut {
        let lost = opened.cut.map_or(0, |cut| cut.lost.len());
        assert_eq!(lost, 0, "the bank of these drives reaches");
        drive.restore(drive.now(), None).unwrap();
    }
    (drive, was_cut)
}

#[derive(Clone, Debug)]
struct Life {
    /// Commands before it ends.
    steps: u32,
    /// It closes the image, if it can.
    closes: bool,
    checkpoints: bool,
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let life = (0_u32..400, prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let life = life.prop_map(|(steps, closes, checkpoints)| Life { steps, closes, checkpoints });
    prop::collection::vec(life, 1..5)
}

/// One life of a process with queue depth one: it is killed, or closes the image.
fn live(drive: &mut Drive, life: &Life, work: &mut Work, twin: &mut Twin, keeps_all: bool) {
    for step in 0..life.steps {
        let asked = work.step();
        submit(drive, step, &asked);
        twin.asked(&asked);
        if step + 1 == life.steps && !life.closes {
            return; // killed before the answer
        }
        let mut done = Vec::new();
        wait(drive, &mut done);
        assert_eq!((done.len(), done[0].status), (1, Status::Success));
        twin.ended(&asked, keeps_all);
        if life.checkpoints && step % 64 == 63 {
            come_to_rest(drive);
            drive.checkpoint(false).unwrap();
        }
    }
}

fn come_to_rest(drive: &mut Drive) {
    while !drive.is_idle() {
        let next = drive.next_event().expect("it is at work");
        drive.advance(next, &mut Vec::new()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn promised_data_is_there_after_a_kill(lives in lives(), seed: u64, is_full: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.leyden");
        let region = if is_full { Region::Full } else { Region::None };
        let mut drive = Drive::create(&path, config(region, seed)).unwrap();
        let mut work = Work::new(seed, drive.capacity_sectors().min(2_000));
        let mut twin = Twin::default();
        for life in lives {
            live(&mut drive, &life, &mut work, &mut twin, is_full);
            if life.closes {
                come_to_rest(&mut drive);
                drive.close().unwrap();
            } else {
                drop(drive);
            }
            let was_cut;
            (drive, was_cut) = reopen(&path);
            // A kill before the first command was logged is no cut, and takes that command. One that was answered is logged.
            twin.check(&mut drive, was_cut || !life.closes && life.steps == 1);
        }
    }
}

/// Not a test of its own: what [`a_process_is_killed_at_any_instruction`] kills. It tells of each command
/// before it asks for it, and of each end.
#[test]
#[expect(clippy::disallowed_methods, reason = "how the test tells its child what to do")]
fn child() {
    let Ok(path) = std::env::var("LEYDEN_TEST_IMAGE") else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (seed, skip) = (number("LEYDEN_TEST_SEED"), number("LEYDEN_TEST_SKIP"));
    let (mut drive, _) = reopen(path.as_ref());
    let mut work = Work::new(seed, drive.capacity_sectors().min(2_000));
    for _ in 0..skip {
        work.step();
    }
    let tell = |word: &str| {
        use std::io::Write;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{word}").and_then(|()| out.flush()).unwrap();
    };
    tell("ready");
    loop {
        let asked = work.step();
        tell("asked");
        submit(&mut drive, 0, &asked);
        wait(&mut drive, &mut Vec::new());
        tell("ended");
        if drive.is_idle() && work.number.is_multiple_of(100) {
            drive.checkpoint(false).unwrap();
        }
    }
}

#[test]
fn a_process_is_killed_at_any_instruction() {
    for (round, region) in [Region::Full, Region::None].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.leyden");
        let seed = 7 + round as u64;
        let drive = Drive::create(&path, config(region, seed)).unwrap();
        let mut work = Work::new(seed, drive.capacity_sectors().min(2_000));
        drive.close().unwrap();
        let (mut twin, mut rng) = (Twin::default(), Rng::new(seed, "image.kill.times"));
        for _ in 0..12 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--nocapture"])
                .env("LEYDEN_TEST_IMAGE", &path)
                .env("LEYDEN_TEST_SEED", seed.to_string())
                .env("LEYDEN_TEST_SKIP", work.number.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines =
                BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            assert!(
                lines.by_ref().any(|line| line.ends_with("ready")),
                "the child could not open it"
            );
            let (mut left, mut last) = (rng.below(700), None);
            // Lines that it had still printed when it was killed are read after that.
            for line in &mut lines {
                match line.as_str() {
                    "asked" => {
                        let asked = work.step();
                        twin.asked(&asked);
                        last = Some(asked);
                    }
                    "ended" => twin.ended(last.as_ref().unwrap(), region == Region::Full),
                    other => panic!("the child said {other:?}"),
                }
                if left == 0 {
                    child.kill().unwrap();
                }
                left = left.saturating_sub(1);
            }
            child.wait().unwrap();
            // If it was killed before its first command was logged, no power was cut, and that command may still be lost.
            let (mut drive, _) = reopen(&path);
            twin.check(&mut drive, true);
            come_to_rest(&mut drive);
            drive.close().unwrap();
        }
    }
}

//! Images that a kill leaves between any two stores to memory, and within any of them.

use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_device::{Config, Lba, Region, SECTOR_BYTES, Status};
use leyden_sim::{Bytes, Ratio};

use crate::mapped::trace;
use crate::{Drive, ImageConfig, WriteFlags};

const UNIT: usize = 4_096;
const SECTORS: u32 = (UNIT as u64 / SECTOR_BYTES) as u32;
/// Where the clock lies, and how far from there on.
const CLOCK: (u64, usize) = (12_288, 4_096);
const LOG_BYTES: usize = 64 << 10;
const CONTENT_BYTES: usize = 64 << 10;

fn config() -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.ftl.over_provisioning = Ratio::from_percent(70);
    device.buffer.size = Bytes::new(128 << 10);
    device.buffer.region = Region::Full;
    ImageConfig::new("torn".to_owned(), 1, device)
}

/// A step of a process: a store, or a write of this unit that its client was told of.
enum Step {
    Store(u64, Vec<u8>),
    Told(u64),
}

/// Writes six units, some of them two at a time, so that their entries are stored together.
fn run(drive: &mut Drive) -> Vec<Step> {
    let mut steps = Vec::new();
    for first in [0_u64, 1, 3, 4] {
        let units = if first == 1 || first == 4 { first..first + 2 } else { first..first + 1 };
        for unit in units {
            let data = [unit as u8 + 1; UNIT];
            let lba = Lba(unit * u64::from(SECTORS));
            drive.write(drive.now(), unit as u32, lba, &data, WriteFlags::default()).unwrap();
        }
        while let Some(next) = drive.next_event()
            && !drive.is_idle()
        {
            let mut done = Vec::new();
            drive.advance(next, &mut done).unwrap();
            steps.extend(trace::take().into_iter().map(|(at, bytes)| Step::Store(at, bytes)));
            assert!(done.iter().all(|done| done.status == Status::Success));
            steps.extend(done.iter().map(|done| Step::Told(u64::from(done.tag))));
        }
    }
    steps
}

/// The bytes there; zeroes beyond the end of the file.
fn read(path: &Path, (at, length): (u64, usize)) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let read = std::fs::File::open(path).unwrap().read_at(&mut bytes, at).unwrap();
    assert!(read == length || read == 0, "the end of the file is within the range");
    bytes
}

/// An image after the first `steps`: opened, it has every event that was reported.
fn check(whole: &Path, before: &[(u64, Vec<u8>)], steps: &[&Step]) {
    let path = whole.with_extension("killed");
    Drive::copy(whole, &path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let mut told = Vec::new();
    for (at, bytes) in before {
        file.write_all_at(bytes, *at).unwrap();
    }
    for step in steps {
        match step {
            Step::Store(at, bytes) => file.write_all_at(bytes, *at).unwrap(),
            Step::Told(unit) => told.push(*unit),
        }
    }
    drop(file);
    let (mut drive, _) = Drive::open(&path).unwrap();
    if drive.is_off() {
        drive.restore(drive.now(), None).unwrap();
    }
    drive.rest().unwrap();
    for unit in told {
        let bytes = drive.peek(Lba(unit * u64::from(SECTORS)), SECTORS).unwrap().unwrap();
        assert!(bytes.iter().all(|&byte| byte == unit as u8 + 1), "unit {unit} was promised");
    }
    drop(drive);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_kill_between_any_two_stores_loses_nothing_that_was_told() {
    // In memory, where maps are always to be had.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("disk.leyden");
    let mut drive = Drive::create(&path, config()).unwrap();
    drive.flush(drive.now(), 0).unwrap();
    drive.rest().unwrap();
    let places =
        [CLOCK, (drive.log_begin().0, LOG_BYTES), (drive.regions.content(), CONTENT_BYTES)];
    let before = places.map(|place| (place.0, read(&path, place)));
    trace::take();
    let steps = run(&mut drive);
    drop(drive);
    let stores = steps.iter().filter(|step| matches!(step, Step::Store(..))).count();
    assert!(stores > 18, "{stores} stores: log, clock and content are not all mapped");
    for count in 0..=steps.len() {
        let done: Vec<_> = steps[..count].iter().collect();
        check(&path, &before, &done);
        let Some(Step::Store(at, bytes)) = steps.get(count) else { continue };
        if bytes.len() == 8 {
            continue; // a word is never torn
        }
        // In the midst of it, in whichever order its bytes are stored.
        let middle = bytes.len() / 2;
        for half in [(*at, &bytes[..middle]), (at + middle as u64, &bytes[middle..])] {
            let torn = Step::Store(half.0, half.1.to_vec());
            check(&path, &before, &[&done[..], &[&torn]].concat());
        }
    }
}

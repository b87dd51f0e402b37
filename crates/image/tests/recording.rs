//! Recordings: what was recorded runs again, to the bit; what is damaged is found.

use std::path::Path;

use leyden_device::{Hint, Lba, SECTOR_BYTES, Status};
use leyden_image::recording::format::Step;
use leyden_image::recording::{Recording, RecordingError, Replay, ReplayError};
use leyden_image::{Drive, ImageConfig, WriteFlags};
use leyden_sim::{Bytes, Capacitance, Ratio, Time};
use proptest::prelude::*;

fn drive(folder: &Path) -> Drive {
    let mut device = leyden_device::Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (64, 16);
    device.ftl.over_provisioning = Ratio::from_percent(60);
    device.buffer.size = Bytes::new(128 << 10);
    device.power = Some(leyden_power::Config::default());
    // A drive to which hints matter.
    device.ftl.gc.victim = leyden_ftl::gc::VictimConfig::by_name("z_greedy").unwrap();
    device.ftl.zombie_block = true;
    let (name, made_by) = ("test".to_owned(), "test".to_owned());
    let config = ImageConfig { name, seed: 1, device, stack: None, made_by };
    Drive::create(&folder.join("disk.leyden"), config).unwrap()
}

fn settle(drive: &mut Drive) {
    while let Some(next) = drive.next_event().filter(|_| !drive.is_idle()) {
        drive.advance(next, &mut Vec::new()).unwrap();
    }
}

/// The bytes of all units, as reads give them.
fn all_of(drive: &mut Drive) -> Vec<Vec<u8>> {
    let unit_sectors = drive.unit_bytes() / SECTOR_BYTES as u32;
    let units = drive.capacity_sectors() / u64::from(unit_sectors);
    let mut done = Vec::new();
    for unit in 0..units {
        let lba = Lba(unit * u64::from(unit_sectors));
        drive.read(drive.now(), unit as u32, lba, unit_sectors).unwrap();
        while let Some(next) = drive.next_event().filter(|_| done.len() as u64 == unit) {
            drive.advance(next, &mut done).unwrap();
        }
    }
    done.into_iter().map(|done| done.data).collect()
}

#[derive(Clone, Debug)]
enum Act {
    Write(u64, u32, u8, bool),
    Trim(u64, u32),
    Announce(u64, u32),
    Zeroes(u64, u32),
    Flush,
    Read(u64, u32),
    Mark(u8),
    Wait(u64),
    Settle,
    CutAndRestore(Option<u64>),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0_u64..300, 1_u32..40, any::<u8>(), any::<bool>())
            .prop_map(|(lba, sectors, byte, fua)| Act::Write(lba, sectors, byte, fua)),
        1 => (0_u64..300, 1_u32..40).prop_map(|(lba, sectors)| Act::Trim(lba, sectors)),
        2 => (0_u64..300, 1_u32..40).prop_map(|(lba, sectors)| Act::Announce(lba, sectors)),
        1 => (0_u64..300, 1_u32..40).prop_map(|(lba, sectors)| Act::Zeroes(lba, sectors)),
        1 => Just(Act::Flush),
        1 => (0_u64..300, 1_u32..40).prop_map(|(lba, sectors)| Act::Read(lba, sectors)),
        1 => any::<u8>().prop_map(Act::Mark),
        3 => (0_u64..3_000_000).prop_map(Act::Wait),
        1 => Just(Act::Settle),
        1 => prop::option::of(20_u64..3_000).prop_map(Act::CutAndRestore),
    ];
    prop::collection::vec(act, 1..60)
}

fn act(drive: &mut Drive, now: &mut Time, act: &Act) {
    *now = (*now).max(drive.now());
    match *act {
        Act::Write(lba, sectors, byte, fua) => {
            let data = vec![byte; sectors as usize * SECTOR_BYTES as usize];
            drive.write(*now, 0, Lba(lba), &data, WriteFlags::fua(fua)).unwrap();
        }
        Act::Trim(lba, sectors) => drive.trim(*now, 0, Lba(lba), sectors).unwrap(),
        Act::Announce(lba, sectors) => {
            let ranges = Hint::covering(Lba(lba), sectors).collect();
            drive.write_prepare(*now, 0, ranges).unwrap();
        }
        Act::Zeroes(lba, sectors) => {
            drive.write_zeroes(*now, 0, Lba(lba), sectors, false).unwrap();
        }
        Act::Flush => drive.flush(*now, 0).unwrap(),
        Act::Read(lba, sectors) => drive.read(*now, 0, Lba(lba), sectors).unwrap(),
        Act::Mark(byte) => drive.mark(&[byte]),
        Act::Wait(ns) => {
            *now = Time::from_ns(now.as_ns() + ns);
            drive.advance(*now, &mut Vec::new()).unwrap();
        }
        Act::Settle => drive.settle_recording(),
        Act::CutAndRestore(uf) => {
            drive.cut(*now).unwrap();
            let bank = uf.map(|uf| Capacitance::from_nf(uf * 1_000));
            if drive.restore(*now, bank).is_err() {
                drive.restore(*now, None).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The replayed drive ends with the recorded one's digest, and holds its bytes.
    #[test]
    fn a_recording_is_the_drive(before in acts(), during in acts()) {
        let folder = tempfile::tempdir().unwrap();
        let mut drive = drive(folder.path());
        let mut now = drive.now();
        for one in &before {
            act(&mut drive, &mut now, one);
        }
        settle(&mut drive);
        let path = folder.path().join("work.leyrec");
        drive.record(&path).unwrap();
        for one in &during {
            act(&mut drive, &mut now, one);
        }
        settle(&mut drive);
        let held = all_of(&mut drive);
        let digest = drive.device().digest();
        drive.close().unwrap();

        let recording = Recording::open(&path).unwrap();
        prop_assert!(recording.is_whole());
        let marks = recording.steps().filter(|(_, step)| matches!(step, Step::Mark(_))).count();
        prop_assert_eq!(marks, during.iter().filter(|one| matches!(one, Act::Mark(_))).count());
        let hints = recording.steps().filter(|(_, step)| matches!(step, Step::WritePrepare(_)));
        let announced = during.iter().filter(|one| matches!(one, Act::Announce(..)));
        prop_assert_eq!(hints.count(), announced.count());
        let mut replay = Replay::new(&recording).unwrap();
        replay.run().unwrap();
        prop_assert_eq!(replay.device().digest(), digest);
        for (unit, bytes) in held.iter().enumerate() {
            prop_assert_eq!(replay.read_unit(unit as u64), Some(bytes.clone()));
        }
    }
}

/// Announced ranges whose number no record could have: they are refused, and the recording stays whole.
#[test]
fn what_no_record_can_hold_is_refused_and_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = drive(folder.path());
    let path = folder.path().join("work.leyrec");
    drive.record(&path).unwrap();
    let hints = vec![Hint::from_dwords(0, 1).unwrap(); (1 << 16) + 1];
    drive.write_prepare(drive.now(), 0, hints).unwrap();
    let mut done = Vec::new();
    drive.advance(drive.now(), &mut done).unwrap();
    assert_eq!(done[0].status, Status::InvalidField);
    settle(&mut drive);
    drive.close().unwrap();
    let recording = Recording::open(&path).unwrap();
    assert!(recording.is_whole());
    Replay::new(&recording).unwrap().run().unwrap();
}

/// A recording of some writes, and its bytes.
fn some_recording() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = drive(folder.path());
    let path = folder.path().join("work.leyrec");
    drive.record(&path).unwrap();
    for lba in 0..40 {
        drive
            .write(drive.now(), 0, Lba(lba * 8), &[lba as u8; 4_096], WriteFlags::default())
            .unwrap();
        settle(&mut drive);
        drive.settle_recording();
    }
    drive.close().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_recording_that_breaks_off_is_good_so_far() {
    let bytes = some_recording();
    let whole = Recording::read(&mut &bytes[..]).unwrap();
    let cut = Recording::read(&mut &bytes[..bytes.len() * 3 / 4]).unwrap();
    assert!(whole.is_whole() && !cut.is_whole());
    assert!((1..whole.steps().len()).contains(&cut.steps().len()));
    Replay::new(&cut).unwrap().run().unwrap();
    for end in (0..bytes.len()).step_by(97) {
        // The remainder is a recording that ends there, or none at all.
        if let Ok(part) = Recording::read(&mut &bytes[..end]) {
            Replay::new(&part).unwrap().run().unwrap();
        }
    }
}

#[test]
fn a_changed_byte_is_found() {
    let bytes = some_recording();
    for at in (0..bytes.len()).step_by(bytes.len() / 300) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        match Recording::read(&mut &changed[..]) {
            Err(RecordingError::Damaged(_) | RecordingError::Foreign(_)) => {}
            Err(other) => panic!("byte {at}: {other}"),
            // A length that was changed makes it look as if the file broke off there.
            Ok(part) => assert!(!part.is_whole(), "byte {at}"),
        }
    }
}

#[test]
fn a_drive_that_does_something_else_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = drive(folder.path());
    let path = folder.path().join("work.leyrec");
    drive.record(&path).unwrap();
    drive.write(drive.now(), 0, Lba(0), &[1; 4_096], WriteFlags::default()).unwrap();
    settle(&mut drive);
    drive.close().unwrap();
    let recording = Recording::open(&path).unwrap();
    let mut replay = Replay::new(&recording).unwrap();
    replay.cut();
    assert!(matches!(replay.run(), Err(ReplayError::Diverged(_))));
}

/// Clones are cut at many moments; what was flushed by then is there in each.
#[test]
fn clones_are_cut_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut drive = drive(folder.path());
    let path = folder.path().join("work.leyrec");
    drive.record(&path).unwrap();
    let mut flushed = Vec::new();
    for lba in 0..20_u64 {
        drive
            .write(drive.now(), 0, Lba(lba * 8), &[lba as u8 + 1; 4_096], WriteFlags::default())
            .unwrap();
        settle(&mut drive);
        drive.flush(drive.now(), 0).unwrap();
        settle(&mut drive);
        flushed.push(drive.now());
    }
    let end = drive.now();
    drive.close().unwrap();
    let recording = Recording::open(&path).unwrap();
    let mut replay = Replay::new(&recording).unwrap();
    for at in (0..end.as_ns()).step_by(end.as_ns() as usize / 50) {
        replay.run_to(Time::from_ns(at)).unwrap();
        let mut cut = replay.clone();
        assert!(cut.cut().lost.is_empty());
        cut.restore(cut.now(), None).unwrap();
        for unit in
            flushed.iter().filter(|time| time.as_ns() <= at).enumerate().map(|(unit, _)| unit)
        {
            assert_eq!(cut.read_unit(unit as u64).unwrap()[0], unit as u8 + 1, "at {at} ns");
        }
    }
}

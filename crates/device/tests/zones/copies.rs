//! Simple Copy: sources, destination, and the exact status of each misuse.

use leyden_device::{BlockDevice, Config};
use leyden_device::{
    Command, CopyRange, Lba, MOST_COPY_RANGES, Op, Ssd, Stamp, Status, ZoneAction, ZoneId,
};

use super::{BLOCK, CAPACITY, Drive, SIZE, config, selective};

fn range(zone: u32, block: u64, blocks: u32) -> CopyRange {
    CopyRange { lba: Drive::lba(zone, block), sectors: blocks * BLOCK }
}

fn copy(zone: u32, block: u64, ranges: &[CopyRange]) -> Command<Stamp> {
    Command::copy(Drive::lba(zone, block), ranges.iter().copied())
}

#[test]
fn ranges_are_written_one_after_the_other() {
    for mut drive in [Drive::new(&config()), Drive::new(&selective())] {
        drive.write(0, 4); // 1
        drive.run(Command::flush());
        drive.write(0, 3); // 2, in the buffer
        drive.write(2, 2); // 3
        drive.write(1, 1); // 4
        let ranges = [range(0, 3, 2), range(2, 0, 2), range(0, 0, 1)];
        assert_eq!(drive.run(copy(1, 1, &ranges)).status, Status::Success);
        assert_eq!(drive.wp(1), Some(6));
        assert_eq!(drive.read(1, 0, 7), [4, 1, 2, 3, 3, 1, 0]);
        // The copied data is the zone's own.
        drive.act(ZoneAction::Reset, 0);
        drive.act(ZoneAction::Reset, 2);
        assert_eq!(drive.read(1, 0, 7), [4, 1, 2, 3, 3, 1, 0]);
        // A zone can be its own source.
        assert_eq!(drive.run(copy(1, 6, &[range(1, 0, 2)])).status, Status::Success);
        assert_eq!(drive.read(1, 6, 2), [4, 1]);
        drive.run(Command::flush());
        drive.settle();
        assert_eq!(drive.read(1, 0, 8), [4, 1, 2, 3, 3, 1, 4, 1]);
        assert_eq!(drive.ssd.zoned_stats().copied_units, 7);
    }
}

/// Sources on flash take their time, and the copy keeps what they held when it came.
#[test]
fn a_copy_waits_for_its_sources_and_holds_what_they_held() {
    let mut drive = Drive::new(&selective());
    drive.write(0, 16);
    drive.run(Command::flush());
    drive.settle();
    let begun = drive.ssd.now();
    let id = drive.ssd.submit(begun, copy(1, 0, &[range(0, 0, 16)]));
    drive.ssd.submit(begun, Command::zone(ZoneAction::Reset, Drive::lba(0, 0)));
    let mut done = Vec::new();
    while !done.iter().any(|end: &leyden_device::Completion<Stamp>| end.id == id) {
        let time = drive.ssd.next_event().unwrap();
        drive.ssd.advance(time, &mut done);
    }
    let end = done.iter().find(|end| end.id == id).unwrap();
    assert_eq!(end.status, Status::Success);
    let read = Config::default().nand.read;
    assert!(end.time.since(begun) > read, "{:?}", end.time.since(begun));
    assert_eq!(drive.read(1, 0, 16), [1; 16]);
    drive.settle();
}

#[test]
fn a_protected_copy_and_a_forced_one_survive_a_cut() {
    let mut drive = Drive::new(&selective());
    drive.write(0, 6);
    drive.run(Command::flush());
    let run = |drive: &mut Drive, command| assert_eq!(drive.run(command).status, Status::Success);
    run(&mut drive, copy(1, 0, &[range(0, 0, 3)]).plp(true));
    run(&mut drive, copy(2, 0, &[range(0, 0, 3)]).fua(true));
    run(&mut drive, copy(3, 0, &[range(0, 0, 3)]));
    drive.cut();
    assert_eq!([1, 2, 3].map(|zone| drive.wp(zone)), [Some(3), Some(3), Some(0)]);
    assert_eq!((drive.read(1, 0, 4), drive.read(2, 0, 4)), (vec![1, 1, 1, 0], vec![1, 1, 1, 0]));
}

#[test]
fn each_misuse_has_its_status() {
    let mut limited = selective();
    limited.zoned.as_mut().unwrap().copy_limit = leyden_sim::Bytes::new(20 * 4096);
    let mut drive = Drive::new(&limited);
    drive.write(0, 16);
    drive.write(0, 8);
    drive.write(4, 2);
    let mut status = |to, block, ranges: &[CopyRange]| drive.run(copy(to, block, ranges)).status;
    assert_eq!(status(1, 0, &[]), Status::InvalidField);
    assert_eq!(status(1, 0, &[range(0, 0, 0)]), Status::InvalidField);
    assert_eq!(status(1, 0, &[range(0, 0, 1), range(0, 0, 0)]), Status::InvalidField);
    let unaligned = CopyRange { lba: Lba(1), sectors: BLOCK };
    assert_eq!(status(1, 0, &[unaligned]), Status::InvalidField);
    let part = CopyRange { lba: Lba(0), sectors: BLOCK / 2 };
    assert_eq!(status(1, 0, &[part, part]), Status::InvalidField);
    assert_eq!(status(1, 0, &[range(0, 0, 21)]), Status::SizeLimit, "above MCL");
    assert_eq!(status(1, 0, &[range(0, 0, 1); MOST_COPY_RANGES + 1]), Status::SizeLimit, "MSRC");
    let beyond = CopyRange { lba: Lba(1 << 40), sectors: BLOCK };
    assert_eq!(status(1, 0, &[beyond]), Status::LbaOutOfRange);
    assert_eq!(status(1, 0, &[range(0, SIZE - 1, 2)]), Status::ZoneBoundary, "across zones");
    assert_eq!(status(1, 1, &[range(0, 0, 1)]), Status::ZoneInvalidWrite);
    assert_eq!(status(4, 1, &[range(0, 0, 1)]), Status::ZoneInvalidWrite);
    assert_eq!(status(0, 24, &[range(0, 0, 9)]), Status::ZoneBoundary, "beyond its capacity");
    assert_eq!(status(0, 24, &[range(0, 0, 8)]), Status::Success);
    assert_eq!(status(0, CAPACITY - 1, &[range(0, 0, 1)]), Status::ZoneFull);
    drive.ssd.fail_zone(ZoneId(2));
    drive.ssd.fail_zone(ZoneId(4));
    let mut status = |to, block, ranges: &[CopyRange]| drive.run(copy(to, block, ranges)).status;
    assert_eq!(status(1, 0, &[range(2, 0, 1)]), Status::ZoneOffline);
    assert_eq!(status(2, 0, &[range(0, 0, 1)]), Status::ZoneOffline);
    assert_eq!(status(4, 2, &[range(0, 0, 1)]), Status::ZoneReadOnly);
    assert_eq!(status(1, 0, &[range(4, 0, 1)]), Status::Success, "it can still be read");
    let open = Command::zone(ZoneAction::Open, Drive::lba(3, 0)).zrwa(true);
    assert_eq!(drive.run(open).status, Status::Success);
    let into_area = copy(3, 0, &[range(0, 0, 1)]);
    assert_eq!(drive.run(into_area).status, Status::ZoneInvalidOperation);
    drive.settle();
}

#[test]
fn a_copy_without_resources_or_without_a_region_is_refused() {
    let mut drive = Drive::new(&selective());
    for zone in 0..5 {
        drive.write(zone, 1);
    }
    let to_another = copy(6, 0, &[range(0, 0, 1)]);
    assert_eq!(drive.run(to_another).status, Status::TooManyActiveZones);
    let mut unprotected = config();
    unprotected.buffer.region = leyden_buffer::Region::None;
    unprotected.zoned.as_mut().unwrap().zrwa = None;
    let mut drive = Drive::new(&unprotected);
    drive.write(0, 1);
    let flagged = copy(1, 0, &[range(0, 0, 1)]).plp(true);
    assert_eq!(drive.run(flagged).status, Status::InvalidField);

    let mut ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
    ssd.submit(ssd.now(), Command::new(Op::Copy, Lba(0), 8, 1));
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    assert_eq!(done[0].status, Status::InvalidOpcode, "a conventional drive does not know it");
}

//! Zone Random Write Areas (TP 4076). Those of these tests hold 8 logical blocks and commit 2 at least.

use leyden_device::{Command, Status, ZoneAction, ZoneState};

use super::{CAPACITY, Drive, config};

/// A drive whose zone 0 has an area.
fn drive() -> Drive {
    let mut drive = Drive::new(&config());
    let open = Command::zone(ZoneAction::Open, Drive::lba(0, 0)).zrwa(true);
    assert_eq!(drive.run(open).status, Status::Success);
    assert!(drive.zone(0).has_zrwa);
    drive
}

fn write(drive: &mut Drive, block: u64, blocks: u32) -> Status {
    let command = drive.write_at(0, block, blocks);
    drive.run(command).status
}

fn commit(drive: &mut Drive, last: u64) -> Status {
    drive.run(Command::zone(ZoneAction::FlushZrwa, Drive::lba(0, last))).status
}

#[test]
fn inside_the_area_blocks_are_written_in_any_order() {
    let mut drive = drive();
    for (block, blocks) in [(5, 2), (0, 3), (1, 1)] {
        assert_eq!(write(&mut drive, block, blocks), Status::Success);
    }
    assert_eq!(drive.wp(0), Some(0));
    assert_eq!(drive.read(0, 0, 8), [2, 3, 2, 0, 0, 1, 1, 0]);
    assert_eq!(commit(&mut drive, 3), Status::Success);
    assert_eq!(drive.wp(0), Some(4));
    assert_eq!(write(&mut drive, 3, 1), Status::ZoneInvalidWrite, "below the write pointer");
    assert_eq!(drive.read(0, 0, 8), [2, 3, 2, 0, 0, 1, 1, 0]);
    drive.settle();
}

#[test]
fn a_write_beyond_the_area_commits_what_makes_room_for_it() {
    let mut drive = drive();
    assert_eq!(write(&mut drive, 0, 8), Status::Success);
    assert_eq!((write(&mut drive, 6, 5), drive.wp(0)), (Status::Success, Some(4)));
    assert_eq!(drive.read(0, 0, 12), [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 0]);
    assert_eq!(write(&mut drive, 4 + 15, 2), Status::ZoneInvalidWrite, "beyond two areas");
    assert_eq!((write(&mut drive, 4, 16), drive.wp(0)), (Status::Success, Some(12)));
    assert_eq!(drive.read(0, 3, 5), [1, 4, 4, 4, 4]);
    drive.settle();
}

#[test]
fn misuse_has_its_status() {
    let mut drive = drive();
    assert_eq!(drive.append(0, 1).status, Status::ZoneInvalidOperation);
    assert_eq!(write(&mut drive, CAPACITY, 1), Status::ZoneBoundary);
    assert_eq!(commit(&mut drive, 2), Status::InvalidField, "no multiple of the granularity");
    assert_eq!(commit(&mut drive, 9), Status::ZoneInvalidOperation, "beyond the area");
    let commit = |drive: &mut Drive, zone| {
        drive.run(Command::zone(ZoneAction::FlushZrwa, Drive::lba(zone, 1))).status
    };
    assert_eq!(commit(&mut drive, 1), Status::ZoneInvalidOperation, "no area");
    let open = |zone| Command::zone(ZoneAction::Open, Drive::lba(zone, 0)).zrwa(true);
    drive.write(3, 1);
    assert_eq!(drive.run(open(3)).status, Status::ZoneInvalidOperation, "not empty");
    assert_eq!(drive.run(open(1)).status, Status::Success);
    assert_eq!(drive.act(ZoneAction::Close, 3), Status::Success);
    assert_eq!(drive.run(open(2)).status, Status::ZrwaUnavailable, "there are two areas");
    assert_eq!(drive.act(ZoneAction::Reset, 1), Status::Success);
    assert_eq!(drive.run(open(2)).status, Status::Success);
}

#[test]
fn an_area_survives_a_power_cut_with_what_it_holds() {
    let mut drive = drive();
    write(&mut drive, 2, 2);
    drive.cut();
    assert_eq!((drive.zone(0).state, drive.wp(0)), (ZoneState::Closed, Some(0)));
    assert!(drive.zone(0).has_zrwa);
    assert_eq!(drive.read(0, 0, 5), [0, 0, 1, 1, 0]);
    write(&mut drive, 0, 8);
    assert_eq!(commit(&mut drive, 5), Status::Success);
    drive.cut();
    assert_eq!(drive.wp(0), Some(6));
    assert_eq!(drive.read(0, 0, 9), [2, 2, 2, 2, 2, 2, 2, 2, 0]);
}

#[test]
fn a_zone_is_written_to_its_end_through_its_area() {
    let mut drive = drive();
    for block in 0..CAPACITY {
        assert_eq!(write(&mut drive, block, 1), Status::Success, "{block}");
    }
    assert_eq!(drive.wp(0), Some(CAPACITY - 8));
    assert_eq!(commit(&mut drive, CAPACITY - 1), Status::Success);
    assert_eq!(drive.zone(0).state, ZoneState::Full);
    assert!(!drive.zone(0).has_zrwa);
    let expected: Vec<u64> = (1..=CAPACITY).collect();
    assert_eq!(drive.read(0, 0, CAPACITY as u32), expected);
    drive.settle();
    drive.cut();
    assert_eq!(drive.read(0, 0, CAPACITY as u32), expected);
}

/// A commit moves what the area holds to the rest of the buffer; if that is full, it waits for flash as a write does.
#[test]
fn a_commit_waits_for_room() {
    let mut drive = Drive::new(&config());
    for zone in 0..6 {
        let open = Command::zone(ZoneAction::Open, Drive::lba(zone, 0)).zrwa(true);
        assert_eq!(drive.run(open).status, Status::Success);
        for from in (0..CAPACITY).step_by(8) {
            let write = drive.write_at(zone, from, 8);
            assert_eq!(drive.run(write).status, Status::Success);
            let commit = Command::zone(ZoneAction::FlushZrwa, Drive::lba(zone, from + 7));
            assert_eq!(drive.run(commit).status, Status::Success, "zone {zone}, {from}");
        }
        assert_eq!(drive.zone(zone).state, ZoneState::Full);
    }
    drive.settle();
}

//! Two pools, flushes that skip one of them, and what a reset saves.

use leyden_buffer::zoned::{BelowProtected, DuringFlush};
use leyden_device::{BlockDevice, Command, Status, ZoneAction};

use super::{BLOCK, Drive, selective};

fn plp(drive: &mut Drive, zone: u32, blocks: u32) -> Status {
    let at = drive.wp(zone).unwrap();
    let command = drive.write_at(zone, at, blocks).plp(true);
    drive.run(command).status
}

#[test]
fn a_flush_waits_for_what_is_not_protected_and_for_nothing_else() {
    let mut drive = Drive::new(&selective());
    plp(&mut drive, 0, 3);
    let before = drive.ssd.stats().ftl.programs.user;
    assert_eq!(drive.run(Command::flush()).status, Status::Success);
    assert_eq!(drive.ssd.stats().ftl.programs.user, before, "nothing was programmed");
    drive.write(1, 3);
    drive.run(Command::flush());
    // Three blocks are a page and a half: the rest of the second is padding.
    let stats = drive.ssd.stats();
    assert_eq!((stats.ftl.programs.user - before, stats.ftl.padded_units), (2, 1));
    assert_eq!(drive.ssd.pool_fill().protected, 3);
    drive.settle();
}

#[test]
fn a_padded_page_shifts_what_follows_it() {
    let mut drive = Drive::new(&selective());
    for _ in 0..5 {
        drive.write(0, 3);
        drive.run(Command::flush());
    }
    let expected: Vec<u64> = (1..=5).flat_map(|stamp| [stamp; 3]).collect();
    assert_eq!(drive.read(0, 0, 15), expected);
    drive.cut();
    assert_eq!((drive.read(0, 0, 15), drive.wp(0)), (expected, Some(15)));
    // A zone that was padded needs another set of blocks before it is full.
    drive.write(0, 17);
    drive.run(Command::flush());
    assert_eq!(drive.read(0, 14, 4), [5, 6, 6, 6]);
    drive.settle();
}

#[test]
fn what_is_reset_is_not_programmed() {
    let mut drive = Drive::new(&selective());
    plp(&mut drive, 0, 12);
    drive.write(1, 12);
    drive.act(ZoneAction::Reset, 0);
    drive.act(ZoneAction::Reset, 1);
    drive.settle();
    let stats = drive.ssd.zoned_stats();
    assert_eq!((stats.discarded_protected_units, stats.discarded_plain_units), (12, 12));
    assert_eq!(drive.ssd.stats().ftl.programs.user, 0);
    let fill = drive.ssd.pool_fill();
    assert_eq!((fill.protected, fill.plain), (0, 0));
}

#[test]
fn what_is_below_a_protected_write_is_kept_with_it() {
    let mut drive = Drive::new(&selective());
    drive.write(0, 5);
    assert_eq!(plp(&mut drive, 0, 1), Status::Success);
    drive.write(0, 3);
    assert_eq!(drive.ssd.zoned_stats().promoted_units, 5);
    drive.cut();
    assert_eq!((drive.wp(0), drive.read(0, 0, 7)), (Some(6), vec![1, 1, 1, 1, 1, 2, 0]));
}

#[test]
fn or_it_is_refused() {
    let mut config = selective();
    config.buffer.zones.below_protected = BelowProtected::Refuse;
    let mut drive = Drive::new(&config);
    drive.write(0, 5);
    assert_eq!(plp(&mut drive, 0, 1), Status::SequenceError);
    drive.run(Command::flush());
    assert_eq!(plp(&mut drive, 0, 1), Status::Success);
    assert_eq!(drive.ssd.zoned_stats().promoted_units, 0);
}

#[test]
fn forced_unit_access_is_on_flash_when_it_ends() {
    let mut drive = Drive::new(&selective());
    let command = drive.write_at(0, 0, 3).fua(true);
    assert_eq!(drive.run(command).status, Status::Success);
    drive.cut();
    assert_eq!(drive.read(0, 0, 4), [1, 1, 1, 0]);
}

/// More than a pool holds, from many writers: writes wait, and all of them end.
#[test]
fn writes_wait_for_room() {
    let mut drive = Drive::new(&selective());
    let mut done = Vec::new();
    for block in 0..30 {
        for zone in 0..3 {
            let command = drive.write_at(zone, block, 1).plp(zone == 1);
            drive.ssd.submit(drive.ssd.now(), command);
        }
    }
    while let Some(time) = drive.ssd.next_event() {
        drive.ssd.advance(time, &mut done);
    }
    assert!(done.len() == 90 && done.iter().all(|end| end.status == Status::Success));
    drive.ssd.check();
    assert_eq!([0, 1, 2].map(|zone| drive.wp(zone)), [Some(30); 3]);
    assert_eq!(drive.read(1, 28, 2).len() as u32 * BLOCK, 16);
}

/// When a write of each pool ends that comes just after a FLUSH has begun to write out a page, and the FLUSH
/// itself.
fn ends_after_flush(during_flush: DuringFlush) -> [leyden_sim::Time; 3] {
    let mut config = selective();
    config.buffer.zones.during_flush = during_flush;
    let mut drive = Drive::new(&config);
    drive.write(0, 2);
    let plain = drive.write_at(1, 0, 1);
    let protected = drive.write_at(2, 0, 1).plp(true);
    let now = drive.ssd.now();
    let ids = [Command::flush(), plain, protected].map(|command| drive.ssd.submit(now, command));
    let mut done = Vec::new();
    while let Some(time) = drive.ssd.next_event() {
        drive.ssd.advance(time, &mut done);
    }
    drive.ssd.check();
    ids.map(|id| done.iter().find(|end| end.id == id).unwrap().time)
}

#[test]
fn a_flush_suspends_writes_of_its_pool_if_it_is_to() {
    let [flush, plain, protected] = ends_after_flush(DuringFlush::Admit);
    assert!(plain < flush && protected < flush);
    let [flush, plain, protected] = ends_after_flush(DuringFlush::Suspend);
    assert!(plain >= flush && protected < flush, "{plain:?} {protected:?} {flush:?}");
}

/// How long a FLUSH of 16 pages takes whose zone lies on so many dies.
fn flush_time(dies: u32) -> leyden_sim::Span {
    let mut config = selective();
    let zoned = config.zoned.as_mut().unwrap();
    (zoned.dies_per_zone, zoned.zone_capacity) = (dies, None);
    let mut drive = Drive::new(&config);
    for _ in 0..4 {
        drive.write(0, 8);
    }
    let before = drive.ssd.now();
    drive.run(Command::flush());
    drive.ssd.now().since(before)
}

#[test]
fn the_dies_of_a_zone_work_side_by_side() {
    let [one, two, four] = [1, 2, 4].map(|dies| flush_time(dies).as_ns());
    // Two dies hang on each channel, and a program takes much longer than its transfer.
    assert!(two * 10 < one * 6 && four * 10 < two * 7, "{one} {two} {four}");
}

//! Flushes of single files, and requests that pass the cache by.

use super::*;

fn sync(unit: u64, units: u32) -> Command<Stamp> {
    Command::sync(Lba(unit * 8), units * 8)
}

fn read(unit: u64, units: u32) -> Command<Stamp> {
    command(Op::Read, unit, units)
}

/// The stamps that the last read has returned.
fn found(ends: &[Completion<Stamp>]) -> Vec<u64> {
    let data = ends.iter().rev().find_map(Completion::data);
    data.map(|data| data.iter().map(|stamp| stamp.0).collect()).unwrap_or_default()
}

#[test]
fn a_flush_of_a_file_writes_its_pages_alone() {
    let mut cache = cache();
    cache.submit(us(0), write(3, 2, 1));
    cache.submit(us(0), write(9, 1, 2));
    cache.submit(us(10), sync(0, 8));
    cache.submit(us(20), write(4, 1, 3));
    let ends = run(&mut cache, 1_000);
    assert_eq!(ends, [(1, Op::Write), (2, Op::Write), (21, Op::Write), (210, Op::Flush)]);
    assert_eq!(asked(&cache), [(10, Op::Write, 3, 2), (110, Op::Flush, 0, 0)]);
    assert!(!cache.device().asked[0].1.is_fua());
    // Pages written after the flush came wait, as does the other file.
    assert_eq!((cache.dirty_units(), cache.device().content[9]), (2, 0));
}

#[test]
fn a_flush_of_a_file_waits_for_what_is_being_written() {
    let mut cache = cache();
    cache.submit(us(0), write(3, 1, 1));
    cache.submit(us(10), command(Op::Flush, 0, 0));
    cache.submit(us(20), write(3, 1, 2));
    cache.submit(us(30), sync(3, 1));
    let ends: Vec<_> = run(&mut cache, 1_000).into_iter().skip(2).collect();
    assert_eq!(ends, [(210, Op::Flush), (310, Op::Flush)]);
    assert_eq!(cache.device().content[3], 2);
}

#[test]
fn a_flush_of_a_large_file_leaves_the_queue_its_depth() {
    let mut cache = cache_of(&PageCacheConfig { writeback_depth: 2, ..config() });
    for unit in 0..10 {
        cache.submit(us(0), write(unit, 1, 1 + unit));
    }
    cache.submit(us(10), sync(0, 10));
    run(&mut cache, 10_000);
    let mut starts: Vec<u64> = asked(&cache).iter().map(|&(at, ..)| at).collect();
    starts.dedup();
    assert_eq!(starts, [10, 110, 210, 310, 410, 510], "two at a time, and the flush");
}

#[test]
fn a_file_whose_data_was_lost_says_so_and_others_do_not() {
    let mut cache = cache();
    cache.device_mut().failing.insert(4);
    cache.submit(us(0), write(4, 1, 1));
    cache.submit(us(0), write(9, 1, 2));
    for (at, command) in [
        (100, sync(9, 1)),
        (1_000, sync(4, 2)),
        (2_000, sync(4, 2)),
        (3_000, command(Op::Flush, 0, 0)),
        (4_000, command(Op::Flush, 0, 0)),
    ] {
        cache.submit(us(at), command);
    }
    let ends = ends(&mut cache, 5_000);
    let flushes = ends.iter().filter(|end| end.op == Op::Flush);
    let statuses: Vec<Status> = flushes.map(|end| end.status).collect();
    let (well, lost) = (Status::Success, Status::WriteFault);
    assert_eq!(statuses, [well, lost, well, lost, well]);
}

#[test]
fn a_direct_read_finds_what_was_dirty_and_caches_nothing() {
    let mut cache = cache();
    cache.submit(us(0), write(3, 1, 7));
    cache.submit(us(10), read(2, 3).direct(true));
    let ended = ends(&mut cache, 1_000);
    assert_eq!(found(&ended), [0, 7, 0]);
    assert_eq!(asked(&cache), [(10, Op::Write, 3, 1), (110, Op::Read, 2, 3)]);
    assert_eq!((cache.cached_units(), cache.stats().direct_requests), (1, 1));
    // A write-back that fails is the next flush's matter.
    cache.device_mut().failing.insert(3);
    cache.submit(us(1_000), write(3, 1, 8));
    cache.submit(us(1_010), read(3, 1).direct(true));
    let mut ended = ends(&mut cache, 1_150);
    cache.device_mut().failing.clear();
    ended.extend(ends(&mut cache, 2_000));
    assert!(ended.iter().all(|end| end.status == Status::Success));
    assert_eq!(found(&ended), [7]);
}

#[test]
fn a_direct_write_replaces_what_is_cached() {
    let mut cache = cache();
    cache.submit(us(0), write(3, 2, 1));
    // Sectors 28 to 35: half of unit 3, and half of unit 4.
    cache.submit(us(10), Command::write(Lba(28), 8, 2).direct(true));
    cache.submit(us(20), read(3, 2));
    let ended = ends(&mut cache, 1_000);
    let expected = [
        (10, Op::Write, 3, 1),
        (10, Op::Write, 4, 1),
        (110, Op::Write, 3, 2),
        (210, Op::Read, 3, 2),
    ];
    assert_eq!(asked(&cache), expected, "edges first, and what comes later waits");
    assert_eq!(found(&ended), [2, 2]);
    // Whole pages are not written out: they are overwritten.
    cache.submit(us(1_000), write(5, 1, 3));
    cache.submit(us(1_010), write(5, 1, 4).direct(true));
    run(&mut cache, 2_000);
    assert_eq!(asked(&cache).last(), Some(&(1_010, Op::Write, 5, 1)));
    assert_eq!((cache.device().content[5], cache.dirty_units()), (4, 0));
    assert_eq!(cache.stats().discarded_pages, 1);
}

#[test]
fn a_file_beyond_the_end_is_refused() {
    let mut cache = cache();
    cache.submit(us(0), sync(DRIVE_UNITS as u64 - 1, 2));
    assert_eq!(ends(&mut cache, 10)[0].status, Status::LbaOutOfRange);
}

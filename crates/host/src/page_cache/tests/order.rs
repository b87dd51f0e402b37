//! Flushes, FUA, trims, zeroes, power.

use super::*;

#[test]
fn a_flush_writes_what_is_dirty_when_it_comes() {
    let mut cache = cache();
    cache.submit(us(0), write(9, 1, 1));
    cache.submit(us(0), write(3, 1, 2));
    cache.submit(us(10), command(Op::Flush, 0, 0));
    cache.submit(us(50), write(20, 1, 3));
    let ends = run(&mut cache, 1_000);
    assert_eq!(ends, [(1, Op::Write), (1, Op::Write), (51, Op::Write), (210, Op::Flush)]);
    let expected = [(10, Op::Write, 3, 1), (10, Op::Write, 9, 1), (110, Op::Flush, 0, 0)];
    assert_eq!((asked(&cache), cache.dirty_units()), (expected.to_vec(), 1));
    // With nothing dirty it goes straight through.
    cache.submit(us(1_000), command(Op::Trim, 20, 1));
    run(&mut cache, 2_000);
    cache.submit(us(2_000), command(Op::Flush, 0, 0));
    assert_eq!(run(&mut cache, 3_000), [(2_100, Op::Flush)]);
}

#[test]
fn a_flush_waits_for_a_page_that_was_written_to_while_it_was_being_written() {
    let mut cache = cache();
    cache.submit(us(0), write(3, 1, 1));
    cache.submit(us(10), command(Op::Flush, 0, 0));
    cache.submit(us(20), write(3, 1, 2));
    cache.submit(us(30), command(Op::Flush, 0, 0));
    let flushes: Vec<_> = run(&mut cache, 1_000).into_iter().skip(2).collect();
    assert_eq!(flushes, [(210, Op::Flush), (310, Op::Flush)]);
    let expected = [(10, Op::Write, 3, 1), (110, Op::Flush, 0, 0), (110, Op::Write, 3, 1)];
    assert_eq!(asked(&cache)[..3], expected);
    assert_eq!(cache.device().content[3], 2);
}

#[test]
fn flushes_that_come_while_one_walks_get_a_walk_of_their_own() {
    let mut cache = cache_of(&PageCacheConfig { writeback_depth: 1, ..config() });
    cache.submit(us(0), write(5, 1, 1));
    cache.submit(us(0), write(7, 1, 1));
    cache.submit(us(0), command(Op::Flush, 0, 0));
    cache.submit(us(10), write(1, 1, 1));
    cache.submit(us(20), command(Op::Flush, 0, 0));
    let ends: Vec<_> = run(&mut cache, 1_000).into_iter().skip(3).collect();
    assert_eq!(ends, [(300, Op::Flush), (400, Op::Flush)]);
}

#[test]
fn fua_writes_through() {
    let mut cache = cache();
    let fua = |unit, stamp| write(unit, 2, stamp).fua(true);
    cache.submit(us(0), fua(4, 1));
    assert_eq!(run(&mut cache, 150), [(100, Op::Write)]);
    assert!(cache.device().asked[0].1.is_fua() && cache.device().announced.is_empty());
    assert_eq!((cache.dirty_units(), cache.cached_units()), (0, 2));
    // One that finds its page being written waits for that.
    cache.submit(us(200), write(4, 1, 2));
    cache.submit(us(210), command(Op::Flush, 0, 0));
    cache.submit(us(220), fua(4, 3));
    let ends: Vec<_> = run(&mut cache, 1_000).into_iter().skip(1).collect();
    assert_eq!(ends, [(410, Op::Write), (410, Op::Flush)]);
    assert_eq!(cache.device().content[4..6], [3, 3]);
    // A failure is its own, and the next flush's: it took along what other writes had put there.
    cache.device_mut().failing.insert(4);
    cache.submit(us(1_000), fua(4, 4));
    cache.submit(us(1_200), command(Op::Flush, 0, 0));
    cache.submit(us(1_400), command(Op::Flush, 0, 0));
    let expected = [Status::WriteFault, Status::WriteFault, Status::Success];
    assert_eq!(statuses(&mut cache, 2_000), expected);
    assert_eq!((cache.take_lost_units(), cache.take_lost_units()), (vec![4, 5], vec![]));
}

fn statuses(cache: &mut Cache, until_us: u64) -> Vec<Status> {
    ends(cache, until_us).iter().map(|end| end.status).collect()
}

/// A flush that fails ends in the cache: nothing ends below that would wake the trim which has let it go first.
#[test]
fn commands_that_wait_for_a_flush_continue_when_it_fails() {
    for op in [Op::Trim, Op::WriteZeroes] {
        let mut cache = cache();
        cache.device_mut().failing.insert(3);
        cache.submit(us(0), write(3, 1, 1));
        cache.submit(us(10), command(Op::Flush, 0, 0));
        cache.submit(us(10), write(40, 1, 2).fua(true));
        cache.submit(us(20), command(op, 40, 1));
        let ends = ends(&mut cache, 1_000);
        assert!(ends.iter().any(|end| end.op == Op::Flush && end.status == Status::WriteFault));
        assert_eq!(ends.last().map(|end| (end.op, end.status)), Some((op, Status::Success)));
    }
}

#[test]
fn a_large_fua_write_fails_if_a_part_of_it_could_not_be_written_out_on_its_way() {
    let mut cache = cache();
    cache.device_mut().failing.insert(7);
    cache.submit(us(0), write(0, 100, 1).fua(true));
    assert_eq!(statuses(&mut cache, 10_000), [Status::WriteFault]);
    assert_eq!(cache.device().content[7], 0);
}

#[test]
fn a_trim_that_fails_loses_the_dirty_pages_that_it_dropped() {
    let mut cache = cache();
    cache.device_mut().failing_trims = true;
    cache.submit(us(0), command(Op::Trim, 0, 8)); // drops nothing
    cache.submit(us(1_000), command(Op::Flush, 0, 0));
    cache.submit(us(2_000), write(2, 2, 1));
    cache.submit(us(3_000), command(Op::Trim, 0, 3));
    cache.submit(us(4_000), command(Op::Flush, 0, 0));
    cache.submit(us(5_000), command(Op::Flush, 0, 0));
    let (good, bad) = (Status::Success, Status::WriteFault);
    assert_eq!(statuses(&mut cache, 9_000), [bad, good, good, bad, bad, good]);
    assert_eq!(cache.take_lost_units(), [0, 1, 2]);
}

#[test]
fn a_large_fua_write_that_was_written_out_on_its_way_is_flushed() {
    let mut cache = cache();
    cache.submit(us(0), write(0, 100, 1).fua(true));
    let ends = run(&mut cache, 10_000);
    assert_eq!(ends.len(), 1);
    let last = asked(&cache).pop();
    assert!(last.is_some_and(|(time, op, ..)| op == Op::Flush && time + 100 == ends[0].0));
    assert_eq!(cache.device().content[..101].iter().sum::<u64>(), 100);
}

#[test]
fn a_trim_drops_what_is_dirty_and_waits_for_what_is_being_written() {
    let mut cache = cache();
    cache.submit(us(0), write(0, 2, 1));
    cache.submit(us(0), write(4, 1, 2));
    run(&mut cache, 10);
    cache.submit(us(10), command(Op::Trim, 0, 3));
    run(&mut cache, 200);
    assert_eq!(asked(&cache), [(10, Op::Trim, 0, 3)]);
    assert_eq!((cache.dirty_units(), cache.stats().discarded_pages), (1, 2));

    cache.submit(us(200), command(Op::Flush, 0, 0)); // page 4 is being written
    cache.submit(us(210), write(4, 1, 3)); // and dirty again
    cache.submit(us(220), command(Op::Trim, 3, 2));
    cache.submit(us(230), write(4, 1, 4)); // after the trim
    cache.submit(us(240), command(Op::Read, 3, 2));
    cache.submit(us(250), command(Op::Read, 8, 1)); // elsewhere
    let ends = ends(&mut cache, 1_000);
    let times: Vec<_> = ends.iter().map(|end| (end.time.as_ns() / 1_000, end.op)).collect();
    let expected = [
        (211, Op::Write),
        (351, Op::Read),
        (400, Op::Trim),
        (401, Op::Write),
        (500, Op::Flush), // passed on when the trim, which has dropped page 4, has ended
        (502, Op::Read),
    ];
    assert_eq!(times, expected);
    assert_eq!(ends[5].data().unwrap(), &[0, 4].map(Stamp));
    let trims: Vec<_> = asked(&cache).into_iter().filter(|&(_, op, ..)| op == Op::Trim).collect();
    assert_eq!(trims[1], (300, Op::Trim, 3, 2));
}

#[test]
fn a_trim_waits_for_a_read_that_fills_its_pages() {
    let mut cache = cache();
    cache.device_mut().content[1] = 5;
    cache.submit(us(0), command(Op::Read, 0, 2));
    cache.submit(us(10), command(Op::Trim, 1, 1));
    cache.submit(us(20), command(Op::Read, 1, 1));
    let ends = ends(&mut cache, 1_000);
    let read: Vec<_> = ends.iter().map(|end| (end.op, end.data().cloned())).collect();
    let expected = [
        (Op::Read, Some(vec![Stamp(0), Stamp(5)])),
        (Op::Trim, None),
        (Op::Read, Some(vec![Stamp(0)])),
    ];
    assert_eq!(read, expected);
}

#[test]
fn parts_of_pages_outlive_a_trim_and_are_written_before_zeroes() {
    let mut cache = cache();
    cache.submit(us(0), write(0, 4, 1));
    cache.submit(us(10), Command::trim(Lba(4), 16));
    run(&mut cache, 1_000);
    assert_eq!((cache.dirty_units(), cache.stats().discarded_pages), (3, 1));
    cache.submit(us(1_000), Command::write_zeroes(Lba(12), 16, 6));
    cache.submit(us(1_010), command(Op::Read, 0, 4));
    let ends = ends(&mut cache, 2_000);
    assert_eq!(ends[1].data().unwrap()[0], Stamp(1));
    let edges: Vec<_> = asked(&cache)[1..].to_vec();
    assert_eq!(edges[0], (1_000, Op::Write, 3, 1), "page 1 is not cached, page 2 gone");
    assert_eq!(edges[1], (1_100, Op::WriteZeroes, 1, 3));
}

#[test]
fn nothing_outlives_the_power() {
    let mut cache = cache();
    cache.submit(us(0), write(0, 20, 1));
    cache.submit(us(10), command(Op::Read, 100, 2));
    cache.submit(us(20), command(Op::Flush, 0, 0));
    assert_eq!(run(&mut cache, 20), [(20, Op::Write)]);
    assert_eq!(cache.lose_power(), 20);
    assert!(cache.is_idle() && cache.cached_units() == 0 && cache.dirty_units() == 0);
    let mut fresh = cache_of(&config());
    std::mem::swap(cache.device_mut(), fresh.device_mut()); // a drive that has lost its commands
    cache.submit(us(30), command(Op::Read, 0, 2));
    assert_eq!(ends(&mut cache, 1_000)[0].data().unwrap(), &[Stamp(0); 2]);
    assert_eq!(cache.next_event(), None);
}

#[test]
fn hints_of_the_hosts_own_are_passed_on() {
    let mut cache = cache();
    let hint = Hint::covering(Lba(80), 8).next();
    cache.submit(us(0), command(Op::Read, 0, 1).hint(hint));
    cache.submit(us(5), Command::write_prepare([hint.unwrap()]));
    assert_eq!(run(&mut cache, 1_000), [(101, Op::Read), (105, Op::WritePrepare)]);
    assert_eq!(cache.device().announced, [(us(0), hint.unwrap())]);
    let Action::WritePrepare { ranges } = &cache.device().asked[1].1.action else { panic!() };
    assert_eq!(**ranges, [hint.unwrap()]);
}

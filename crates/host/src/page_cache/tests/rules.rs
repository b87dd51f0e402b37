//! Reads, writes, eviction, and what the flusher does when.

use super::*;

#[test]
fn cached_pages_are_read_at_the_speed_of_memory() {
    let mut cache = cache();
    cache.submit(us(0), command(Op::Read, 2, 4));
    assert_eq!(run(&mut cache, 200), [(104, Op::Read)]);
    cache.submit(us(200), command(Op::Read, 2, 4));
    assert_eq!(run(&mut cache, 300), [(204, Op::Read)]);
    // Runs of what is not there are one command each.
    cache.submit(us(300), command(Op::Read, 0, 9));
    assert_eq!(run(&mut cache, 500), [(409, Op::Read)]);
    let expected = [(0, Op::Read, 2, 4), (300, Op::Read, 0, 2), (300, Op::Read, 6, 3)];
    assert_eq!(asked(&cache), expected);
    assert_eq!((cache.stats().hits, cache.stats().misses), (8, 9));
    assert_eq!(cache.next_event(), None, "a clean cache has nothing to do");
}

#[test]
fn a_page_on_its_way_is_read_once() {
    let mut cache = cache();
    cache.device_mut().content[5] = 77;
    cache.submit(us(0), command(Op::Read, 4, 4));
    cache.submit(us(50), command(Op::Read, 5, 1));
    cache.submit(us(60), command(Op::Read, 6, 3));
    let ends = ends(&mut cache, 1_000);
    let times: Vec<_> = ends.iter().map(|end| end.time.as_ns() / 1_000).collect();
    assert_eq!(times, [101, 104, 163]);
    assert_eq!(ends[0].data().unwrap(), &[Stamp(77)]);
    assert_eq!(asked(&cache), [(0, Op::Read, 4, 4), (60, Op::Read, 8, 1)]);
}

#[test]
fn writes_stay_in_memory_and_are_announced_once() {
    let mut cache = cache();
    cache.submit(us(0), write(10, 4, 1));
    cache.submit(us(20), write(9, 6, 2));
    assert_eq!(run(&mut cache, 100), [(4, Op::Write), (26, Op::Write)]);
    let announced = cache.device().announced.iter();
    let announced: Vec<_> = announced
        .map(|(time, hint)| (time.as_ns() / 1_000, hint.first_unit(), hint.units()))
        .collect();
    assert_eq!(announced, [(0, 10, 4), (20, 9, 1), (20, 14, 1)]);
    cache.submit(us(100), command(Op::Read, 8, 4));
    let read = ends(&mut cache, 300);
    assert_eq!(read[0].data().unwrap(), &[0, 2, 2, 2].map(Stamp));
    assert_eq!(asked(&cache), [(100, Op::Read, 8, 1)]);
    let stats = cache.stats();
    assert_eq!((stats.dirtied_pages, stats.rewritten_pages, cache.dirty_units()), (6, 4, 6));
}

#[test]
fn the_flusher_writes_when_the_file_has_been_dirty_for_long_enough() {
    let mut cache = cache();
    cache.submit(us(SECOND), write(10, 1, 1));
    run(&mut cache, 34 * SECOND);
    // Age is the file's: the young page goes as well. By page number, from where it stopped.
    cache.submit(us(34 * SECOND), write(5, 1, 2));
    assert_eq!(cache.next_event(), Some(us(34 * SECOND + 1)));
    run(&mut cache, 36 * SECOND);
    let first = [(35 * SECOND, Op::Write, 5, 1), (35 * SECOND, Op::Write, 10, 1)];
    assert_eq!(asked(&cache), first);
    assert_eq!((cache.dirty_units(), cache.next_event()), (0, None));
    // Round from page 11 on; 5 s x 14 is the first wake-up after 36 s + 30 s.
    for page in [3, 10, 12] {
        cache.submit(us(36 * SECOND), write(page, 1, page));
    }
    run(&mut cache, 100 * SECOND);
    let order: Vec<_> = asked(&cache)[2..].iter().map(|&(time, _, unit, _)| (time, unit)).collect();
    assert_eq!(order, [12, 3, 10].map(|unit| (70 * SECOND, unit)));
    assert_eq!(cache.stats().laps, 2);
}

#[test]
fn pages_that_become_dirty_behind_the_flusher_are_young() {
    let mut cache = cache_of(&PageCacheConfig { writeback_depth: 1, ..config() });
    cache.submit(us(0), write(0, 1, 1));
    cache.submit(us(0), write(10, 1, 2));
    run(&mut cache, 30 * SECOND);
    cache.submit(us(30 * SECOND), write(0, 1, 3)); // while it is being written
    cache.submit(us(30 * SECOND + 50), write(5, 1, 4));
    run(&mut cache, 40 * SECOND);
    let start = 30 * SECOND;
    let lap = [(start, Op::Write, 0, 1), (start + 100, Op::Write, 5, 1)];
    assert_eq!(asked(&cache)[..2], lap);
    assert_eq!(asked(&cache)[2..], [(start + 200, Op::Write, 10, 1)]);
    assert_eq!(cache.dirty_units(), 1);
    run(&mut cache, 100 * SECOND);
    assert_eq!(asked(&cache)[3..], [(65 * SECOND, Op::Write, 0, 1)]);
    assert_eq!(cache.device().content[..11], [3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 2]);
}

#[test]
fn over_the_background_ratio_it_writes_until_below() {
    let mut cache = cache();
    for page in 0..16 {
        cache.submit(us(page), write(page * 2, 1, 1));
    }
    run(&mut cache, 50);
    assert_eq!(asked(&cache), []);
    cache.submit(us(50), write(100, 2, 1));
    run(&mut cache, 100);
    assert_eq!(asked(&cache), [(50, Op::Write, 0, 1), (50, Op::Write, 2, 1)]);
    assert_eq!((cache.dirty_units(), cache.writeback_units()), (16, 2));
}

#[test]
fn over_the_dirty_ratio_writers_wait() {
    let mut cache = cache();
    for page in 0..32 {
        cache.submit(us(0), write(page * 2, 1, 1));
    }
    assert_eq!(run(&mut cache, 10), vec![(1, Op::Write); 32]);
    assert_eq!((cache.dirty_units(), cache.writeback_units()), (16, 16));
    cache.submit(us(10), write(100, 1, 1));
    cache.submit(us(20), write(101, 1, 1));
    // The 16 writes end at 100 us, those that these two have caused later.
    assert_eq!(run(&mut cache, 1_000), [(100, Op::Write), (100, Op::Write)]);
    let stats = cache.stats();
    assert_eq!((stats.throttled_writes, stats.throttled), (2, Span::from_us(89 + 79)));
    assert_eq!(stats.dirty_peak.get(), 17);
}

#[test]
fn only_so_many_writes_are_under_way() {
    let mut cache = cache_of(&PageCacheConfig { writeback_depth: 3, ..config() });
    for page in 0..24 {
        cache.submit(us(0), write(page * 2, 1, 1));
    }
    run(&mut cache, 1_000);
    let times: Vec<_> = asked(&cache).iter().map(|&(time, ..)| time).collect();
    assert_eq!(times, [0, 0, 0, 100, 100, 100, 200, 200]);
}

#[test]
fn a_command_covers_what_one_write_has_made_dirty() {
    let mut cache = cache();
    cache.submit(us(0), write(10, 8, 1));
    cache.submit(us(1), write(13, 2, 2));
    cache.submit(us(2), write(18, 1, 3));
    cache.submit(us(3), command(Op::Flush, 0, 0));
    run(&mut cache, 500);
    let writes: Vec<_> = asked(&cache).iter().map(|&(_, _, unit, units)| (unit, units)).collect();
    assert_eq!(writes, [(10, 3), (13, 2), (15, 3), (18, 1), (0, 0)]);
    assert_eq!(cache.device().content[9..20], [0, 1, 1, 1, 2, 2, 1, 1, 1, 3, 0]);
    assert_eq!((cache.stats().writebacks, cache.stats().written_back_pages), (4, 9));
}

#[test]
fn a_part_of_a_page_is_read_before_it_is_written() {
    let mut cache = cache();
    cache.submit(us(0), Command::write(Lba(4), 16, 9));
    cache.submit(us(10), Command::write(Lba(16), 1, 8));
    cache.submit(us(50), write(40, 1, 1));
    assert_eq!(run(&mut cache, 1_000), [(51, Op::Write), (101, Op::Write), (103, Op::Write)]);
    assert_eq!(asked(&cache), [(0, Op::Read, 0, 1), (0, Op::Read, 2, 1)]);
    cache.submit(us(1_000), Command::write(Lba(1), 1, 7));
    assert_eq!(run(&mut cache, 2_000), [(1_001, Op::Write)], "it is cached");
    cache.submit(us(2_000), command(Op::Flush, 0, 0));
    run(&mut cache, 3_000);
    assert_eq!(cache.device().content[..3], [7, 9, 8]);
    assert_eq!(cache.stats().partial_reads, 2);
}

#[test]
fn pages_touched_twice_outlive_a_scan() {
    let mut cache = cache();
    let mut now = 0;
    let mut read = |cache: &mut Cache, unit, units| {
        cache.submit(us(now), command(Op::Read, unit, units));
        now += 1_000;
        run(cache, now);
    };
    read(&mut cache, 0, 20);
    read(&mut cache, 0, 10); // the second touch
    for start in (100..500).step_by(10) {
        read(&mut cache, start, 10);
    }
    let before = asked(&cache).len();
    read(&mut cache, 0, 10);
    assert_eq!(asked(&cache).len(), before, "still there");
    read(&mut cache, 10, 10);
    assert_eq!(asked(&cache)[before..].len(), 1, "gone");
    assert_eq!(cache.cached_units(), 64);
    assert_eq!(cache.stats().evictions, 20 + 400 + 10 - 64);
    // Many active pages: the oldest of them go when the inactive list is the shorter one.
    for start in (100..500).step_by(10) {
        read(&mut cache, start, 10);
        read(&mut cache, start, 10);
    }
    let before = asked(&cache).len();
    read(&mut cache, 0, 10);
    assert_eq!(asked(&cache)[before..].len(), 1, "gone at last");
}

#[test]
fn dirty_pages_are_not_evicted() {
    // Everything may be dirty but one page.
    let ratios = (Ratio::from_percent(98), Ratio::ONE);
    let mut cache = cache_of(&PageCacheConfig {
        background_ratio: ratios.0,
        dirty_ratio: ratios.1,
        ..config()
    });
    cache.submit(us(0), write(0, 60, 1));
    for start in (100..500).step_by(2) {
        cache.submit(us(start * 1_000), command(Op::Read, start, 2));
        run(&mut cache, start * 1_000 + 900);
    }
    assert_eq!((cache.dirty_units(), cache.cached_units()), (60, 64));
    cache.submit(us(900_000), command(Op::Read, 0, 60));
    assert_eq!(ends(&mut cache, 901_000)[0].data().unwrap(), &[Stamp(1); 60]);
    // Clean pages are evicted next, so room for as many is found at once.
    cache.submit(us(901_000), command(Op::Flush, 0, 0));
    run(&mut cache, 902_000);
    cache.submit(us(902_000), write(500, 60, 2));
    assert_eq!(run(&mut cache, 903_000), [(902_060, Op::Write)]);
}

#[test]
fn a_request_may_be_larger_than_the_cache() {
    let mut cache = cache();
    cache.submit(us(0), write(0, 200, 1));
    cache.submit(us(0), command(Op::Read, 300, 200));
    let ends = ends(&mut cache, 100_000);
    assert_eq!(ends.len(), 2);
    assert!(cache.stats().starved >= 2 && cache.cached_units() == 64);
    cache.submit(us(100_000), command(Op::Read, 0, 200));
    assert_eq!(self::ends(&mut cache, 200_000)[0].data().unwrap(), &[Stamp(1); 200]);
}

#[test]
fn failures_reach_whoever_asked() {
    let mut cache = cache();
    cache.device_mut().failing.insert(5);
    cache.submit(us(0), command(Op::Read, 4, 2));
    cache.submit(us(10), command(Op::Read, 5, 1));
    cache.submit(us(20), Command::write(Lba(41), 1, 0));
    let status = |ends: Vec<Completion<Stamp>>| -> Vec<Status> {
        ends.iter().map(|end| end.status).collect()
    };
    assert_eq!(status(ends(&mut cache, 1_000)), [Status::UnrecoveredRead; 3]);
    assert_eq!(cache.cached_units(), 0);
    // A failed write-back: the next flush says so, once.
    cache.submit(us(1_000), write(5, 1, 1));
    cache.submit(us(1_010), command(Op::Flush, 0, 0));
    cache.submit(us(2_000), command(Op::Flush, 0, 0));
    let expected = [Status::Success, Status::WriteFault, Status::Success];
    assert_eq!(status(ends(&mut cache, 3_000)), expected);
    assert_eq!((cache.stats().failed_pages, cache.dirty_units()), (1, 0));
}

#[test]
fn bad_commands_are_refused() {
    let mut cache = cache();
    cache.submit(us(0), command(Op::Read, 0, 0));
    cache.submit(us(0), command(Op::Write, DRIVE_UNITS as u64, 1));
    cache.submit(us(0), Command::trim(Lba(u64::MAX), 2));
    let ends = ends(&mut cache, 10);
    let expected = [Status::InvalidField, Status::LbaOutOfRange, Status::LbaOutOfRange];
    assert_eq!(ends.iter().map(|end| end.status).collect::<Vec<_>>(), expected);
    assert!(ends.iter().all(|end| end.time == us(0)) && cache.is_idle());
}

#[test]
fn impossible_configurations_are_refused() {
    let of = |change: fn(&mut PageCacheConfig)| {
        let mut config = config();
        change(&mut config);
        PageCache::<Stamp, _>::new(&config, Mock::new(DRIVE_UNITS), 4096).unwrap_err().to_string()
    };
    let drive = "size: 4 MiB is more than the drive has, 4000 KiB";
    assert_eq!(of(|c| c.size = Bytes::new(4 << 20)), drive);
    assert_eq!(of(|c| c.size = Bytes::new(65_535)), "size: 65535 B is less than 64 KiB, 16 pages");
    let contradicting = of(|c| c.background_ratio = Ratio::from_percent(50));
    assert!(contradicting.starts_with("background_ratio: 50 % is not less than dirty_ratio, 50 %"));
    assert_eq!(
        of(|c| c.background_ratio = Ratio::ZERO),
        "background_ratio: 0 % is not above 0 % and up to 100 %"
    );
    assert_eq!(
        of(|c| c.dirty_ratio = Ratio::from_percent(101)),
        "dirty_ratio: 101 % is not above 0 % and up to 100 %"
    );
    assert_eq!(of(|c| c.writeback_depth = 0), "writeback_depth: 0 is not in 1..=65536");
    assert_eq!(of(|c| c.page_io = Span::from_ms(2_000)), "page_io: 2 s is more than 1 s");
}

#[test]
fn without_an_interval_nothing_is_ever_old() {
    let mut cache = cache_of(&PageCacheConfig { writeback_interval: Span::ZERO, ..config() });
    cache.submit(us(0), write(0, 1, 1));
    assert_eq!(run(&mut cache, 100 * SECOND), [(1, Op::Write)]);
    assert_eq!((cache.next_event(), cache.dirty_units()), (None, 1));
}

//! A recorded store, played to a drive whose every answer is known.

use std::fmt::Write as _;

use super::*;

const LAYOUT: ZoneLayout =
    ZoneLayout { zones: 64, size: 8192, capacity: 8192, block: 8, area: 0, area_step: 0 };

/// Two memtables, of 12 and 8 puts; the flush of the first begins when the second's log is made, and a compaction
/// reads its table.
const STORE: &str = "leyden-files 1
0 0 100 c 0 1 0 /db/000004.log
1 0 100 c 1 1 0 /db/MANIFEST-000005
2 1 12000 a 0 12 11100
3 1 500 c 2 1 0 /db/000006.log
5 2 70 c 3 1 0 /db/000007.sst
6 2 900 a 3 2 10000
7 2 10 s 3 1 0
8 2 10 x 3 1 0
9 2 10 a 1 1 90
10 2 10 s 1 1 0
11 2 10 d 0 1 0
4 1 8000 a 2 8 7400
12 3 10 r 3 3 10000
13 3 10 c 4 1 0 /db/000008.sst
14 3 10 a 4 1 10000
15 3 10 s 4 1 0
16 3 10 s 1 1 0
17 3 10 d 3 1 0
18 1 10 c 5 1 0 /db/000009.log
19 1 400000 a 5 4 3700
end
";

fn store(config: &RecordedConfig, has_region: bool) -> Recorded {
    let trace = Arc::new(FileTrace::read(STORE.as_bytes()).unwrap());
    Recorded::new(config, trace, LAYOUT, has_region, Time::ZERO)
}

/// Plays it to a drive where a FLUSH takes 50 us and all else 1 us, and checks that zones are written in order. Returns
/// what was asked for, when.
fn play(host: &mut Recorded) -> Vec<(Time, u32, Request)> {
    play_on(host, LAYOUT, Span::from_us(50))
}

fn play_on(host: &mut Recorded, layout: ZoneLayout, flush: Span) -> Vec<(Time, u32, Request)> {
    let mut now = Time::ZERO;
    let mut wp = vec![0_u64; layout.zones as usize];
    let mut under_way: Vec<(Time, u32)> = Vec::new();
    let mut asked = Vec::new();
    loop {
        let ended = |under_way: &[(Time, u32)]| under_way.iter().map(|&(at, _)| at).min();
        let next = match host.next(now) {
            Ask::Submit { request, owner } => {
                let zone = (request.lba.0 / layout.size) as usize;
                match request.op {
                    Op::Write => {
                        assert_eq!(request.lba.0 % layout.size, wp[zone]);
                        wp[zone] += u64::from(request.sectors);
                    }
                    Op::Zone(ZoneAction::Reset) => wp[zone] = 0,
                    Op::Read => {
                        let end = request.lba.0 % layout.size + u64::from(request.sectors);
                        assert!(end <= wp[zone], "reads what was not written");
                    }
                    _ => {}
                }
                let takes = if request.op == Op::Flush { flush } else { Span::from_us(1) };
                asked.push((now, owner, request));
                under_way.push((now + takes, owner));
                continue;
            }
            Ask::At(at) => Some(ended(&under_way).map_or(at, |end| end.min(at))),
            Ask::Wait => ended(&under_way),
            Ask::End => return asked,
        };
        now = next.expect("it waits for nothing");
        for (_, owner) in under_way.extract_if(.., |(end, _)| *end <= now) {
            host.completed(owner, now);
        }
    }
}

fn config() -> RecordedConfig {
    RecordedConfig { path: "x".into(), ..RecordedConfig::default() }
}

#[test]
fn threads_wait_for_each_other_as_rocksdb_lets_them() {
    let mut host = store(&config(), true);
    let asked = play(&mut host);
    let (figures, _) = host.figures(Time::from_ns(1));
    assert_eq!((figures.puts, figures.flushed, figures.compacted), (24, 1, 1));
    let at = |owner: u32, op: Op| {
        let found = asked.iter().find(|(_, of, request)| *of == owner && request.op == op);
        found.expect("asked for").0
    };
    let first_log_full = Time::from_ns(100 + 12_000);
    assert!(at(2, Op::Write) > first_log_full, "the flush waits for the next log");
    assert!(at(3, Op::Read) > at(2, Op::Flush) + Span::from_us(50), "its table is read later");
    // The third log waits for the flush of the first memtable, which its FLUSH holds up.
    let mut writes =
        asked.iter().filter(|(_, owner, request)| *owner == 1 && request.op == Op::Write);
    let third = writes.next_back().unwrap().0;
    assert!(third > at(2, Op::Flush) + Span::from_us(50), "{third:?}");
    assert!(figures.stalled > Span::from_us(20), "{figures:?}");
}

#[test]
fn durability_depends_on_the_region() {
    let of = |has_region| play(&mut store(&config(), has_region));
    let fua =
        |asked: &[(Time, u32, Request)]| asked.iter().filter(|(.., request)| request.fua).count();
    let (with, without) = (of(true), of(false));
    assert_eq!(fua(&with), 0, "the region protects what must be durable");
    assert!(fua(&without) >= 8, "names, places and the MANIFEST: {}", fua(&without));
    let logs = |asked: &[(Time, u32, Request)]| {
        asked.iter().filter(|(.., request)| request.class == crate::Class::Wal).count()
    };
    // Blocks of four records; without a region the log is held back, and never synced here.
    assert_eq!((logs(&with), logs(&without)), (6, 0));
    let flushes = |asked: &[(Time, u32, Request)]| {
        asked.iter().filter(|(.., request)| request.op == Op::Flush).count()
    };
    assert_eq!((flushes(&with), flushes(&without)), (2, 2), "one for each table");
    let published = RecordedConfig { order: super::super::SyncOrder::Published, ..config() };
    assert_eq!(flushes(&play(&mut store(&published, true))), 0);
}

#[test]
fn puts_that_are_skipped_are_made_and_not_measured() {
    let measured = RecordedConfig { skip: 12, puts: 8, ..config() };
    let mut host = store(&measured, true);
    let asked = play(&mut host);
    let end = asked.last().unwrap().0;
    let (figures, elapsed) = host.figures(end);
    assert_eq!(figures.puts, 8);
    assert!(elapsed < end.since(Time::from_ns(12_000)), "{elapsed:?}");
    // In place of the recorded microsecond.
    let slow = RecordedConfig { put_time: Some(Span::from_us(100)), ..config() };
    let end = play(&mut store(&slow, true)).last().unwrap().0;
    assert!(end > Time::from_ns(2_300_000), "{end:?}");
    // The last puts alone were 400 us of work.
    let of = |percent| {
        let work = leyden_sim::Ratio::from_percent(percent);
        play(&mut store(&RecordedConfig { work, ..config() }, true)).last().unwrap().0
    };
    assert!(of(100) > Time::from_ns(400_000) && of(20) < Time::from_ns(200_000));
}

#[test]
fn many_tables_slow_the_writer_down_and_stop_it() {
    let slowed = RecordedConfig { slowdown_at: 1, ..config() };
    let mut host = store(&slowed, true);
    play(&mut host);
    assert!(host.figures(Time::from_ns(1)).0.delayed > Span::ZERO);
    let (figures, _) = {
        let mut host = store(&config(), true);
        play(&mut host);
        host.figures(Time::from_ns(1))
    };
    assert_eq!(figures.delayed, Span::ZERO);
}

/// The recording that scenarios replay, on a drive as large as theirs.
#[test]
fn the_recording_of_rocksdb_is_replayed_to_its_end() {
    let bytes = include_bytes!("../../../../../scenarios/traces/rocksdb.files.zst");
    let trace = Arc::new(FileTrace::read(bytes).unwrap());
    assert_eq!(trace.puts(), 2_000_000);
    let layout = ZoneLayout { zones: 448, size: 32_768, capacity: 32_768, ..LAYOUT };
    let run = |config: &RecordedConfig, has_region, flush| {
        let mut host = Recorded::new(config, Arc::clone(&trace), layout, has_region, Time::ZERO);
        let end = play_on(&mut host, layout, flush).last().unwrap().0;
        let (figures, elapsed) = host.figures(end);
        assert_eq!((host.left(), figures.puts), (0, 1_000_000));
        (figures, elapsed.as_secs_f64())
    };
    let fill = RecordedConfig { puts: 1_000_000, ..config() };
    for has_region in [false, true] {
        let (figures, elapsed) = run(&fill, has_region, Span::from_us(50));
        // Puts take 2.49 us each; nothing slows the writer down, for tables do not wait.
        assert_eq!(figures.delayed, Span::ZERO);
        assert!(elapsed < 3.0, "{elapsed}");
    }
    // On a slow drive the writer waits for each of 114 memtables but the last two.
    let (figures, elapsed) = run(&fill, true, Span::from_ms(200));
    assert!((112..=114).contains(&figures.flushed), "{figures:?}");
    assert!((22.4..26.0).contains(&elapsed), "{elapsed}");
    let over = RecordedConfig { skip: 1_000_000, ..config() };
    let (figures, _) = run(&over, true, Span::from_us(50));
    assert!(figures.flushed > 100 && figures.compacted > 5, "{figures:?}");
}

fn played(recording: &str, has_region: bool) -> (Recorded, Vec<(Time, u32, Request)>) {
    let trace = Arc::new(FileTrace::read(recording.as_bytes()).unwrap());
    let mut host = Recorded::new(&config(), trace, LAYOUT, has_region, Time::ZERO);
    let asked = play(&mut host);
    (host, asked)
}

/// Zones have 4 MiB. What a log leaves in one is durable before it goes on in another: else it could have a hole.
#[test]
fn a_log_is_durable_in_the_zones_that_it_has_filled() {
    let recording = "leyden-files 1
0 1 100 c 0 1 0 /db/000004.log
1 1 5000000 a 0 5000 4625000
end
";
    let (_, asked) = played(recording, false);
    let ends = |request: &Request| {
        request.lba.0 % LAYOUT.size + u64::from(request.sectors) == LAYOUT.capacity
    };
    let durable: Vec<bool> = (asked.iter().filter(|(.., it)| it.class == crate::Class::Wal))
        .map(|(.., request)| {
            assert_eq!(request.fua, ends(request));
            request.fua
        })
        .collect();
    assert_eq!(durable.iter().filter(|&&fua| fua).count(), 1, "{durable:?}");
    let (_, protected) = played(recording, true);
    assert!(protected.iter().all(|(.., request)| !request.fua));
    let unsynced = RecordedConfig { log_zone_end: LogZoneEnd::NoSync, ..config() };
    let trace = Arc::new(FileTrace::read(recording.as_bytes()).unwrap());
    let asked = play(&mut Recorded::new(&unsynced, trace, LAYOUT, false, Time::ZERO));
    let mut log = asked.iter().filter(|(.., it)| it.class == crate::Class::Wal);
    assert!(log.all(|(.., request)| !request.fua));
}

/// A flush that closes its log while the writer fills the next one.
#[test]
fn one_write_at_a_time_is_under_way_to_the_logs() {
    let recording = "leyden-files 1
0 1 100 c 0 1 0 /db/000004.log
1 1 1000 a 0 1000 200000
2 1 500 c 1 1 0 /db/000006.log
3 2 2500 x 0 1 0
4 1 1000 a 1 1000 2500000
end
";
    for has_region in [false, true] {
        let (_, asked) = played(recording, has_region);
        let logs: Vec<Time> = (asked.iter())
            .filter_map(|&(at, _, request)| (request.class == crate::Class::Wal).then_some(at))
            .collect();
        assert!(logs.len() > 8, "{}", logs.len());
        let together = logs.windows(2).filter(|pair| pair[1].since(pair[0]) < Span::from_us(1));
        assert_eq!(together.count(), 0, "each takes a microsecond");
    }
}

#[test]
fn a_table_lies_in_one_zone() {
    let recording = "leyden-files 1
0 1 70 c 0 1 0 /db/000007.sst
1 1 900 a 0 3 2500000
2 1 10 s 0 1 0
3 1 70 c 1 1 0 /db/000008.sst
4 1 900 a 1 3 2500000
5 1 10 s 1 1 0
6 2 9000000 c 2 1 0 /db/000004.log
7 2 100 a 2 4 3700
end
";
    let (_, asked) = played(recording, true);
    let zones: Vec<u64> = (asked.iter().filter(|(.., it)| it.class == crate::Class::Data))
        .map(|(.., request)| request.lba.0 / LAYOUT.size)
        .collect();
    let half = zones.len() / 2;
    assert!(zones[..half].iter().all(|&zone| zone == zones[0]), "{zones:?}");
    assert!(zones[half..].iter().all(|&zone| zone == zones[half]), "{zones:?}");
    assert_ne!(zones[0], zones[half]);
    let finished =
        asked.iter().find(|(.., request)| request.op == Op::Zone(ZoneAction::Finish)).unwrap();
    assert_eq!(finished.2.lba.0 / LAYOUT.size, zones[0], "it would stay active");
}

/// Four memtables, recorded on a slow drive: the flush of each begins when the one before is installed, and the writer
/// goes on then.
#[test]
fn a_recording_of_a_slow_drive_waits_for_the_same_flushes() {
    let mut recording = "leyden-files 1\n0 0 1 c 0 1 0 /db/MANIFEST-000005\n".to_owned();
    let mut at = 0;
    let mut line = |text: String| {
        at += 1;
        writeln!(recording, "{at} {text}").unwrap();
    };
    let log = |n: u64| 2 * n + 1;
    line(format!("1 100 c {} 1 0 /db/100.log", log(0)));
    line(format!("1 4000 a {} 4 3700", log(0)));
    line(format!("1 100 c {} 1 0 /db/101.log", log(1)));
    for n in 0..4 {
        // Flush n begins; the writer fills log n + 1, makes the next one, and stops.
        line(format!("2 70 c {} 1 0 /db/20{n}.sst", 2 * n + 2));
        line(format!("1 4000 a {} 4 3700", log(n + 1)));
        line(format!("1 100 c {} 1 0 /db/10{}.log", log(n + 2), n + 2));
        line(format!("2 900 a {} 2 10000", 2 * n + 2));
        line(format!("2 10 s {} 1 0", 2 * n + 2));
        line("2 10 a 0 1 90".to_owned());
        line("2 10 s 0 1 0".to_owned());
    }
    line(format!("1 4000 a {} 4 3700", log(5)));
    recording += "end\n";
    let (host, asked) = played(&recording, true);
    let flushed: Vec<Time> = (asked.iter())
        .filter_map(|&(at, _, request)| (request.op == Op::Flush).then_some(at))
        .collect();
    let written: Vec<Time> = (asked.iter())
        .filter_map(|&(at, _, request)| (request.class == crate::Class::Wal).then_some(at))
        .collect();
    assert_eq!((flushed.len(), written.len()), (4, 6));
    for (flush, &at) in flushed.iter().enumerate() {
        let end = at + Span::from_us(50);
        assert!(written[flush + 1] < end, "one memtable is filled while another is flushed");
        assert!(written[flush + 2] > end, "and no other: {flush}");
    }
    assert!(host.figures(Time::from_ns(1)).0.stalled > Span::from_us(150));
}

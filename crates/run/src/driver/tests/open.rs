//! Traces: arrivals, bounds, order, loops, and what does not fit.

use std::convert::Infallible;
use std::io;

use leyden_device::{Lba, Op};
use leyden_sim::{Ratio, Span, Time};
use leyden_workload::{Class, Request};

use super::mock::{CAPACITY_SECTORS, Mock, Seen};
use crate::driver::{BeyondEnd, DriveError, Measured, Options, Pace, Replay, Unchecked, replay};

fn at(us: u64, lba: u64, sectors: u32) -> Request {
    Request {
        at: Time::from_ns(us * 1_000),
        op: Op::Write,
        lba: Lba(lba),
        sectors,
        fua: false,
        class: Class::Unknown,
    }
}

fn try_trace(
    mock: &mut Mock,
    requests: &[Request],
    config: &Replay,
) -> Result<Measured, DriveError> {
    let open = || Ok::<_, Infallible>(requests.iter().map(|request| Ok::<_, Infallible>(*request)));
    replay(mock, open, config, &mut Unchecked, &mut Mock::stats, Options::default())
}

fn trace(mock: &mut Mock, requests: &[Request], config: &Replay) -> Measured {
    try_trace(mock, requests, config).unwrap()
}

fn submitted_us(mock: &Mock) -> Vec<u64> {
    mock.submissions().iter().map(|(time, _)| time.as_ns() / 1_000).collect()
}

fn by_time(speed: Ratio, max_outstanding: u32) -> Replay {
    Replay { pace: Pace::Timestamps { speed, max_outstanding }, ..Replay::default() }
}

#[test]
fn arrivals_are_respected_at_any_speed() {
    let requests = [at(0, 0, 8), at(3, 8, 8), at(3, 16, 8), at(100, 24, 8)];
    for (percent, expected) in [(100, [0, 3, 3, 100]), (50, [0, 6, 6, 200]), (300, [0, 1, 1, 33])] {
        let mut mock = Mock::new(Span::from_us(10), 10);
        let config = by_time(Ratio::from_percent(percent), 100);
        let measured = trace(&mut mock, &requests, &config);
        assert_eq!(submitted_us(&mock), expected);
        assert_eq!(measured.traffic.writes.max_ns(), 10_000);
        assert!(measured.warnings.is_empty());
    }
}

#[test]
fn a_bound_delays_arrivals_and_latency_counts_from_them() {
    let requests: Vec<_> = (0..5).map(|n| at(n, n * 8, 8)).collect();
    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &by_time(Ratio::ONE, 2));
    assert_eq!(submitted_us(&mock), [0, 1, 10, 11, 20]);
    assert_eq!(mock.deepest, 2);
    assert_eq!(measured.traffic.writes.max_ns(), 26_000, "arrived at 4 us, done at 30 us");
    assert!(measured.warnings[0].starts_with("3 of 5 requests arrived while 2"));
}

#[test]
fn requests_stamped_backwards_follow_their_predecessors() {
    let requests = [at(5, 0, 8), at(2, 8, 8), at(6, 16, 8)];
    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &Replay::default());
    assert_eq!(submitted_us(&mock), [5, 5, 6]);
    assert!(measured.warnings[0].starts_with("1 requests were stamped earlier"));
}

#[test]
fn loops_shift_time_and_start_over() {
    let requests = [at(0, 0, 8), at(30, 8, 8)];
    let mut mock = Mock::new(Span::from_us(10), 10);
    let config = Replay { loops: 3, ..Replay::default() };
    let measured = trace(&mut mock, &requests, &config);
    assert_eq!(submitted_us(&mock), [0, 30, 30, 60, 60, 90]);
    assert_eq!(measured.traffic.writes.count(), 6);
}

#[test]
fn an_empty_trace_is_refused() {
    let replayed = try_trace(&mut Mock::new(Span::from_us(10), 1), &[], &Replay::default());
    assert!(matches!(replayed, Err(DriveError::NothingToReplay)));
}

#[test]
fn by_depth_ignores_timestamps() {
    let requests: Vec<_> = (0..6).map(|n| at(n * 1_000, n * 8, 8)).collect();
    let mut mock = Mock::new(Span::from_us(10), 10);
    let config = Replay { pace: Pace::QueueDepth(2), ..Replay::default() };
    let measured = trace(&mut mock, &requests, &config);
    assert_eq!(submitted_us(&mock), [0, 0, 10, 10, 20, 20]);
    assert_eq!(mock.deepest, 2);
    assert_eq!(measured.traffic.writes.count(), 6);
}

#[test]
fn barriers_wait_and_are_waited_for() {
    let flush = Request { op: Op::Flush, ..at(0, 0, 0) };
    let fua = Request { fua: true, ..at(0, 64, 8) };
    let write = |n: u64| at(0, n * 8, 8);
    let requests = [write(0), write(1), flush, write(2), write(3), fua, fua, write(4)];
    let config = |barriers| Replay { pace: Pace::QueueDepth(4), barriers, ..Replay::default() };
    let mut mock = Mock::new(Span::from_us(10), 10);
    trace(&mut mock, &requests, &config(true));
    assert_eq!(submitted_us(&mock), [0, 0, 10, 20, 20, 30, 40, 50]);
    let mut mock = Mock::new(Span::from_us(10), 10);
    trace(&mut mock, &requests, &config(false));
    assert_eq!(submitted_us(&mock), [0, 0, 0, 0, 10, 10, 10, 10]);
}

fn hint(us: u64, lba: u64, sectors: u32) -> Request {
    Request { op: Op::WritePrepare, class: Class::Data, ..at(us, lba, sectors) }
}

/// Submitted and announced requests: time in us, kind, and the first sector or unit.
fn order(mock: &Mock) -> Vec<(u64, char, u64)> {
    let order = mock.seen.iter().filter_map(|seen| match *seen {
        Seen::Submitted(time, _, lba) => Some((time.as_ns() / 1_000, 'w', lba)),
        Seen::Announced(time, first, _) => Some((time.as_ns() / 1_000, 'h', u64::from(first))),
        Seen::Completed(..) => None,
    });
    order.collect()
}

#[test]
fn hints_keep_their_place_and_take_no_room() {
    let requests = [
        at(0, 0, 8),
        hint(1, 16, 8),
        at(1, 8, 8),
        hint(2, 24, 8),
        hint(2, 8 * 300, 8 * 300),
        at(3, 16, 8),
        hint(90, 0, 8),
    ];
    let closed = Replay { pace: Pace::QueueDepth(1), ..Replay::default() };
    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &closed);
    let expected = [
        (0, 'w', 0),
        (10, 'h', 2),
        (10, 'w', 8),
        (20, 'h', 3),
        (20, 'h', 300),
        (20, 'h', 555), // 255 units fit into one hint
        (20, 'w', 16),
        (30, 'h', 0),
    ];
    assert_eq!(order(&mock), expected);
    assert_eq!(mock.deepest, 1);
    assert_eq!((measured.hints, measured.completions()), (4, 3));
    assert_eq!(measured.end, Time::from_ns(30_000), "nobody waits for a hint");

    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &by_time(Ratio::ONE, 1));
    // The write of 1 us waits for the one before, and all that follows it in the trace with it.
    let expected = [
        (0, 'w', 0),
        (1, 'h', 2),
        (10, 'w', 8),
        (10, 'h', 3),
        (10, 'h', 300),
        (10, 'h', 555),
        (20, 'w', 16),
        (90, 'h', 0),
    ];
    assert_eq!(order(&mock), expected);
    assert_eq!((measured.hints, measured.completions()), (4, 3));
    assert!(measured.warnings[0].starts_with("2 of 3 requests arrived"), "{:?}", measured.warnings);
}

#[test]
fn hints_change_nothing_of_what_is_measured() {
    let writes: Vec<_> = (0..200).map(|n| at(n * 3, n * 8, 8)).collect();
    let hinted: Vec<_> =
        writes.iter().flat_map(|&w| [hint(w.at.as_ns() / 1_000, 8, 8), w]).collect();
    for pace in [Pace::QueueDepth(4), Pace::RECORDED] {
        let config = Replay { pace, loops: 2, ..Replay::default() };
        let run =
            |requests: &[Request]| trace(&mut Mock::new(Span::from_us(10), 3), requests, &config);
        let (without, with) = (run(&writes), run(&hinted));
        assert_eq!(with.digest.value(), without.digest.value());
        assert_eq!((with.end, with.hints), (without.end, 400));
    }
}

#[test]
fn hints_follow_their_writes_beyond_the_end() {
    let end = CAPACITY_SECTORS;
    let requests = [at(0, 0, 8), hint(0, end + 16, 8), hint(0, end - 8, 16)];
    for (beyond_end, hints) in [
        (BeyondEnd::Error, vec![end / 8 + 2, end / 8 - 1]),
        (BeyondEnd::Wrap, vec![2, end / 8 - 1]),
        (BeyondEnd::Clip, vec![end / 8 - 1]),
    ] {
        let mut mock = Mock::new(Span::from_us(10), 10);
        let measured = trace(&mut mock, &requests, &Replay { beyond_end, ..Replay::default() });
        let seen: Vec<u64> =
            order(&mock).iter().filter(|(_, kind, _)| *kind == 'h').map(|(_, _, at)| *at).collect();
        assert_eq!(seen, hints);
        assert!(measured.warnings.is_empty(), "{:?}", measured.warnings);
    }
    let only = try_trace(&mut Mock::new(Span::from_us(10), 1), &requests[1..], &Replay::default());
    assert!(matches!(only, Err(DriveError::NothingToReplay)));
}

#[test]
fn requests_beyond_the_end_are_refused_wrapped_or_clipped() {
    let end = CAPACITY_SECTORS;
    let requests = [at(0, 0, 8), at(0, end - 4, 8), at(0, end + 16, 8)];
    let config = |beyond_end| Replay { beyond_end, ..Replay::default() };

    let mut mock = Mock::new(Span::from_us(10), 10);
    let error = try_trace(&mut mock, &requests, &config(BeyondEnd::Error)).unwrap_err();
    assert!(matches!(error, DriveError::BeyondEnd { number: 2, .. }), "{error}");
    assert!(error.to_string().contains("wrap"), "names the remedy: {error}");

    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &config(BeyondEnd::Wrap));
    assert_eq!(measured.traffic.bytes_written, (8 + 4 + 8) * 512);
    assert!(measured.warnings[0].starts_with("2 of 3 requests ended beyond"));

    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, &config(BeyondEnd::Clip));
    assert_eq!(measured.traffic.bytes_written, (8 + 4) * 512);
    assert_eq!(measured.traffic.writes.count(), 2);
    assert!(measured.warnings[0].contains("1 of them left out"));
}

#[test]
fn a_trace_that_cannot_be_read_names_the_request() {
    let run = |open: &mut dyn FnMut() -> io::Result<std::vec::IntoIter<io::Result<Request>>>| {
        let mut mock = Mock::new(Span::from_us(10), 10);
        let stats = &mut Mock::stats;
        replay(&mut mock, open, &Replay::default(), &mut Unchecked, stats, Options::default())
            .unwrap_err()
    };
    let torn = || io::Error::other("torn");
    let error = run(&mut || Ok(vec![Ok(at(0, 0, 8)), Err(torn())].into_iter()));
    assert!(matches!(error, DriveError::Trace { number: 2, .. }), "{error}");
    let error = run(&mut || Err(torn()));
    assert!(matches!(error, DriveError::Open(_)), "{error}");
}

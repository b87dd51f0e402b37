//! Traces: arrivals, bounds, order, loops, and what does not fit.

use std::convert::Infallible;
use std::io;

use leyden_device::{Lba, Op};
use leyden_sim::{Ratio, Span, Time};
use leyden_workload::{Class, Request};

use super::mock::{CAPACITY_SECTORS, Mock};
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
    config: Replay,
) -> Result<Measured, DriveError> {
    let open = || Ok::<_, Infallible>(requests.iter().map(|request| Ok::<_, Infallible>(*request)));
    replay(mock, open, &config, &mut Unchecked, &mut Mock::stats, Options::default())
}

fn trace(mock: &mut Mock, requests: &[Request], config: Replay) -> Measured {
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
        let measured = trace(&mut mock, &requests, config);
        assert_eq!(submitted_us(&mock), expected);
        assert_eq!(measured.writes.max_ns(), 10_000);
        assert!(measured.warnings.is_empty());
    }
}

#[test]
fn a_bound_delays_arrivals_and_latency_counts_from_them() {
    let requests: Vec<_> = (0..5).map(|n| at(n, n * 8, 8)).collect();
    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, by_time(Ratio::ONE, 2));
    assert_eq!(submitted_us(&mock), [0, 1, 10, 11, 20]);
    assert_eq!(mock.deepest, 2);
    assert_eq!(measured.writes.max_ns(), 26_000, "arrived at 4 us, done at 30 us");
    assert!(measured.warnings[0].starts_with("3 of 5 requests arrived while 2"));
}

#[test]
fn requests_stamped_backwards_follow_their_predecessors() {
    let requests = [at(5, 0, 8), at(2, 8, 8), at(6, 16, 8)];
    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, Replay::default());
    assert_eq!(submitted_us(&mock), [5, 5, 6]);
    assert!(measured.warnings[0].starts_with("1 requests were stamped earlier"));
}

#[test]
fn loops_shift_time_and_start_over() {
    let requests = [at(0, 0, 8), at(30, 8, 8)];
    let mut mock = Mock::new(Span::from_us(10), 10);
    let config = Replay { loops: 3, ..Replay::default() };
    let measured = trace(&mut mock, &requests, config);
    assert_eq!(submitted_us(&mock), [0, 30, 30, 60, 60, 90]);
    assert_eq!(measured.writes.count(), 6);
}

#[test]
fn an_empty_trace_is_refused() {
    let replayed = try_trace(&mut Mock::new(Span::from_us(10), 1), &[], Replay::default());
    assert!(matches!(replayed, Err(DriveError::NothingToReplay)));
}

#[test]
fn by_depth_ignores_timestamps() {
    let requests: Vec<_> = (0..6).map(|n| at(n * 1_000, n * 8, 8)).collect();
    let mut mock = Mock::new(Span::from_us(10), 10);
    let config = Replay { pace: Pace::QueueDepth(2), ..Replay::default() };
    let measured = trace(&mut mock, &requests, config);
    assert_eq!(submitted_us(&mock), [0, 0, 10, 10, 20, 20]);
    assert_eq!(mock.deepest, 2);
    assert_eq!(measured.writes.count(), 6);
}

#[test]
fn requests_beyond_the_end_are_refused_wrapped_or_clipped() {
    let end = CAPACITY_SECTORS;
    let requests = [at(0, 0, 8), at(0, end - 4, 8), at(0, end + 16, 8)];
    let config = |beyond_end| Replay { beyond_end, ..Replay::default() };

    let mut mock = Mock::new(Span::from_us(10), 10);
    let error = try_trace(&mut mock, &requests, config(BeyondEnd::Error)).unwrap_err();
    assert!(matches!(error, DriveError::BeyondEnd { number: 2, .. }), "{error}");
    assert!(error.to_string().contains("wrap"), "names the remedy: {error}");

    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, config(BeyondEnd::Wrap));
    assert_eq!(measured.bytes_written, (8 + 4 + 8) * 512);
    assert!(measured.warnings[0].starts_with("2 of 3 requests ended beyond"));

    let mut mock = Mock::new(Span::from_us(10), 10);
    let measured = trace(&mut mock, &requests, config(BeyondEnd::Clip));
    assert_eq!(measured.bytes_written, (8 + 4) * 512);
    assert_eq!(measured.writes.count(), 2);
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

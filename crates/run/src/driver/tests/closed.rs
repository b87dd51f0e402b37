//! Closed loop: queue depths, barriers, rests, rates, limits.

use leyden_device::Op;
use leyden_sim::{Bytes, BytesPerSec, Ratio, Span, Time};
use leyden_workload::synth::JobConfig;

use super::mock::{Mock, Seen};
use super::{DriveError, Options, UNIT_BYTES, run, try_run, writes};

const US: u64 = 1_000;

#[test]
fn latency_and_rate_are_the_devices() {
    let mut mock = Mock::new(Span::from_us(10), 4);
    let config = JobConfig { queue_depth: 8, ..writes(400) };
    let measured = run(&mut mock, &[config], Options::default());
    // Four at once take 10 us; a request waits for one batch and is served in the next, but for
    // the first four.
    assert_eq!(measured.end, Time::from_ns(1_000 * US));
    assert_eq!(measured.traffic.writes.count(), 400);
    assert_eq!(measured.traffic.writes.max_ns(), 20 * US);
    let mean_us = (4.0 * 10.0 + 396.0 * 20.0) / 400.0;
    assert!((measured.traffic.writes.mean_ns() / 1e3 - mean_us).abs() < 1e-9);
    assert_eq!(measured.traffic.bytes_written, 400 * UNIT_BYTES);
    assert_eq!(measured.completions(), 400);
    assert_eq!(mock.deepest, 8);
}

#[test]
fn queues_never_exceed_their_depth_and_are_kept_full() {
    let mut mock = Mock::new(Span::from_us(10), 100);
    let first = JobConfig { threads: 3, queue_depth: 4, ..writes(1_000) };
    let second = JobConfig { queue_depth: 5, ..writes(2_000) };
    let measured = run(&mut mock, &[first, second], Options::default());
    assert_eq!(mock.deepest, 3 * 4 + 5);
    assert_eq!(measured.traffic.writes.count(), 3_000);
}

#[test]
fn a_flush_waits_for_the_threads_writes_and_holds_up_the_next() {
    let mut mock = Mock::new(Span::from_us(10), 100);
    let config = JobConfig { queue_depth: 4, fsync_every: 6, ..writes(24) };
    let measured = run(&mut mock, &[config], Options::default());
    assert_eq!(measured.traffic.flushes.count(), 4);
    let (mut outstanding, mut since_flush) = (0, 0);
    for seen in &mock.seen {
        match seen {
            Seen::Submitted(_, Op::Flush, _) => {
                assert_eq!((outstanding, since_flush), (0, 6));
                (outstanding, since_flush) = (100, 0);
            }
            Seen::Completed(_, Op::Flush, _) => outstanding = 0,
            Seen::Submitted(..) => {
                assert!(outstanding < 4, "during a flush, or too deep");
                outstanding += 1;
                since_flush += 1;
            }
            Seen::Completed(..) => outstanding -= 1,
            Seen::Announced(..) => {}
        }
    }
}

#[test]
fn threads_rest_after_their_requests_completed() {
    let mut mock = Mock::new(Span::from_us(10), 100);
    let config =
        JobConfig { queue_depth: 2, think_every: 3, think_time: Span::from_us(50), ..writes(9) };
    run(&mut mock, &[config], Options::default());
    let submitted: Vec<u64> =
        mock.submissions().iter().map(|(time, _)| time.as_ns() / US).collect();
    // Two at once, the third when one is done, rest from 20 us to 70 us.
    assert_eq!(submitted, [0, 0, 10, 70, 70, 80, 140, 140, 150]);
}

#[test]
fn rests_and_flushes_go_together() {
    let mut mock = Mock::new(Span::from_us(10), 100);
    let config =
        JobConfig { fsync_every: 2, think_every: 2, think_time: Span::from_us(100), ..writes(4) };
    let measured = run(&mut mock, &[config], Options::default());
    assert_eq!(measured.end, Time::from_ns(160 * US), "no rest at the end");
    let submitted: Vec<_> =
        mock.submissions().iter().map(|(time, op)| (time.as_ns() / US, *op)).collect();
    let (write, flush) = (Op::Write, Op::Flush);
    assert_eq!(
        submitted,
        [(0, write), (10, write), (20, flush), (130, write), (140, write), (150, flush)]
    );
}

#[test]
fn rates_are_kept_exactly() {
    let mut mock = Mock::new(Span::from_us(10), 100);
    let by_count =
        JobConfig { threads: 7, queue_depth: 3, iops_limit: Some(30_000), ..writes(3_001) };
    run(&mut mock, std::slice::from_ref(&by_count), Options::default());
    let submitted = mock.submissions();
    // Request n is due at n / rate.
    for (n, (time, _)) in (0_u64..).zip(&submitted) {
        assert_eq!(time.as_ns(), n * 1_000_000_000 / 30_000);
    }
    let mut mock = Mock::new(Span::from_us(10), 100);
    let by_bytes =
        JobConfig { iops_limit: None, rate_limit: Some(BytesPerSec::new(4_096_000)), ..by_count };
    run(&mut mock, &[by_bytes], Options::default());
    let last = mock.submissions()[3_000].0;
    assert_eq!(last, Time::from_ns(3_000 * 1_000 * US));
}

#[test]
fn threads_that_fell_behind_a_rate_catch_up() {
    let mut mock = Mock::new(Span::from_us(10), 1);
    let config = JobConfig {
        iops_limit: Some(50_000),
        think_every: 100,
        think_time: Span::from_ms(1),
        ..writes(1_000)
    };
    let measured = run(&mut mock, &[config], Options::default());
    // Nine rests of 1 ms; at 10 us instead of 20 us each, the hundred requests in between make up
    // for all of them, and the last, due at 19,980 us, is in time.
    assert_eq!(measured.end, Time::from_ns(19_990 * US));
}

#[test]
fn jobs_stop_at_whichever_limit_comes_first() {
    let limits = [
        JobConfig { requests: Some(17), ..JobConfig::default() },
        JobConfig { bytes: Some(Bytes::new(17 * UNIT_BYTES - 5)), ..JobConfig::default() },
        // The 17th starts at 160 us.
        JobConfig { time: Some(Span::from_ns(160_001)), ..JobConfig::default() },
    ];
    for config in limits {
        let mut mock = Mock::new(Span::from_us(10), 1);
        let others = JobConfig {
            requests: config.requests.or(Some(1_000)),
            bytes: config.bytes.or(Some(Bytes::new(1 << 24))),
            time: config.time.or(Some(Span::from_ms(10))),
            ..config.clone()
        };
        let measured = run(&mut mock, &[others], Options::default());
        assert_eq!(measured.traffic.writes.count(), 17, "{config:?}");
    }
}

#[test]
fn a_time_limit_cuts_waits_short() {
    let mut mock = Mock::new(Span::from_us(10), 1);
    let config = JobConfig {
        iops_limit: Some(1),
        threads: 5,
        time: Some(Span::from_ms(500)),
        ..JobConfig::default()
    };
    let measured = run(&mut mock, &[config], Options::default());
    assert_eq!(measured.traffic.writes.count(), 1);
    assert_eq!(measured.end, Time::from_ns(500_000 * US));
}

#[test]
fn jobs_start_when_told_counted_from_the_workloads_start() {
    let mut mock = Mock::new(Span::from_us(10), 1);
    let config = JobConfig { start_delay: Span::from_us(30), ..writes(1) };
    let options = Options { start: Time::from_ns(500 * US), ..Options::default() };
    let measured = run(&mut mock, &[config], options);
    assert_eq!(mock.submissions(), [(Time::from_ns(530 * US), Op::Write)]);
    assert_eq!(measured.elapsed(), Span::from_us(40));
}

#[test]
fn the_same_seed_gives_the_same_digest() {
    let digest = |depth| {
        let mut mock = Mock::new(Span::from_us(10), 3);
        let config = JobConfig {
            queue_depth: depth,
            threads: 2,
            read_share: Ratio::from_percent(30),
            ..writes(500)
        };
        run(&mut mock, &[config], Options::default()).digest
    };
    assert_eq!(digest(8), digest(8));
    assert_ne!(digest(8), digest(7));
}

#[test]
fn a_stuck_device_is_reported() {
    let mut mock = Mock::new(Span::from_us(10), 1);
    mock.broken = true;
    let error = try_run(&mut mock, &[writes(5)], Options::default()).unwrap_err();
    assert!(matches!(error, DriveError::Stuck { in_flight: 1, .. }), "{error}");
}

#[test]
fn failures_are_counted_apart_and_warned_of() {
    let mut mock = Mock::new(Span::from_us(10), 1);
    mock.failing_from = 0;
    let measured = run(&mut mock, &[writes(5)], Options::default());
    assert_eq!(
        (measured.failed.commands, measured.traffic.writes.count(), measured.traffic.bytes_written),
        (5, 0, 0)
    );
    assert!(measured.warnings[0].contains("5 commands failed"), "{:?}", measured.warnings);
}

//! Ramp, intervals, cancellation, progress.

use std::sync::atomic::{AtomicBool, Ordering};

use leyden_sim::{Ratio, Span, Time};
use leyden_workload::synth::JobConfig;

use super::mock::Mock;
use super::{Options, UNIT_BYTES, run, writes};
use crate::driver::series::{
    FIRST_INTERVAL, Interval, Intervals, MAX_INTERVALS, Outstanding, Snapshot,
};
use crate::driver::{Measured, Ramp};

fn totals(measured: &Measured) -> (u64, u64, u64, u64) {
    let hosts = measured.series.closed.iter().map(|closed| &closed.host);
    hosts.fold((0, 0, 0, 0), |sum, host| {
        (
            sum.0 + host.reads.count,
            sum.1 + host.writes.count,
            sum.2 + host.reads.bytes + host.writes.bytes,
            sum.3.max(host.writes.latency_max_ns),
        )
    })
}

#[test]
fn the_series_sums_to_the_totals_whatever_the_length() {
    for requests in [1, 10, 11, 9_999, 300_000] {
        let mut mock = Mock::new(Span::from_us(10), 2);
        let config =
            JobConfig { fsync_every: 5, read_share: Ratio::from_percent(40), ..writes(requests) };
        let measured = run(&mut mock, &[config], Options::default());
        let (reads, writes, bytes, max_ns) = totals(&measured);
        assert_eq!(reads, measured.traffic.reads.count());
        assert_eq!(writes, measured.traffic.writes.count());
        assert_eq!(bytes, measured.traffic.bytes_read + measured.traffic.bytes_written);
        assert_eq!(max_ns, measured.traffic.writes.max_ns());
        // Little's law, exact once everything has completed.
        let hosts = || measured.series.closed.iter().map(|closed| &closed.host);
        let outstanding: u64 = hosts().map(|host| host.outstanding_ns).sum();
        let latencies = hosts().map(|host| {
            let kinds = [&host.reads, &host.writes, &host.flushes];
            kinds.map(|kind| kind.latency_sum_ns).iter().sum::<u64>()
        });
        assert_eq!(outstanding, latencies.sum::<u64>());
        let flushes = || hosts().map(|host| &host.flushes);
        let of = &measured.traffic.flushes;
        assert_eq!(flushes().map(|flushes| flushes.count).sum::<u64>(), of.count());
        assert_eq!(flushes().map(|flushes| flushes.latency_max_ns).max(), Some(of.max_ns()));
        assert!(of.count() > 0 || requests < 100);
        let closed = &measured.series.closed;
        assert!(closed.len() <= MAX_INTERVALS);
        assert_eq!(closed.last().map(|closed| closed.end), Some(measured.end));
        assert_eq!(
            closed.last().map(|closed| closed.device.programs),
            Some(measured.after.ftl.programs)
        );
        let length = measured.series.length;
        for (n, interval) in (1..).zip(&closed[..closed.len() - 1]) {
            assert_eq!(interval.end, Time::ZERO + length.saturating_mul(n));
        }
    }
}

/// Intervals in which the n-th saw n reads: after any number of doublings each still sees exactly
/// those of its own time.
#[test]
fn doubling_is_exact() {
    let mut intervals = Intervals::new(Time::ZERO, Snapshot::default(), Outstanding::default());
    let rounds = 5 * MAX_INTERVALS as u64 + 77;
    let mut n = 0;
    while n < rounds {
        let ends = intervals.next_end();
        let per_interval = intervals.length.as_ns() / FIRST_INTERVAL.as_ns();
        for _ in 0..per_interval {
            n += 1;
            for _ in 0..n {
                intervals.reads.record(1, n);
            }
        }
        assert_eq!(ends, Time::ZERO + FIRST_INTERVAL.saturating_mul(n));
        let mut device = Snapshot::default();
        device.programs.user = n;
        intervals.close(device);
    }
    assert_eq!(intervals.length, FIRST_INTERVAL.saturating_mul(8));
    let mut first = 0;
    for closed in &intervals.closed {
        let last = closed.end.as_ns() / FIRST_INTERVAL.as_ns();
        let sum: u64 = (first + 1..=last).sum();
        assert_eq!(closed.host.reads.count, sum);
        assert_eq!(closed.host.reads.latency_max_ns, last);
        let median = closed.host.reads.latencies.percentile_ns(50);
        assert!((first + 1..=last + last / 16).contains(&median), "{first} {median} {last}");
        assert_eq!(closed.device.programs.user, last);
        first = last;
    }
    intervals.close(Snapshot::default());
    assert_eq!(intervals.closed.last().unwrap().host, Interval::default(), "nothing is left over");
}

#[test]
fn observing_changes_nothing() {
    let digest = |ramp| {
        let mut mock = Mock::new(Span::from_us(7), 3);
        let config = JobConfig { queue_depth: 5, ..writes(5_000) };
        run(&mut mock, &[config], Options { ramp, ..Options::default() }).digest
    };
    let ramp = Ramp { time: Span::from_ns(123_457), ..Ramp::default() };
    assert_eq!(digest(Ramp::default()), digest(ramp));
}

#[test]
fn a_ramp_is_left_out() {
    // One request every 10 us.
    let measure = |time_us, requests| {
        let mut mock = Mock::new(Span::from_us(10), 1);
        let ramp = Ramp { time: Span::from_us(time_us), requests, settle: None };
        run(&mut mock, &[writes(100)], Options { ramp, ..Options::default() })
    };
    for (time_us, requests, counted, start_us) in
        [(95, 0, 91, 95), (0, 30, 70, 300), (95, 30, 70, 300), (505, 30, 50, 505)]
    {
        let measured = measure(time_us, requests);
        assert_eq!(
            measured.traffic.writes.count(),
            counted,
            "{time_us} us and {requests} requests"
        );
        assert_eq!(measured.start, Time::from_ns(start_us * 1_000));
        assert_eq!(measured.end, Time::from_ns(1_000_000));
        assert_eq!(measured.traffic.bytes_written, counted * UNIT_BYTES);
        assert_eq!(totals(&measured).1, counted);
    }
    let measured = measure(2_000, 0);
    assert_eq!(measured.completions(), 0);
    assert!(measured.warnings[0].contains("within its ramp"));
}

#[test]
fn cancelling_keeps_what_was_measured() {
    let flag = AtomicBool::new(true);
    let mut mock = Mock::new(Span::from_us(10), 1);
    let options = Options { cancel: Some(&flag), ..Options::default() };
    let measured = run(&mut mock, &[writes(1_000_000)], options);
    assert!(measured.interrupted);
    assert!((1..10_000).contains(&measured.traffic.writes.count()));
    assert_eq!(totals(&measured).1, measured.traffic.writes.count());
    flag.store(false, Ordering::Relaxed);
    let mut mock = Mock::new(Span::from_us(10), 1);
    let options = Options { cancel: Some(&flag), ..Options::default() };
    assert!(!run(&mut mock, &[writes(10_000)], options).interrupted);
}

#[test]
fn progress_rises_to_one() {
    let mut fractions = Vec::new();
    let mut progress = |fraction| fractions.push(fraction);
    let options = Options { progress: Some(&mut progress), ..Options::default() };
    run(&mut Mock::new(Span::from_us(10), 1), &[writes(200_000)], options);
    assert!(fractions.len() > 3, "{fractions:?}");
    assert!(fractions.is_sorted(), "{fractions:?}");
    assert_eq!(fractions.last(), Some(&1.0));
}

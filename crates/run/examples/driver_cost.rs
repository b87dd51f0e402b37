//! The driver's cost per I/O, generation and measurement included, over a device that does nothing:
//! nanoseconds, the best of five rounds.
//!
//! `cargo run --release -p leyden-run --example driver_cost`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement of wall time, for people"
)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, NoData, Op, Output, Stats, Status,
};
use leyden_run::driver::{Measured, Options, Pace, Replay, Unchecked, replay, run_jobs};
use leyden_sim::{Ratio, Span, Time};
use leyden_workload::Request;
use leyden_workload::synth::{Distribution, JobConfig, Zipf};

const REQUESTS: u64 = 2_000_000;
const CAPACITY_SECTORS: u64 = 1 << 31;
const LATENCY: Span = Span::from_us(10);

/// Completes everything after a fixed latency.
#[derive(Default)]
struct Null {
    under_way: VecDeque<(Time, Completion<NoData>)>,
    commands: u64,
}

impl BlockDevice<NoData> for Null {
    #[inline]
    fn submit(&mut self, now: Time, command: Command<NoData>) -> CommandId {
        let id = CommandId(self.commands);
        self.commands += 1;
        let time = now + LATENCY;
        let completion = Completion {
            id,
            op: command.op(),
            tag: command.tag,
            submitted: now,
            time,
            status: Status::Success,
            output: Output::None,
        };
        self.under_way.push_back((time, completion));
        id
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.under_way.front().map(|(time, _)| *time)
    }

    #[inline]
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<NoData>>) {
        while self.next_event().is_some_and(|time| time <= now) {
            completions.extend(self.under_way.pop_front().map(|(_, completion)| completion));
        }
    }

    fn capacity_sectors(&self) -> u64 {
        CAPACITY_SECTORS
    }
}

fn main() {
    let base = JobConfig {
        read_share: Ratio::from_percent(50),
        requests: Some(REQUESTS),
        ..JobConfig::default()
    };
    let job = |threads, queue_depth| JobConfig { threads, queue_depth, ..base.clone() };
    let zipf = JobConfig {
        distribution: Distribution::Zipf(Zipf { theta: 0.99, scatter: true }),
        ..job(4, 32)
    };
    let limited = JobConfig { iops_limit: Some(1_000_000), ..job(4, 32) };
    for (name, config) in [
        ("uniform, 1 x 1", job(1, 1)),
        ("uniform, 1 x 32", job(1, 32)),
        ("uniform, 16 x 64", job(16, 64)),
        ("zipf 0.99, 4 x 32", zipf),
        ("uniform, 4 x 32, 1M IOPS", limited),
    ] {
        report(name, || run(&config));
    }
    let by_depth = Replay { pace: Pace::QueueDepth(32), ..Replay::default() };
    report("trace by depth 32", || run_trace(&by_depth));
    report("trace by timestamp", || run_trace(&Replay::default()));
}

fn report(name: &str, run: impl Fn() -> Measured) {
    let round = |_| {
        let start = Instant::now();
        let measured = run();
        start.elapsed().as_secs_f64() * 1e9 / measured.completions() as f64
    };
    let best = (0..5).map(round).fold(f64::INFINITY, f64::min);
    println!("{name:30} {best:6.1} ns");
}

fn run(config: &JobConfig) -> Measured {
    let job = config.build(1, 0, CAPACITY_SECTORS);
    let job = job.unwrap_or_else(|error| panic!("{error}"));
    run_jobs(
        &mut Null::default(),
        vec![job],
        &mut Unchecked,
        &mut |_: &Null| Stats::default(),
        Options::default(),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn run_trace(config: &Replay) -> Measured {
    let open = || {
        Ok::<_, Infallible>((0..REQUESTS).map(|n| {
            Ok::<_, Infallible>(Request {
                at: Time::from_ns(n * 300),
                op: Op::Write,
                lba: leyden_device::Lba(n * 8 % CAPACITY_SECTORS),
                sectors: 8,
                fua: false,
                class: leyden_workload::Class::Unknown,
            })
        }))
    };
    replay(
        &mut Null::default(),
        open,
        config,
        &mut Unchecked,
        &mut |_: &Null| Stats::default(),
        Options::default(),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

//! The cost of a synthetic request, by distribution: nanoseconds each, the best of five rounds.
//!
//! `cargo run --release -p leyden-workload --example synth_cost`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement of wall time, for people"
)]

use std::hint::black_box;
use std::time::Instant;

use leyden_sim::Ratio;
use leyden_workload::synth::{Distribution, JobConfig, Pattern, SelfSimilar, Zipf};

const REQUESTS: u32 = 2_000_000;
/// 1 TiB.
const CAPACITY_SECTORS: u64 = 1 << 31;

fn main() {
    let random = |distribution| JobConfig { distribution, ..JobConfig::default() };
    let zipf = |theta, scatter| random(Distribution::Zipf(Zipf { theta, scatter }));
    let jobs = [
        ("uniform writes", random(Distribution::Uniform)),
        (
            "uniform, half reads",
            JobConfig { read_share: Ratio::from_percent(50), ..JobConfig::default() },
        ),
        ("zipf 0.99, scattered", zipf(0.99, true)),
        ("zipf 0.99", zipf(0.99, false)),
        ("zipf 1.2, scattered", zipf(1.2, true)),
        ("zipf 0.5, scattered", zipf(0.5, true)),
        (
            "self-similar 20 %, scattered",
            random(Distribution::SelfSimilar(SelfSimilar {
                h: Ratio::from_percent(20),
                scatter: true,
            })),
        ),
        ("jesd219", JobConfig { pattern: Pattern::Jesd219, ..JobConfig::default() }),
        ("sequential", JobConfig { pattern: Pattern::Sequential, ..JobConfig::default() }),
    ];
    for (name, config) in jobs {
        println!("{name:30} {:6.1} ns", cost_ns(&config));
    }
}

fn cost_ns(config: &JobConfig) -> f64 {
    let config = JobConfig { requests: Some(1), ..config.clone() };
    let mut job = match config.build(1, 0, CAPACITY_SECTORS) {
        Ok(job) => job,
        Err(error) => panic!("{error}"),
    };
    let round = |_| {
        let start = Instant::now();
        for _ in 0..REQUESTS {
            black_box(job.next_request(0));
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS)
    };
    (0..5).map(round).fold(f64::INFINITY, f64::min)
}

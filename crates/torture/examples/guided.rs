//! Do guided seeds find planted bugs sooner than blind ones? For each bug, the seeds that it takes from three starts.
//!
//! `cargo run --release --workspace --features leyden-torture/canary --example guided [SEEDS]`

use leyden_sim::canary::{Canary, plant};
use leyden_torture::{Guide, Options, run};

/// Where the searches begin.
const STARTS: [u64; 3] = [100_000, 200_000, 300_000];

/// How many seeds from `start` on it takes to find what is planted; `most` if it is not found.
fn needed(start: u64, most: u64, draw: impl Fn(u64) -> Options) -> u64 {
    let found = (0..most).find(|at| run(&draw(start + at)).failure.is_some());
    found.map_or(most, |at| at + 1)
}

fn median(mut counts: [u64; 3]) -> u64 {
    counts.sort_unstable();
    counts[1]
}

#[expect(clippy::print_stdout, reason = "prints what it has found")]
fn main() {
    let most = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let guide = Guide::new(|options| run(options).coverage);
    let (mut sooner, mut later) = (0, 0);
    let mut sums = [0, 0];
    println!("{:28}{:>24}{:>24}", "planted", "blind", "guided");
    for &canary in Canary::ALL {
        plant(Some(canary));
        let blind = STARTS.map(|start| needed(start, most, Options::draw));
        let guided = STARTS.map(|start| needed(start, most, |seed| guide.draw(seed)));
        plant(None);
        println!("{:28}{blind:>24?}{guided:>24?}", format!("{canary:?}"));
        sooner += u32::from(median(guided) < median(blind));
        later += u32::from(median(guided) > median(blind));
        sums = [sums[0] + blind.iter().sum::<u64>(), sums[1] + guided.iter().sum::<u64>()];
    }
    println!("by the median, guided finds {sooner} sooner and {later} later");
    println!("seeds in all: {} blind, {} guided", sums[0], sums[1]);
}

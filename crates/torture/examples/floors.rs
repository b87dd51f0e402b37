//! Prints `src/floors.txt` as a campaign of today would set it: a quarter of how often 1,000 seeds reach each line.
//!
//! `cargo run --release -p leyden-torture --example floors [SEEDS [FIRST]]`
//!
//! A line reached less often than four times in 1,000 seeds has the floor 1.

use leyden_torture::{Coverage, Subject, floor_of};

#[expect(clippy::print_stdout, reason = "prints what it has found")]
fn main() {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (seeds, first): (u64, u64) = (number(1).unwrap_or(4_000), number(2).unwrap_or(0));
    for subject in Subject::ALL {
        let (mut coverage, mut cuts) = (Coverage::default(), 0);
        for seed in first..first + seeds {
            let outcome = subject.draw(seed).play(false).0;
            coverage.add(&outcome.coverage);
            cuts += outcome.tally.cuts;
        }
        let kind = subject.name();
        println!("{kind} {} power cuts", floor_of(cuts, seeds));
        for (name, times) in coverage.all(subject.names()) {
            println!("{kind} {} {name}", floor_of(times, seeds));
        }
    }
}

//! How many cuts a second one core makes. A seed that fails ends it with exit code 1.
//!
//! `cargo run --release -p leyden-torture --example torture_cost [SEEDS [FIRST]]`

use std::time::Instant;

use leyden_torture::{Options, Tally, run};

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "measures and prints")]
fn main() {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (seeds, first): (u64, u64) = (number(1).unwrap_or(200), number(2).unwrap_or(0));
    let begun = Instant::now();
    let options: Vec<Options> = (first..first + seeds).map(Options::draw).collect();
    let drawn = begun.elapsed();
    let begun = Instant::now();
    let mut tally = Tally::default();
    for options in &options {
        let outcome = run(options);
        if let Some(failure) = outcome.failure {
            println!("seed {}: {failure}", options.seed);
            std::process::exit(1);
        }
        tally.add(&outcome.tally);
    }
    let ran = begun.elapsed();
    println!("drawing {seeds} seeds took {drawn:?}, running them once {ran:?}: {tally:?}");
    println!("{:.0} cuts a second", tally.cuts as f64 / (drawn + ran * 2).as_secs_f64());
}

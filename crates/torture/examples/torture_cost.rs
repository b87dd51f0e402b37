//! How many cuts a core makes in a second of processor time: each cut is made twice, as torture does, and counted once.
//!
//! `cargo run --release -p leyden-torture --example torture_cost [conventional|zoned|zoned-block [SEEDS [FIRST]]]`
//!
//! A seed that fails ends it with exit code 1.

use std::time::{Duration, Instant};

use leyden_torture::{Subject, Tally};

/// Processor time of this process: `/proc/self/schedstat` has it in nanoseconds, for the one thread that there is.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "measures and prints"
)]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let wanted = words.first().map_or("conventional", String::as_str);
    let Some(subject) = Subject::ALL.into_iter().find(|it| it.name() == wanted) else {
        let names = Subject::ALL.map(Subject::name).join(", ");
        eprintln!("there is no kind of drive {wanted}: {names}");
        std::process::exit(2);
    };
    let number = |at: usize| words.get(at).and_then(|text| text.parse().ok());
    let (seeds, first): (u64, u64) = (number(1).unwrap_or(120), number(2).unwrap_or(0));
    let (begun, spent) = (Instant::now(), processor_time());
    let (mut tally, mut digest) = (Tally::default(), 0_u64);
    for seed in first..first + seeds {
        let case = subject.draw(seed);
        for _ in 0..2 {
            let outcome = case.play(false).0;
            if let Some(failure) = outcome.failure {
                println!("seed {seed}: {failure}");
                std::process::exit(1);
            }
            tally.add(&outcome.tally);
            digest = digest.rotate_left(1) ^ outcome.digest;
        }
    }
    let wall = begun.elapsed();
    let spent = processor_time().zip(spent).map_or(wall, |(now, then)| now.saturating_sub(then));
    let cuts = tally.cuts / 2;
    println!(
        "{seeds} seeds from {first}: {cuts} cuts in {spent:.2?} of processor time ({wall:.2?} of wall time): \
         {:.0} cuts a processor second, digest {digest:016x}",
        cuts as f64 / spent.as_secs_f64()
    );
}

//! Block devices on zoned drives over many power cuts: every seed is run twice, and those that fail are printed.
//!
//! `cargo run --workspace --example zoned_block_campaign [SEEDS [FIRST]]`

use leyden_torture::zoned_block::{ZonedBlockOptions, run_twice};

#[expect(clippy::print_stdout, reason = "prints what it has found")]
fn main() {
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (seeds, first): (u64, u64) = (number(1).unwrap_or(500), number(2).unwrap_or(0));
    let (mut cuts, mut failed) = (0, 0);
    for seed in first..first + seeds {
        let outcome = run_twice(&ZonedBlockOptions::draw(seed));
        cuts += outcome.tally.cuts;
        if let Some(failure) = outcome.failure {
            failed += 1;
            println!("seed {seed}: {failure}");
        }
    }
    println!(
        "{seeds} seeds from {first} on, {cuts} power cuts, each made twice: {failed} seeds failed"
    );
    if failed > 0 {
        std::process::exit(1);
    }
}

//! Runs seeds of a kind of drive until one fails, each once: what `cargo xtask planted` looks for bugs with.
//!
//! `planted conventional|guided|zoned|zoned-block FIRST SEEDS`

use leyden_torture::zoned::ZonedOptions;
use leyden_torture::zoned_block::ZonedBlockOptions;
use leyden_torture::{Failure, Guide, Options, run, zoned, zoned_block};

/// A kind of drive: how a seed of it is run.
type Run = Box<dyn Fn(u64) -> Option<Failure>>;

fn run_of(kind: &str) -> Option<Run> {
    Some(match kind {
        "conventional" => Box::new(|seed| run(&Options::draw(seed)).failure),
        "guided" => {
            let guide = Guide::new(|options| run(options).coverage);
            Box::new(move |seed| run(&guide.draw(seed)).failure)
        }
        "zoned" => Box::new(|seed| zoned::run(&ZonedOptions::draw(seed)).failure),
        "zoned-block" => Box::new(|seed| zoned_block::run(&ZonedBlockOptions::draw(seed)).failure),
        _ => return None,
    })
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints what it has found")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match words.as_slice() {
        [kind, first, seeds] => {
            run_of(kind).zip(first.parse::<u64>().ok().zip(seeds.parse::<u64>().ok()))
        }
        _ => None,
    };
    let Some((run, (first, seeds))) = parsed else {
        eprintln!("usage: planted conventional|guided|zoned|zoned-block FIRST SEEDS");
        std::process::exit(2);
    };
    for seed in first..first + seeds {
        if let Some(failure) = run(seed) {
            println!("found by seed {seed} as {:?} after {} cuts", failure.kind, failure.cuts);
            println!("{}", failure.message);
            std::process::exit(1);
        }
    }
}

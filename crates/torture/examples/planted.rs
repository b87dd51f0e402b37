//! Runs seeds of a kind of drive until one fails, each once: what `cargo xtask planted` looks for bugs with.
//!
//! `planted conventional|zoned|zoned-block|guided FIRST SEEDS`

use leyden_torture::{Failure, Guide, Options, Run, Subject};

/// How a seed is run.
type Seed = Box<dyn Fn(u64) -> Option<Failure>>;

fn seeds_of(kind: &str) -> Option<Seed> {
    let drawn = |subject: Subject| -> Seed {
        Box::new(move |seed| subject.draw(seed).play(false).0.failure)
    };
    Some(match kind {
        "conventional" => drawn(Subject::Conventional),
        "zoned" => drawn(Subject::Zoned),
        "zoned-block" => drawn(Subject::ZonedBlock),
        "guided" => {
            let guide = Guide::<Options>::new();
            Box::new(move |seed| guide.draw(seed).play(false).0.failure)
        }
        _ => return None,
    })
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints what it has found")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match words.as_slice() {
        [kind, first, seeds] => {
            seeds_of(kind).zip(first.parse::<u64>().ok().zip(seeds.parse::<u64>().ok()))
        }
        _ => None,
    };
    let Some((run, (first, seeds))) = parsed else {
        eprintln!("usage: planted conventional|zoned|zoned-block|guided FIRST SEEDS");
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

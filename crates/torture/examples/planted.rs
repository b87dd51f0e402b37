//! Runs seeds of a kind of drive until one fails, each once: what `cargo xtask planted` looks for bugs with.
//!
//! `planted conventional|zoned|zoned-block|guided FIRST SEEDS`
//!
//! `planted kept NAME` runs a failure of tests/regressions or tests/zoned_block_regressions instead.

use std::path::Path;

use leyden_torture::{Case, Failure, Guide, Options, Run, SeedFile, Subject};

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

/// How the failure of that name ends now.
fn kept(name: &str) -> Result<Option<Failure>, String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let file = format!("{name}.json");
    let path = tests.join("regressions").join(&file);
    let case: Case = if path.exists() {
        SeedFile::read(&path).map_err(|error| error.to_string())?.case
    } else {
        let path = tests.join("zoned_block_regressions").join(&file);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let options = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Case::ZonedBlock(Box::new(options))
    };
    Ok(case.play(false).0.failure)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints what it has found")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [what, name] = words.as_slice()
        && what == "kept"
    {
        match kept(name) {
            Ok(Some(failure)) => {
                println!("found by {name} as {:?} after {} cuts", failure.kind, failure.cuts);
                std::process::exit(1);
            }
            Ok(None) => return,
            Err(problem) => {
                eprintln!("{problem}");
                std::process::exit(2);
            }
        }
    }
    let parsed = match words.as_slice() {
        [kind, first, seeds] => {
            seeds_of(kind).zip(first.parse::<u64>().ok().zip(seeds.parse::<u64>().ok()))
        }
        _ => None,
    };
    let Some((run, (first, seeds))) = parsed else {
        eprintln!(
            "usage: planted conventional|zoned|zoned-block|guided FIRST SEEDS, or planted kept NAME"
        );
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

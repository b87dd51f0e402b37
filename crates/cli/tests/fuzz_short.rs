//! A short fuzz of everything but traces that comes from outside, on the stable toolchain: the seed corpora,
//! mutated by a seeded loop. The long one is `fuzz/`, which shares the seeds and the functions under test.

use std::path::Path;

use leyden_sim::Rng;
use leyden_workload::trace::fuzz::mutate;

/// What is put into mutants of texts.
const TOKENS: [&[u8]; 24] = [
    b"0",
    b"1",
    b"-1",
    b"18446744073709551615",
    b"4294967296",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"\"\"",
    b"[]",
    b"{}",
    b"[",
    b"}",
    b",",
    b"\n",
    b"=",
    b".",
    b"\"100 %\"",
    b"\"1 ns\"",
    b"\xff",
    b"\x00",
    b"extends",
    b"[[run.cut]]\nat = \"1 s\"\n",
];

fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds").join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// `read` takes every seed, and so many mutants of them or refuses them.
fn fuzz<E: std::fmt::Debug>(
    seeds: &[Vec<u8>],
    mutants: u64,
    read: impl Fn(&[u8]) -> Result<(), E>,
) {
    assert!(!seeds.is_empty());
    let mut rng = Rng::new(seeds.len() as u64, "short fuzz");
    for seed in seeds {
        read(seed).expect("a seed is read");
        for _ in 0..mutants {
            let other = &seeds[rng.below(seeds.len() as u64) as usize];
            let mut mutant = seed.clone();
            for _ in 0..=rng.below(4) {
                mutate(&mut rng, &mut mutant, other, &TOKENS);
            }
            let _ = read(&mutant);
        }
    }
}

#[test]
fn seed_files() {
    fuzz(&seeds("seed_file"), 3_000, leyden_torture::fuzz::seed_file);
}

#[test]
fn campaign_states() {
    fuzz(&seeds("campaign_state"), 3_000, leyden_torture::fuzz::campaign_state);
}

#[test]
fn scenarios() {
    fuzz(&seeds("scenario"), 1_000, leyden_experiment::scenario::fuzz::scenario);
}

#[test]
fn run_records() {
    fuzz(&seeds("record"), 200, |data| leyden_report::fuzz::records(data).map(|_| ()));
}

#[test]
fn snapshots() {
    let seeds = [leyden_device::fuzz::seed()];
    fuzz(&seeds, 1_000, |data| leyden_device::fuzz::snapshot(data, false));
    fuzz(&seeds, 3_000, |data| leyden_device::fuzz::snapshot(data, true));
}

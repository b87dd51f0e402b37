//! A short fuzz on the stable toolchain: the seed corpora, mutated by a seeded loop. The long one
//! is `fuzz/`, which shares the seeds and the function under test.

use std::path::{Path, PathBuf};

use leyden_sim::Rng;
use leyden_workload::trace::{Format, fuzz};

/// Mutants for each seed file.
const MUTANTS: u64 = 4_000;

/// What is put into mutants: what means something to one reader or another.
const TOKENS: [&[u8]; 20] = [
    b",",
    b"\n",
    b"\r\n",
    b" ",
    b".",
    b"-",
    b"0",
    b"9",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999",
    b"NaN",
    b"1e9",
    b"W",
    b"F",
    b"wait",
    b"+",
    b"\xff",
    b"\x00",
    b"\x80",
];

fn seeds(format: Format) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus-seeds")
        .join(format.name().replace('-', "_"));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn below(rng: &mut Rng, end: usize) -> usize {
    rng.below(end.max(1) as u64) as usize
}

fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = below(rng, bytes.len());
    match rng.below(7) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        1 if !bytes.is_empty() => bytes[at] = rng.below(256) as u8,
        2 => bytes.truncate(at),
        3 => {
            let to = (at + below(rng, 16)).min(bytes.len());
            bytes.drain(at.min(to)..to);
        }
        4 => {
            let from = below(rng, other.len());
            let to = (from + below(rng, 64)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        _ => {
            let token = TOKENS[below(rng, TOKENS.len())];
            bytes.splice(at..at, token.iter().copied());
        }
    }
}

#[test]
fn mutated_seeds_are_read_or_refused() {
    for (number, format) in Format::ALL.into_iter().enumerate() {
        let seeds = seeds(format);
        assert!(!seeds.is_empty(), "no seeds for {format}");
        let mut rng = Rng::new(number as u64, "trace fuzz");
        for (path, seed) in &seeds {
            let found = fuzz::read_all(None, seed);
            assert!(found.is_ok(), "the seed {} is refused: {found:?}", path.display());
            for _ in 0..MUTANTS {
                let mut mutant = seed.clone();
                let (_, other) = &seeds[below(&mut rng, seeds.len())];
                for _ in 0..=rng.below(6) {
                    mutate(&mut rng, &mut mutant, other);
                }
                let _ = fuzz::read_all(Some(format), &mutant);
                let _ = fuzz::read_all(None, &mutant);
                if format == Format::Compact {
                    fuzz::reseal(&mut mutant);
                    let _ = fuzz::read_all(Some(format), &mutant);
                }
            }
        }
    }
}

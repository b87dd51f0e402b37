//! A short fuzz on the stable toolchain: the seed corpora, mutated by a seeded loop. The long one
//! is `fuzz/`, which shares the seeds and the function under test.

use std::path::{Path, PathBuf};

use leyden_sim::Rng;
use leyden_workload::trace::{Format, fuzz};

/// Mutants for each seed file.
const MUTANTS: u64 = 4_000;

/// Tokens that are put into mutants: each has a meaning to one reader or another.
const TOKENS: [&[u8]; 23] = [
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
    b"heap",
    b"index\n",
    b"\x05fresh",
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

/// Checksums made right: what is taken is written as it was read, whichever flag it has.
#[test]
fn a_compact_trace_with_any_bit_flipped_is_written_back_as_it_was() {
    for (_, seed) in seeds(Format::Compact) {
        for bit in 0..seed.len() * 8 {
            let mut mutant = seed.clone();
            mutant[bit / 8] ^= 1 << (bit % 8);
            fuzz::reseal(&mut mutant);
            fuzz::write_back(Format::Compact, &mutant);
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
            let told = (format == Format::Columns).then_some(format);
            let found = fuzz::read_all(told, seed);
            assert!(found.is_ok(), "the seed {} is refused: {found:?}", path.display());
            for _ in 0..MUTANTS {
                let mut mutant = seed.clone();
                let (_, other) = &seeds[below(&mut rng, seeds.len())];
                for _ in 0..=rng.below(6) {
                    fuzz::mutate(&mut rng, &mut mutant, other, &TOKENS);
                }
                let _ = fuzz::read_all(Some(format), &mutant);
                let _ = fuzz::read_all(None, &mutant);
                if matches!(format, Format::Csv | Format::Compact) {
                    fuzz::write_back(format, &mutant);
                }
                if format == Format::Compact {
                    fuzz::reseal(&mut mutant);
                    let _ = fuzz::read_all(Some(format), &mutant);
                    fuzz::write_back(format, &mutant);
                }
            }
        }
    }
}

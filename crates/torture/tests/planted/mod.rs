//! Planting bugs, one at a time, and looking for a seed that finds each.

use leyden_sim::canary::{Canary, plant};
use leyden_torture::Failure;

/// The first of `seeds` whose run finds `canary`, and how. Prints the row of docs/reliability.md.
#[expect(clippy::print_stdout, reason = "the table of docs/reliability.md")]
pub(crate) fn find(
    canary: Canary,
    seeds: u64,
    run: impl Fn(u64) -> Option<Failure>,
) -> Option<(u64, Failure)> {
    plant(Some(canary));
    let found = (0..seeds).find_map(|seed| Some((seed, run(seed)?)));
    plant(None);
    if let Some((seed, failure)) = &found {
        println!("| {canary:?} | {seed} | {:?} | {} |", failure.kind, failure.cuts);
    }
    found
}

/// Asserts that each of `canaries` is found.
#[allow(dead_code, reason = "of the tests that share this, one looks on several threads")]
pub(crate) fn find_all(
    canaries: impl Iterator<Item = Canary>,
    seeds: u64,
    run: impl Fn(u64) -> Option<Failure>,
) {
    let missed: Vec<_> = canaries.filter(|&canary| find(canary, seeds, &run).is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

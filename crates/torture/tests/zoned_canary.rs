//! Each bug that is planted in zoned drives is found within a stated number of seeds.
//! `cargo test --workspace --features leyden-torture/canary --test zoned_canary`
#![cfg(feature = "canary")]

use leyden_sim::canary::{Canary, plant};
use leyden_torture::zoned::{ZonedOptions, run};

/// Bugs that conventional drives can have, too.
const SHARED: &[Canary] = &[
    Canary::FlushForgotten,
    Canary::FuaEarly,
    Canary::DumpPageSkipped,
    Canary::PutBackForgotten,
    Canary::DumpGivenUpEarly,
    Canary::OldDumpsKept,
];

/// Seeds within which each is found.
const WITHIN: u64 = 150;

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/reliability.md")]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for &canary in Canary::ZONED.iter().chain(SHARED) {
        plant(Some(canary));
        let found =
            (0..WITHIN).find_map(|seed| Some((seed, run(&ZonedOptions::draw(seed)).failure?)));
        plant(None);
        match found {
            Some((seed, failure)) => {
                println!("| {canary:?} | {seed} | {:?} | {} |", failure.kind, failure.cuts);
            }
            None => missed.push(canary),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

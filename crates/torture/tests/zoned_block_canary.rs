//! Each bug that is planted in block devices on zoned drives is found within a stated number of seeds.
//! `cargo test -p leyden-torture --features canary --test zoned_block_canary`
#![cfg(feature = "canary")]

use leyden_sim::canary::{Canary, plant};
use leyden_torture::zoned_block::{ZonedBlockOptions, run};

/// Seeds within which each is found.
const WITHIN: u64 = 200;

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/reliability.md")]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for &canary in Canary::ZONED_BLOCK {
        plant(Some(canary));
        let found =
            (0..WITHIN).find_map(|seed| Some((seed, run(&ZonedBlockOptions::draw(seed)).failure?)));
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

//! Each bug that is planted in zoned drives is found within a stated number of seeds.
//! `cargo test --workspace --features leyden-torture/canary --test zoned_canary`
#![cfg(feature = "canary")]

mod planted;

use leyden_sim::canary::Canary;
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
fn every_planted_bug_is_found() {
    planted::find_all(Canary::ZONED.iter().chain(SHARED).copied(), WITHIN, |seed| {
        run(&ZonedOptions::draw(seed)).failure
    });
}

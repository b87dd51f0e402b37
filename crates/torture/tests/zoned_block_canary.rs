//! Each bug that is planted in block devices on zoned drives is found within a stated number of seeds.
//! `cargo test --workspace --features leyden-torture/canary --test zoned_block_canary`
#![cfg(feature = "canary")]

mod planted;

use leyden_sim::canary::Canary;
use leyden_torture::zoned_block::{ZonedBlockOptions, run};

/// Seeds within which each is found.
const WITHIN: u64 = 200;

#[test]
fn every_planted_bug_is_found() {
    planted::find_all(Canary::ZONED_BLOCK.iter().copied(), WITHIN, |seed| {
        run(&ZonedBlockOptions::draw(seed)).failure
    });
}

//! Zoned drives over many power cuts.

use leyden_torture::Tally;
use leyden_torture::zoned::{ZonedOptions, run_twice};

#[test]
fn nothing_promised_is_lost() {
    let mut all = Tally::default();
    for seed in 0..200 {
        let outcome = run_twice(&ZonedOptions::draw(seed));
        assert_eq!(outcome.failure, None, "seed {seed}");
        all.add(&outcome.tally);
    }
    // Drives that die early would have little to show.
    assert!(all.cuts > 6_000 && all.cuts_in_recovery > 1_000, "{all:?}");
    assert!(all.commands > 200_000 && all.write_faults < 500, "{all:?}");
}

/// Seeds that have failed once: 3323 and 5369 by an error of the model, which knew no holes in what a zone with a
/// Zone Random Write Area had held before it was reset. 1390 by an error of the judge: a FLUSH pads pages, and pages with
/// padding had taken the blocks to spare, though none was bad.
#[test]
fn seeds_that_have_failed_once_pass() {
    for seed in [1390, 3323, 5369, 13329] {
        assert_eq!(run_twice(&ZonedOptions::draw(seed)).failure, None, "seed {seed}");
    }
}

/// Seeds whose healthy drives once made zones read-only: protected and plain writes of a zone took turns, and waited for
/// each other after a FLUSH.
#[test]
fn healthy_drives_keep_their_zones() {
    const SEEDS: [u64; 14] = [
        5_000_075, 5_000_112, 5_000_143, 5_000_315, 5_000_600, 5_000_732, 5_000_952, 5_000_965,
        5_001_000, 5_001_060, 5_001_160, 5_001_187, 5_001_211, 5_001_260,
    ];
    for seed in SEEDS {
        let outcome = run_twice(&ZonedOptions::draw(seed));
        assert_eq!((outcome.failure, outcome.tally.write_faults), (None, 0), "seed {seed}");
    }
}

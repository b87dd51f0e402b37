//! Zoned drives over many power cuts.

use leyden_torture::zoned::{ZonedOptions, run_twice};

#[test]
fn nothing_promised_is_lost() {
    let mut cuts = 0;
    for seed in 0..200 {
        let outcome = run_twice(&ZonedOptions::draw(seed));
        assert_eq!(outcome.failure, None, "seed {seed}");
        cuts += outcome.tally.cuts;
    }
    assert!(cuts > 2_000, "{cuts}");
}

/// Seeds that have failed once: 3323 and 5369 by an error of the model, which knew no holes in what a zone with a
/// Zone Random Write Area had held before it was reset.
#[test]
fn seeds_that_have_failed_once_pass() {
    for seed in [3323, 5369, 13329] {
        assert_eq!(run_twice(&ZonedOptions::draw(seed)).failure, None, "seed {seed}");
    }
}

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

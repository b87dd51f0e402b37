//! Block devices on a conventional and a zoned drive over many power cuts.

use leyden_torture::zoned_block::{ZonedBlockOptions, run_twice};

#[test]
fn nothing_promised_is_lost() {
    let (mut cuts, mut failed) = (0, Vec::new());
    for seed in 0..120 {
        let outcome = run_twice(&ZonedBlockOptions::draw(seed));
        failed.extend(outcome.failure.map(|failure| (seed, failure)));
        cuts += outcome.tally.cuts;
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(cuts > 2_000, "{cuts}");
}

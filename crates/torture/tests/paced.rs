//! Drives that collect at an even pace, under power cuts: whatever its pace, a drive keeps its word.

use leyden_ftl::Pace;
use leyden_torture::{Options, campaign::run_twice};

#[test]
fn drives_that_collect_at_an_even_pace_keep_what_they_promise() {
    let (mut commands, mut cuts) = (0, 0);
    for seed in 0..60 {
        let mut options = Options::draw(seed);
        options.device.ftl.gc.pace = Pace::Even;
        let outcome = run_twice(&options);
        assert_eq!(outcome.failure, None, "seed {seed}");
        commands += outcome.tally.commands;
        cuts += outcome.tally.cuts;
    }
    assert!(commands > 60_000 && cuts > 1_000, "{commands} commands, {cuts} cuts");
}

//! Random drives and random work without power cuts: the drive passes, and runs are repeatable.

use leyden_torture::{Cut, Options, campaign::run_twice};

#[test]
fn drives_keep_what_they_promise_while_the_power_is_on() {
    let mut commands = 0;
    for seed in 0..60 {
        let mut options = Options::draw(seed);
        for round in &mut options.rounds {
            round.cut = Cut::Never;
        }
        let outcome = run_twice(&options);
        assert_eq!(outcome.failure, None, "seed {seed}");
        commands += outcome.tally.commands;
    }
    assert!(commands > 60_000, "{commands}");
}

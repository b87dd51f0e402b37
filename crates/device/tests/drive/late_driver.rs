//! A driver may submit before it has let everything before that moment happen.

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd};
use leyden_sim::Time;

#[test]
fn no_command_ends_before_it_was_submitted() {
    let mut config = Config::default();
    (config.frontend.queues, config.frontend.queue_depth) = (1, 2);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    for ms in 0..4 {
        ssd.submit(Time::from_ns(ms * 1_000_000), Command::write(Lba(0), 8, ()));
    }
    let mut done = Vec::new();
    ssd.advance(Time::from_ns(10_000_000), &mut done);
    assert_eq!(done.len(), 4);
    for completion in done {
        assert!(completion.time > completion.submitted, "{completion:?}");
    }
}

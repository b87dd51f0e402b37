//! Drives with atomic writes: what a power cut leaves of a write is all of it or nothing.

use std::sync::atomic::AtomicBool;

use leyden_torture::Subject;
use leyden_torture::campaign::Campaign;

/// Seeds from here on draw such drives only.
const START: u64 = 1_000_000_000;

#[test]
fn atomic_writes_survive_whole_or_not_at_all() {
    let campaign = Campaign {
        subject: Subject::Conventional,
        start: START,
        seeds: 120,
        threads: 2,
        state: None,
        guided: false,
    };
    let summary = campaign.run(&AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(summary.failed, []);
    let reached: Vec<_> = summary.coverage.all(Subject::Conventional.names()).collect();
    let count = |name: &str| reached.iter().find(|(it, _)| it == name).map_or(0, |it| it.1);
    assert!(count("cut: of a drive with atomic writes") > 3_000, "{reached:?}");
    assert!(count("cut: with an atomic write of several units in flight") > 300, "{reached:?}");
}

//! A short campaign: what `leyden torture` does, with few seeds.

use std::sync::atomic::AtomicBool;

use leyden_torture::campaign::Campaign;

/// Far from those that long campaigns and the planted bugs' hunt begin with.
const START: u64 = 1 << 40;

#[test]
fn random_drives_keep_what_they_promise() {
    let campaign = Campaign {
        subject: leyden_torture::Subject::Conventional,
        start: START,
        seeds: 300,
        threads: 2,
        state: None,
        guided: false,
    };
    let summary = campaign.run(&AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(summary.failed, []);
    assert!(summary.cuts > 10_000 && summary.tally.cuts_in_recovery > 1_000, "{summary:?}");
    assert!(summary.tally.confirmed_losses > 0, "some drives lack energy: {summary:?}");
}

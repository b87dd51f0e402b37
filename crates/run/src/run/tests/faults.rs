//! Whole runs in which commands are made to fail.

use super::*;

const CACHED: [&str; 4] = [
    "precondition.kind=none",
    "host.page_cache.size=4 MiB",
    "workload.job.0.fsync_every=200",
    "workload.job.0.requests=8000",
];

fn failing(sets: &[&str], rules: &str) -> RunRecord {
    let rules = format!("run.faults={rules}");
    record(&small(&[sets, &[&rules]].concat()))
}

#[test]
fn so_many_commands_fail_as_rules_say_and_the_same_each_time() {
    let sets = [
        "precondition.kind=none",
        "workload.job.0.fsync_every=50",
        "workload.job.0.read_share=50 %",
    ];
    let rules =
        r#"["write:nth=10,times=3", "flush:nth=2", "read:nth=7", "read:lba=0+8,nth=1000000"]"#;
    let run = failing(&sets, rules);
    assert_eq!(run.host.errors, 5);
    assert_eq!(run.sim.digest, failing(&sets, rules).sim.digest);
    assert_ne!(run.sim.digest, record(&small(&sets)).sim.digest);
    let idle: Vec<_> = run.warnings.iter().filter(|it| it.contains("made nothing fail")).collect();
    assert_eq!(idle.len(), 1);
    assert!(idle[0].contains("read:nth=1000000,times=1,lba=0+8"), "{idle:?}");
}

/// Writes lost below a cache are reported to the next fsync, once.
#[test]
fn a_cache_reports_each_failed_write_to_one_fsync() {
    let run = failing(&CACHED, r#"["write:nth=40"]"#);
    assert_eq!((run.cache.unwrap().failed, run.host.errors), (1, 1));
    let run = failing(&CACHED, r#"["flush:nth=3"]"#);
    assert_eq!(run.host.errors, 1);
}

#[test]
fn failed_commands_promise_nothing_to_a_power_cut() {
    for seed in 1..6 {
        let sets = [
            "device.power.bank.parts=1",
            "device.buffer.region=none",
            "workload.job.0.fsync_every=3",
            "run.cut=[{ at = \"8 ms\" }]",
            &format!("seed={seed}"),
        ];
        let run = failing(&sets, r#"["flush:for=8ms", "write:nth=100,times=200"]"#);
        let power = run.power.unwrap();
        assert_eq!((power.made.len(), power.lost_promised_writes), (1, 0));
        assert!(run.host.errors > 100, "{}", run.host.errors);
    }
}

#[test]
fn zoned_drives_fail_as_rules_say() {
    let rules = "run.faults=[\"flush:nth=3,times=2\", \"zone:nth=4\", \"read\"]";
    let run = record(&loaded(zones::ZONED, &[rules]));
    assert!(run.host.errors >= 3, "{}", run.host.errors);
    assert!(
        run.warnings.iter().any(|it| it.contains("\"read:nth=1,times=1\" has made nothing fail"))
    );
    assert_eq!(record(&loaded(zones::ZONED, &["run.faults=[\"flush:times=2\"]"])).host.errors, 2);
}

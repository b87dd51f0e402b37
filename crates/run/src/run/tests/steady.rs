//! Ramps that wait until write amplification has settled, and runs that measure a drive that has not.

use super::*;

/// Hot and cold data, as fast as the drive goes.
const SKEWED: &str = "
    [[workload.job]]
    queue_depth = 16
    requests = 300000

    [workload.job.distribution.hot_cold]
    hot_share_of_space = \"10 %\"
    hot_share_of_accesses = \"90 %\"
    scatter = true
";

/// On a drive that is large enough for its write amplification to be told.
fn skewed(sets: &[&str]) -> Scenario {
    let large = ["device.nand.blocks_per_plane=256", "run.stamps=false"];
    loaded(&format!("{DRIVE}{SKEWED}"), &[&large, sets].concat())
}

#[test]
fn a_ramp_goes_on_until_the_drive_has_settled_and_limits_count_from_there() {
    let scenario = skewed(&["run.ramp.settle=2 %", "workload.job.0.requests=250000"]);
    let record = record(&scenario);
    let ramp = record.steadiness.ramp.unwrap();
    assert!(ramp.settled && ramp.chunks > 8 && ramp.passes > 1.0, "{ramp:?}");
    // Those that were outstanding at its end complete in the measured part, as after any ramp.
    assert!((250_000..=250_016).contains(&record.host.writes), "{}", record.host.writes);
    assert!(record.series.start_s > 0.0);
    assert!(record.steadiness.precondition.unwrap().settled);
    assert_eq!(record.steadiness.waf_by_third.len(), 3);
    let drift = record.steadiness.drift().unwrap();
    assert!(drift.abs() < 0.05, "{:?}", record.steadiness);
    assert!((ramp.waf / record.flash.waf - 1.0).abs() < 0.05, "{ramp:?} {}", record.flash.waf);
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    assert_eq!(super::record(&scenario).sim.digest, record.sim.digest);
}

#[test]
fn the_time_of_a_job_counts_from_the_end_of_the_ramp_too() {
    let sets = ["run.ramp.settle=2 %", "workload.job.0.time=50 ms"];
    let elapsed_s = record(&skewed(&sets)).host.elapsed_s;
    assert!((0.05..0.06).contains(&elapsed_s), "{elapsed_s}");
}

/// Filled in order and no more, it has everything before it.
#[test]
fn a_run_that_drifts_says_so() {
    let drifts = |sets: &[&str]| {
        let warnings = record(&skewed(sets)).warnings;
        warnings.iter().any(|warning| warning.contains("was not in a steady state"))
    };
    let short =
        ["precondition.max_passes=1", "precondition.tolerance=0.01 %", "run.ramp.settle=0 %"];
    assert!(drifts(&short));
    assert!(!drifts(&["precondition.kind=fill"]), "nobody asked for a steady state");
    assert!(!drifts(&["run.ramp.settle=2 %"]));
}

/// Steady is steady, without a further key: the first tenth of what is measured, and the last.
#[test]
fn a_drive_that_was_made_steady_is_steady_where_the_measurement_begins() {
    let tenths = |sets: &[&str]| {
        let short = ["workload.job.0.requests=60000", "workload.job.0.distribution=uniform"];
        let series = record(&skewed(&[&short[..], sets].concat())).series;
        let tenth = series.write_iops.len() / 10;
        let written = |from: usize| series.write_iops[from..from + tenth].iter().sum::<f64>();
        written(0) / written(series.write_iops.len() - tenth - 1)
    };
    for seed in ["seed=1", "seed=2", "seed=3"] {
        let steady = tenths(&[seed]);
        assert!((steady - 1.0).abs() < 0.03, "{seed}: {steady}");
        let without = tenths(&[seed, "run.ramp.settle=0 %"]);
        assert!(without > 1.06, "{seed}: it uses up what an idle drive keeps free: {without}");
    }
}

#[test]
fn a_ramp_that_cannot_settle_ends_all_the_same() {
    let reads = record(&skewed(&[
        "run.ramp.settle=1 %",
        "workload.job.0.read_share=100 %",
        "workload.job.0.requests=1000",
    ]));
    assert!(!reads.steadiness.ramp.unwrap().settled);
    assert!(
        reads
            .warnings
            .iter()
            .any(|warning| warning.contains("before write amplification had settled"))
    );
    let short = record(&skewed(&["run.ramp.settle=0.0001 %", "precondition.max_passes=3"]));
    let ramp = short.steadiness.ramp.unwrap();
    assert!(!ramp.settled && (3.0..3.5).contains(&ramp.passes), "{ramp:?}");
}

#[test]
fn a_ramp_that_settles_is_refused_where_it_has_no_end() {
    let wrong = |text: &str, sets: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        std::fs::write(&file, text).unwrap();
        let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
        Loaded::new(file.to_str().unwrap(), &sets).unwrap_err().to_string()
    };
    let jobs = format!("{DRIVE}{SKEWED}");
    for set in ["run.ramp.time=1 s", "run.ramp.requests=1"] {
        assert!(wrong(&jobs, &["run.ramp.settle=1 %", set]).contains("leave one of them out"));
    }
    let power = "device.power.dump=balanced";
    let cut = "run.cut=[{ at = \"1 s\" }]";
    assert!(wrong(&jobs, &["run.ramp.settle=1 %", power, cut]).contains("run.cut names times"));
    assert!(wrong(&jobs, &["run.ramp.settle=51 %"]).contains("is not in 0..=50 %"));
    let trace = format!("{DRIVE} workload.trace = \"a.csv\"");
    assert!(wrong(&trace, &["run.ramp.settle=1 %"]).contains("only [[workload.job]]"));
}

#[test]
fn successive_runs_are_told_apart_and_the_last_is_measured() {
    let age = [
        "precondition.kind=none",
        "workload.job.0.read_share=0 %",
        "workload.job.0.requests=30000",
    ];
    let once = record(&small(&age));
    assert!(once.steadiness.repetitions.is_empty());
    let scenario = small(&[&age[..], &["run.repeat=4"]].concat());
    let record = record(&scenario);
    let runs = &record.steadiness.repetitions;
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run.commands == 30_000), "{runs:?}");
    // The first is the single run; the drive ages from run to run, and stays where it settles.
    assert_eq!((runs[0].waf, runs[0].iops), (once.flash.waf, once.host.iops));
    assert_eq!((runs[3].waf, runs[3].iops), (record.flash.waf, record.host.iops));
    assert!(runs[0].waf < runs[1].waf && runs[1].waf < runs[2].waf * 1.02, "{runs:?}");
    assert!((runs[3].waf / runs[2].waf - 1.0).abs() < 0.03, "{runs:?}");
    assert!(!record.warnings.iter().any(|warning| warning.contains("run.repeat")));
    // Stopped too early, it says so.
    let early = super::record(&small(&[&age[..], &["run.repeat=2"]].concat()));
    assert!(early.warnings.iter().any(|warning| warning.contains("run.repeat")), "{runs:?}");
}

//! Advice of commands beside their numbers: warnings, tips and rows that keep a reader from a wrong
//! conclusion.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
    command.current_dir(folder).args(args).output().unwrap()
}

#[track_caller]
fn said(output: &[u8], part: &str) {
    let text = String::from_utf8_lossy(output);
    assert!(text.contains(part), "{part:?} is not in: {text}");
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(TINY, folder.path().join("tiny.toml")).unwrap();
    folder
}

#[test]
fn a_life_that_means_nothing_is_said_to_mean_nothing() {
    let folder = folder();
    let life = |cycles: &str, sets: &[&str]| {
        let mut args = vec!["lifetime", "tiny.toml", "--cycles", cycles];
        args.extend(sets.iter().flat_map(|set| ["--set", set]));
        run(folder.path(), &args)
    };
    // 16 MiB that are written as fast as they take it are worn out in days.
    let worn = life("3000", &[]);
    assert_eq!(worn.status.code(), Some(0));
    said(&worn.stderr, "drive and work do not fit");
    said(&worn.stderr, "its day is no day of the host's");
    let slow = |requests: &str| {
        let requests = format!("workload.job.0.requests={requests}");
        life("9000000", &["workload.job.0.iops_limit=1", &requests])
    };
    let long = slow("200000");
    assert!(long.stderr.is_empty(), "{}", String::from_utf8_lossy(&long.stderr));
    said(&slow("2000").stderr, "chance decides which block is the most worn");
    // A run that fits into the buffer wears nothing.
    let buffered = life(
        "3000",
        &["workload.job.0.requests=8", "workload.job.0.read_share=0", "precondition.kind=none"],
    );
    assert_ne!(buffered.status.code(), Some(0));
    said(&buffered.stderr, "all of it to the write buffer");
}

#[test]
fn a_comparison_shows_what_preconditioning_amplified() {
    let folder = folder();
    let vary = ["--vary", "device.ftl.over_provisioning=28%,40%"];
    let steady = ["--set", "precondition.kind=steady"];
    let output = run(folder.path(), &[&["compare", "tiny.toml"], &vary[..], &steady].concat());
    said(&output.stdout, "Write amplification, preconditioning");
    // Nothing is amplified by a fill, and no row says so.
    let filled = run(folder.path(), &[&["compare", "tiny.toml"], &vary[..]].concat());
    assert!(!String::from_utf8_lossy(&filled.stdout).contains("preconditioning"));
}

#[test]
fn a_trace_that_is_not_replayed_at_its_own_times_says_how_fast() {
    let folder = folder();
    let mut trace = "time_us,op,lba,len\n".to_owned();
    for number in 0..400 {
        writeln!(trace, "{},R,{},8", number * 10_000, number % 100 * 8).unwrap();
    }
    fs::write(folder.path().join("slow.csv"), trace).unwrap();
    fs::write(
        folder.path().join("replay.toml"),
        "extends = \"tiny.toml\"\n[workload.trace]\npath = \"slow.csv\"\n",
    )
    .unwrap();
    let own = run(folder.path(), &["run", "replay.toml"]);
    said(&own.stdout, "replayed as fast");
    let twice = run(folder.path(), &["run", "replay.toml", "--set", "workload.trace.speed=2"]);
    said(&twice.stdout, "replayed 2.000 times as fast");
    let closed = run(folder.path(), &["run", "replay.toml", "--set", "workload.trace.mode=closed"]);
    let text = String::from_utf8_lossy(&closed.stdout).into_owned();
    let times = text.split("replayed ").nth(1).and_then(|rest| rest.split(' ').next());
    let times: f64 = times.unwrap().replace(',', "").parse().unwrap();
    assert!(times > 50.0, "a read takes 10 ms in the trace: {times}");
}

/// Commands that were made to fail are no wear.
#[test]
fn errors_that_were_asked_for_are_no_worn_out_drive() {
    let folder = folder();
    let faults = r#"run.faults=["write:nth=40,times=3", "any:nth=500", "read:nth=2"]"#;
    for (command, more) in
        [("run", "--json"), ("lifetime", "--cycles=3000"), ("compare", "--vary=seed=1,2")]
    {
        let output = run(folder.path(), &[command, "tiny.toml", more, "--set", faults]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {told}");
        assert!(!told.contains("made nothing fail"), "{command}: {told}");
        if command == "run" {
            let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(
                (record["host"]["errors"].as_u64(), record["host"]["write_faults"].as_u64()),
                (Some(5), Some(0))
            );
        }
    }
}

#[test]
fn a_flag_of_another_command_is_named_with_it() {
    let folder = folder();
    for (args, tip) in [
        (["run", "tiny.toml", "--vary", "seed=1,2"], "'--vary' is a flag of `leyden compare`"),
        (["run", "https://example.org/a.toml", "--seed", "1"], "download it first"),
        (["check", "tpc", "--set", "seed=1"], "a bundled scenario called `tpcc`"),
    ] {
        let output = run(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        said(&output.stderr, tip);
    }
}

#[test]
fn a_drive_that_does_not_settle_says_how_much_it_has_written() {
    let folder = folder();
    let sets = ["--set", "precondition.kind=steady", "--set", "precondition.max_passes=3"];
    let sets = [&sets[..], &["--set", "precondition.tolerance=0.01 %", "--json"]].concat();
    let output = run(folder.path(), &[&["run", "tiny.toml"], &sets[..]].concat());
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let passes = record["steadiness"]["precondition"]["passes"].as_f64().unwrap();
    let warnings = record["warnings"].to_string();
    assert!(
        warnings.contains(&format!("stopped after {passes:.1} times the capacity")),
        "{warnings}"
    );
}

//! Inputs of careless and hostile users, and harm that must not follow.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");
const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.csv");

fn leyden(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leyden")).args(args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `args`, which must end with `code` and a message with each of `parts`.
#[track_caller]
fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let output = leyden(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{args:?}: no `{part}` in {message}");
    }
}

/// Runs `tiny` with `sets`, which must end well and warn of `warning`.
#[track_caller]
fn warned(sets: &[&str], warning: &str) {
    let mut args = vec!["run", TINY, "--json"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    let output = leyden(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
}

fn write(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_conversion_goes_through_links_and_into_pipes() {
    let piped = leyden(&["trace", "convert", SMALL, "/dev/stdout", "--to", "csv", "--force"]);
    assert!(piped.status.success(), "{}", stderr(&piped));
    assert!(piped.stdout.starts_with(b"time_us,") && piped.stdout.ends_with(b"\n"));
    assert!(stderr(&piped).contains("5 requests"), "{}", stderr(&piped));

    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target.csv"), folder.path().join("link.csv"));
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let converted = leyden(&["trace", "convert", SMALL, link.to_str().unwrap(), "--force"]);
    assert!(converted.status.success(), "{}", stderr(&converted));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&target).unwrap(), piped.stdout);

    let folder = folder.path().to_str().unwrap();
    let args = ["trace", "convert", SMALL, folder, "--to", "csv", "--force"];
    refused(&args, 3, &["is a directory", "help:"]);
}

#[test]
fn results_without_a_place_are_refused_before_the_run() {
    let endless = "workload.job.0.requests=1000000000000";
    let folder = env!("CARGO_MANIFEST_DIR");
    let parts = ["is a directory", "help: name a file in it"];
    refused(&["run", TINY, "--set", endless, "--report", folder], 3, &parts);
    let snapshot = "precondition.snapshot=/no/such/folder/a";
    refused(&["run", TINY, "--set", endless, "--set", snapshot], 3, &["cannot write", "help:"]);
}

#[test]
fn files_that_are_no_scenarios_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("binary.toml");
    fs::write(&binary, b"\x7fELF\xff\xfe").unwrap();
    let parts = ["cannot read", "help: name a scenario"];
    refused(&["run", binary.to_str().unwrap()], 2, &parts);
    refused(&["run", folder.path().to_str().unwrap()], 2, &parts);
    refused(&["run", "/dev/zero"], 2, &["larger than 64 MiB", "help: name a scenario"]);
    let extends = write(folder.path(), "zero.toml", "extends = \"/dev/zero\"\n");
    refused(&["run", &extends], 2, &["larger than 64 MiB", "zero.toml:1:11"]);
}

/// A parser that recurses without a bound overflows its stack, which ends the process without a word.
#[test]
fn files_nested_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let deep = |part: &str| part.repeat(100_000);
    for text in [format!("a = {}", deep("[")), format!("a = {}", deep("{a=")), deep("a.") + "a = 1"]
    {
        let file = write(folder.path(), "deep.toml", &text);
        refused(&["run", &file], 2, &["nest deeper than 80 levels"]);
        refused(&["check", &file], 2, &["nest deeper than 80 levels"]);
    }
    for text in [deep("["), deep("{\"a\":")] {
        let file = write(folder.path(), "deep.json", &text);
        let limit = ["nests deeper than 127 levels"];
        refused(&["report", &file, "--output", "no.html"], 2, &limit);
        refused(&["torture", "--replay", &file], 2, &limit);
        write(folder.path(), "plan.json", &text);
        refused(&["crashtest", "show", folder.path().to_str().unwrap()], 2, &["error:"]);
    }
}

#[test]
fn arguments_that_would_be_ignored_or_misread_are_refused() {
    refused(&["run", TINY, "--set", "extends=x"], 2, &["in a file only", "--set:1:1"]);
    refused(&["compare", TINY, "--vary", "extends=x,y"], 2, &["in a file only"]);
    let seven = "device.ftl.over_provisioning=7";
    refused(&["run", TINY, "--set", seven], 2, &["has no unit", "help: write \"7 %\""]);
    let beyond = "workload.job.1.queue_depth=8";
    refused(&["run", TINY, "--set", beyond], 2, &["there is one, `workload.job.0`"]);
    refused(&["run", TINY, "--set", "name=\u{1b}[31m"], 2, &["`name`", "control character"]);
}

#[test]
fn a_trace_that_does_not_fit_or_has_nothing_left_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let trace = format!("name = \"x\"\n[workload.trace]\npath = \"{SMALL}\"\n");
    let scenario = write(folder.path(), "trace.toml", &trace);
    let from = "workload.trace.from=1000 h";
    let place = "trace.toml:2:1";
    let parts = ["small.csv", "between `from` and `until`", place, "help: widen them"];
    refused(&["run", &scenario, "--set", from], 2, &parts);
    let until = "workload.trace.until=1 s";
    refused(&["run", &scenario, "--set", from, "--set", until], 2, &["leaves nothing", "help:"]);

    let far = "time_us,op,lba,len\n0,W,99999999999,8\n";
    let far = write(folder.path(), "far.csv", far);
    let scenario = format!("[workload.trace]\npath = \"{far}\"\n");
    let scenario = write(folder.path(), "far.toml", &scenario);
    refused(&["run", &scenario], 2, &["far.csv: request 1", "far.toml:1:1", "help: use a larger"]);
    refused(&["trace", "info", "/no/such"], 2, &["help: Check the path"]);
}

#[test]
fn a_run_that_measured_nothing_or_ran_out_of_time_says_so() {
    refused(&["run", TINY, "--set", "run.ramp.requests=4000"], 5, &["nothing was measured"]);
    let all = ["workload.job.0.think_time=1000000 h", "workload.job.0.think_every=1"];
    warned(&all, "the simulated clock ran out");
}

#[test]
fn a_drive_cannot_settle_under_work_that_only_trims() {
    let sets = [
        "workload.job.0.read_share=0 %",
        "workload.job.0.trim_share=100 %",
        "precondition.kind=steady",
        "precondition.distribution=workload",
    ];
    let mut args = vec!["run", TINY];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    refused(&args, 2, &["writes nothing", "help: use \"uniform\""]);
}

#[test]
fn a_drive_that_memory_cannot_hold_is_refused() {
    let run = format!(
        "ulimit -v 4000000; exec {} run {TINY} --set device.nand.channels=8 \
         --set device.nand.dies_per_channel=8 --set device.nand.blocks_per_plane=10000 \
         --set device.nand.pages_per_block=1024",
        env!("CARGO_BIN_EXE_leyden")
    );
    let output = Command::new("bash").args(["-c", &run]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("MiB of memory"), "{}", stderr(&output));
}

#[test]
fn long_names_get_files_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("name={}", "\u{1f980}x\u{e9}".repeat(1000));
    let out = folder.path().to_str().unwrap();
    let output = leyden(&["run", TINY, "--set", &name, "--out", out]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_snapshot_whose_header_is_garbled_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive");
    let set = format!("precondition.snapshot={}", file.display());
    let run = || leyden(&["run", TINY, "--set", &set]);
    assert!(run().status.success());
    let good = fs::read(&file).unwrap();
    let mut garbled = good.clone();
    garbled[40] = 0xff; // in the fingerprint, and no UTF-8
    fs::write(&file, garbled).unwrap();
    let output = run();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), good);
}

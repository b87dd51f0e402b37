//! Where the command meets the system: pipes that close, disks that are full, Ctrl-C.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");

fn leyden(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
    command.args(args);
    command
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let output = leyden(&["run", TINY, "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        record["host"]["writes"].as_u64().unwrap() + record["host"]["reads"].as_u64().unwrap(),
        4000
    );
    assert!(record["reproduce"].as_str().unwrap().starts_with("leyden run "));
    assert_eq!(stderr(&output), "", "silent in a pipe");
}

#[test]
fn a_comparison_is_checked_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let vary = "device.ftl.over_provisioning=28 %,1 ppm";
    let args = ["compare", TINY, "--vary", vary, "--out", out.to_str().unwrap()];
    let output = leyden(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("device.ftl.over_provisioning"), "{}", stderr(&output));
    assert!(!out.exists() || files(&out).is_empty(), "nothing has run");
}

#[test]
fn runs_are_kept_reported_and_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let report = folder.path().join("report.html");
    let (out_arg, report_arg) = (out.to_str().unwrap(), report.to_str().unwrap());
    let args = ["run", TINY, "--seed", "9", "--out", out_arg, "--report", report_arg];
    assert!(leyden(&args).output().unwrap().status.success());
    let record = fs::read_to_string(out.join("tiny.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["seed"], 9);
    assert!(fs::read_to_string(&report).unwrap().contains("<html"));

    // The command in a record repeats its run.
    let words: Vec<&str> = record["reproduce"].as_str().unwrap().split(' ').skip(1).collect();
    let again = leyden(&words).arg("--json").output().unwrap();
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["sim"]["digest"], record["sim"]["digest"]);

    let second = folder.path().join("second.html");
    let file = out.join("tiny.json");
    let args = ["report", file.to_str().unwrap(), "-o", second.to_str().unwrap()];
    assert!(leyden(&args).output().unwrap().status.success());
    let same = fs::read(&report).unwrap() == fs::read(&second).unwrap();
    assert!(same, "a record that was read back makes the same report");
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [&["schema"][..], &["policies"], &["completions", "bash"], &["--help"]] {
        let mut child = leyden(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn a_full_disk_ends_with_3_and_leaves_nothing() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = leyden(&["schema"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    // A command that cannot write its error message still ends with a code of the list.
    for (args, code) in [(&["status", "no.leyden"][..], 2), (&["run", "no-such-scenario"], 2)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = leyden(args).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }

    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html");
    let first = leyden(&["run", TINY, "--report", report.to_str().unwrap()]).output().unwrap();
    assert!(first.status.success(), "{}", stderr(&first));
    let precious = fs::read_to_string(&report).unwrap();
    // 100 KiB at most: the report is larger, so that its write fails half-way.
    let script = format!(
        "ulimit -f 100; exec {} run {TINY} --report {}",
        env!("CARGO_BIN_EXE_leyden"),
        report.display()
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
    assert!(fs::read_to_string(&report).unwrap() == precious, "the old report is whole");
    assert_eq!(files(folder.path()), ["report.html"]);
}

#[test]
fn ctrl_c_keeps_what_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = leyden(&["run", TINY, "--set", "workload.job.0.requests=1000000000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let pid = child.id().to_string();
    Command::new("bash").args(["-c", &format!("kill -INT {pid}")]).status().unwrap();
    let mut json = String::new();
    child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(record["host"]["writes"].as_u64().unwrap() > 0);
    assert!(record["warnings"].to_string().contains("interrupted"));
}

#[test]
fn an_interrupted_campaign_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let run = |seeds: &str| {
        let mut command = leyden(&["torture", "--seeds", seeds, "--jobs", "1", "--json"]);
        command.args(["--state", state.to_str().unwrap()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let child = run("1000000").spawn().unwrap();
    // Until something is done: the state is saved every two seconds.
    while !fs::read_to_string(&state).is_ok_and(|text| text.contains("\"cuts\": ")) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = child.id().to_string();
    Command::new("bash").args(["-c", &format!("kill -INT {pid}")]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same command resumes"), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let done = summary["seeds"].as_u64().unwrap();

    let output = run(&(done + 3).to_string()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let resumed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let args = ["torture", "--json", "--seeds", &(done + 3).to_string()];
    let whole = leyden(&args).output().unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&whole.stdout).unwrap();
    for key in ["seeds", "cuts", "violations", "digest"] {
        assert_eq!(resumed[key], whole[key], "{key}");
    }
    assert_eq!((&whole["seeds"], &whole["violations"]), (&(done + 3).into(), &0.into()));
}

#[test]
fn traces_convert_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.csv");
    let compact = folder.path().join("small.leyden.zst");
    let back = folder.path().join("back.csv");
    let run = |from: &str, to: &Path| {
        let output = leyden(&["trace", "convert", from, to.to_str().unwrap()]).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    assert_eq!(run(small, &compact).0, Some(0));
    assert_eq!(run(compact.to_str().unwrap(), &back).0, Some(0));
    assert_eq!(fs::read_to_string(&back).unwrap().lines().count(), 6);
    let (code, message) = run(small, &back);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("it exists"), "{message}");
}

//! `leyden crashtest` on this machine: what takes root, FUSE and loop devices is left out where they are not, and
//! said.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const LEYDEN: &str = env!("CARGO_BIN_EXE_leyden");

/// Files that are written, and synced; each is a promise.
const SYNCED: &str = "for i in 1 2 3 4 5 6; do echo $i >$LEYDEN_MOUNT/f$i; sync $LEYDEN_MOUNT/f$i; \
                      echo ack $i >>$LEYDEN_ACK; done";
/// The same, promised before it is synced.
const HASTY: &str = "for i in 1 2 3 4 5 6; do echo $i >$LEYDEN_MOUNT/f$i; echo ack $i >>$LEYDEN_ACK; \
                     sync $LEYDEN_MOUNT/f$i; done";
const CHECK: &str = "while read i; do [ \"$(cat $LEYDEN_MOUNT/f$i 2>/dev/null)\" = $i ] || { echo lost $i; exit 1; }; \
                     done <$LEYDEN_ACKS";

/// A folder, and everything that may be left behind of it.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Option<Self> {
        let doctor = Command::new(LEYDEN).args(["crashtest", "doctor"]).output().unwrap();
        if !doctor.status.success() {
            eprintln!("LEFT OUT: {}", String::from_utf8_lossy(&doctor.stderr).trim());
            return None;
        }
        Some(Self(tempfile::tempdir().unwrap()))
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("crash")
    }

    fn leyden(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LEYDEN);
        command.current_dir(self.0.path()).arg("crashtest").args(args).stdin(Stdio::null());
        command
    }

    fn recording(&self, work: &str, more: &[&str]) -> Output {
        let args =
            ["record", "devices/hexa", "--size", "16 MiB", "--latency", "off", "--out", "crash"];
        let mut command = self.leyden(&args);
        command.args(["--set", "device.buffer.region=none", "--set", "device.buffer.size=4 MiB"]);
        command.args(["--work", work, "--check", CHECK]).args(more).output().unwrap()
    }

    fn recorded(&self, work: &str, more: &[&str]) {
        let output = self.recording(work, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn run(&self, more: &[&str]) -> (i32, Value, String) {
        let output = self.leyden(&["run", "crash", "--json"]).args(more).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code().unwrap(), json, stderr)
    }

    /// Asserts that nothing is mounted, attached or running of it, within some seconds.
    fn is_clean(&self) {
        let mut left = self.left();
        for _ in 0..100 {
            if left.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
            left = self.left();
        }
        panic!("left behind: {left:?}");
    }

    fn left(&self) -> Vec<String> {
        let folder = self.out().display().to_string();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let loops =
            Command::new("losetup").args(["-n", "-l", "-O", "NAME,BACK-FILE"]).output().unwrap();
        let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
        let all = mounts.lines().chain(loops.lines());
        let mut left: Vec<String> =
            all.filter(|line| line.contains(&folder)).map(str::to_owned).collect();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains(&folder) {
                left.push(entry.path().display().to_string());
            }
        }
        left
    }
}

fn verdicts(summary: &Value) -> String {
    summary["models"][0]["verdicts"].to_string()
}

#[test]
fn synced_files_survive_and_an_early_promise_is_found_and_made_small() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let (code, summary, stderr) =
        bench.run(&["--states", "120", "--model", "adversarial,realistic", "--jobs", "2"]);
    assert_eq!(code, 0, "{stderr}{summary}");
    assert_eq!(summary["acks"], 6);
    assert!(summary["models"][0]["states"].as_u64().unwrap() > 20, "{summary}");
    assert!(summary["models"][1]["states"].as_u64().unwrap() > 5, "{summary}");
    bench.is_clean();

    std::fs::remove_dir_all(bench.out()).unwrap();
    bench.recorded(HASTY, &[]);
    let (code, summary, _) = bench.run(&["--states", "40"]);
    assert_eq!(code, 1, "{summary}");
    assert_eq!(summary["models"][0]["findings"][0]["verdict"], "lost");
    let junit = std::fs::read_to_string(bench.out().join("junit.xml")).unwrap();
    assert!(junit.contains("failures=\"1\"") && junit.contains("lost"), "{junit}");
    let page = std::fs::read_to_string(bench.out().join("report.html")).unwrap();
    assert!(page.contains("acknowledged lost") && page.contains("lies noticed"));
    assert!(page.contains("leyden crashtest capacitor"), "nobody has asked for a curve");

    let finding = "crash/findings/adversarial-1.json";
    let shrunk = bench.leyden(&["shrink", "crash", finding, "--json"]).output().unwrap();
    let small: Value = serde_json::from_slice(&shrunk.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&shrunk.stderr)));
    assert!(small["state"]["lost"].as_array().unwrap().len() <= 1, "{small}");
    let replayed = bench
        .leyden(&["replay", "crash", "crash/findings/adversarial-1-small.json"])
        .output()
        .unwrap();
    assert_eq!(replayed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&replayed.stdout).starts_with("acknowledged lost"));
    bench.is_clean();
}

#[test]
fn the_same_seed_comes_to_the_same_whoever_tries_it() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &[]);
    let told = |jobs: &str| {
        let (_, mut summary, stderr) =
            bench.run(&["--states", "50", "--seed", "5", "--jobs", jobs]);
        assert!(!summary.is_null(), "{stderr}");
        for model in summary["models"].as_array_mut().unwrap() {
            model["seconds"] = Value::Null;
        }
        summary["control"]["seconds"] = Value::Null;
        summary
    };
    assert_eq!(told("1"), told("2"));
}

#[test]
fn checks_that_hang_leak_daemonise_or_die_leave_nothing() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &["--timeout", "500 ms"]);
    let daemon = "cd $LEYDEN_MOUNT; setsid sleep 1000 >/dev/null 2>&1 & sleep 0.05; exit 0";
    let (code, summary, stderr) = bench.run(&["--states", "4", "--check", daemon]);
    assert_eq!(code, 0, "{stderr}");
    // It sees nothing, and that is told.
    assert_eq!(summary["control"]["verdicts"].to_string(), "{\"held\":8}", "{summary}");
    assert!(stderr.contains("ignored all flushes"), "{stderr}");
    bench.is_clean();
    let hanging = "exec sleep 1000";
    let (code, summary, _) = bench.run(&["--states", "2", "--check", hanging, "--jobs", "1"]);
    assert_eq!((code, verdicts(&summary).as_str()), (1, "{\"hung\":2}"), "{summary}");
    let (code, summary, _) =
        bench.run(&["--states", "2", "--check", "kill -SEGV $$", "--jobs", "1"]);
    assert_eq!((code, verdicts(&summary).as_str()), (1, "{\"crashed\":2}"), "{summary}");
    let (code, summary, _) = bench.run(&["--states", "2", "--check", "exit 77", "--jobs", "1"]);
    assert_eq!((code, verdicts(&summary).as_str()), (0, "{\"skipped\":2}"), "{summary}");
    let (code, _, stderr) = bench.run(&["--states", "2", "--check", "no-such-program"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`no-such-program` cannot be run"), "{stderr}");
    // The check before it is kept.
    let shown = bench.leyden(&["show", "crash", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["plan"]["check"], "exit 77");
    bench.is_clean();
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[test]
fn whoever_is_interrupted_or_killed_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    for name in ["-INT", "-TERM", "-KILL"] {
        let mut child = bench
            .leyden(&["run", "crash", "--check", "sleep 0.2", "--budget", "600 s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Until something is mounted, which is seen by the loop devices.
        for _ in 0..300 {
            if !bench.left().is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        signal(&child, name);
        let code = child.wait().unwrap().code();
        assert_eq!(code, if name == "-KILL" { None } else { Some(130) }, "{name}");
        bench.is_clean();
    }
    // And while a run is recorded.
    std::fs::remove_file(bench.out().join("recording.leyrec")).unwrap();
    let args = ["record", "devices/hexa", "--size", "16 MiB", "--latency", "off", "--out", "crash"];
    let mut child = bench
        .leyden(&args)
        .args(["--work", "sleep 100", "--check", "true"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    bench.is_clean();
}

#[test]
fn what_cannot_be_recorded_is_told_in_a_line() {
    let Some(bench) = Bench::new() else { return };
    let refused = |output: &Output, what: &str| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
        assert!(!bench.out().join("recording.leyrec").exists());
    };
    refused(&bench.recording("echo no luck; exit 3", &[]), "no luck");
    refused(&bench.recording("true", &["--setup", "exit 9"]), "setup script");
    refused(&bench.recording("true", &["--fs", "nosuchfs"]), "nosuchfs");
    let silent = bench.recording("true", &[]);
    assert!(silent.status.success());
    let stderr = String::from_utf8_lossy(&silent.stderr);
    assert!(stderr.contains("acknowledged nothing"), "{stderr}");
    // Another recording is not overwritten, and one that was edited is not run.
    let again = bench.recording("true", &[]);
    assert_eq!(again.status.code(), Some(2));
    let path = bench.out().join("recording.leyrec");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (code, _, stderr) = bench.run(&["--states", "2"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("damaged"), "{stderr}");
    bench.is_clean();
}

#[test]
fn a_raw_device_is_worked_on_without_a_file_system() {
    let Some(bench) = Bench::new() else { return };
    let work = "for i in 1 2 3 4; do printf %-4096s $i | dd of=$LEYDEN_DEV bs=4096 seek=$i conv=fsync,notrunc \
                status=none; echo $i >>$LEYDEN_ACK; done";
    let check = "while read i; do [ \"$(dd if=$LEYDEN_DEV bs=4096 skip=$i count=1 iflag=direct status=none | \
                 tr -d ' ')\" = $i ] || { echo lost $i; exit 1; }; done <$LEYDEN_ACKS";
    bench.recorded(work, &["--fs", "none"]);
    let (code, summary, stderr) = bench.run(&["--states", "30", "--check", check]);
    assert_eq!(code, 0, "{stderr}{summary}");
    assert!(summary["control"]["verdicts"]["lost"].as_u64() > Some(0), "{summary}");
    bench.is_clean();
}

#[test]
fn the_smaller_the_bank_the_more_cuts_lose_something() {
    let Some(bench) = Bench::new() else { return };
    // Promised without a flush: a drive whose capacitors save its whole buffer keeps it.
    let work = "for i in $(seq 1 24); do printf %-16384s $i | dd of=$LEYDEN_DEV bs=16384 seek=$i oflag=direct \
                conv=notrunc status=none; echo $i >>$LEYDEN_ACK; done";
    bench.recorded(work, &["--fs", "none", "--set", "device.buffer.region=full"]);
    let check = "while read i; do [ \"$(dd if=$LEYDEN_DEV bs=16384 skip=$i count=1 iflag=direct status=none | \
                 tr -d ' ')\" = $i ] || { echo lost $i; exit 1; }; done <$LEYDEN_ACKS";
    let realistic = ["--states", "40", "--model", "realistic", "--check", check];
    let (code, summary, stderr) = bench.run(&realistic);
    assert_eq!(code, 0, "{stderr}{summary}");
    // What the drive says that it lost is in the finding, and was looked for in vain by the check.
    let (code, summary, stderr) =
        bench.run(&[&realistic[..], &["--capacitance-uf", "100"]].concat());
    assert_eq!(code, 1, "{stderr}{summary}");
    let finding = &summary["models"][0]["findings"][0];
    assert_eq!(finding["verdict"], "lost");
    assert!(finding["power"]["lost_units"].as_u64() > Some(0), "{finding}");
    assert!(!finding["state"]["lost"].as_array().unwrap().is_empty(), "{finding}");
    let args = ["capacitor", "crash", "--uf", "50,100,2000", "--cuts", "40", "--json"];
    let output = bench.leyden(&args).output().unwrap();
    let curve: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let lose = |at: usize| curve[at]["cuts_that_lose"].as_u64().unwrap();
    assert!(lose(0) > lose(1) && lose(1) > 0 && lose(2) == 0, "{curve}");
    let page = std::fs::read_to_string(bench.out().join("report.html")).unwrap();
    assert!(page.contains("2,000 uF") && page.contains("(0 of 40)"));
    let few = bench.leyden(&["capacitor", "crash", "--uf", "1"]).output().unwrap();
    assert_eq!(few.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&few.stderr);
    assert!(stderr.contains("uF or more"), "{stderr}");
    bench.is_clean();
}

#[test]
fn without_each_flush_the_audit_says_whether_it_is_missed() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let output = bench.leyden(&["audit", "crash", "--json", "--states", "4"]).output().unwrap();
    let audited: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flushes = audited.as_array().unwrap();
    assert!(flushes.len() >= 6, "{audited}");
    let missed = flushes.iter().filter(|flush| !flush["noticed"].is_null()).count();
    assert!(missed >= 3, "{audited}");
    bench.is_clean();
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], what: &str| {
        let mut command = Command::new(LEYDEN);
        let output =
            command.current_dir(folder.path()).arg("crashtest").args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
    };
    refused(&["run", "nowhere"], "no such folder");
    refused(&["show", "."], "plan.json");
    refused(&["worker", "."], "no namespace of its own");
    refused(
        &["devices/hexa", "--work", "true", "--check", "true", "--out", "x", "--size", "7 B"],
        "1 MiB",
    );
    assert!(!Path::new(&folder.path().join("x")).exists());
}

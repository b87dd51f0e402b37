//! `leyden crashtest` on this machine: what takes root, FUSE and loop devices is left out where they are not, and
//! said.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
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
struct Bench {
    folder: tempfile::TempDir,
    /// The size of its drives, which no other bench has: a loop device whose file is gone is told by it.
    size_kib: u32,
}

/// Sizes are handed out in steps of 64 KiB.
static BENCHES: AtomicU32 = AtomicU32::new(0);

impl Bench {
    fn new() -> Option<Self> {
        let doctor = Command::new(LEYDEN).args(["crashtest", "doctor"]).output().unwrap();
        if !doctor.status.success() {
            eprintln!("LEFT OUT: {}", String::from_utf8_lossy(&doctor.stderr).trim());
            return None;
        }
        let number = BENCHES.fetch_add(1, Ordering::Relaxed);
        Some(Self { folder: tempfile::tempdir().unwrap(), size_kib: (16 << 10) + 64 * number })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn size(&self) -> String {
        format!("{} KiB", self.size_kib)
    }

    fn out(&self) -> PathBuf {
        self.path().join("crash")
    }

    fn leyden(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LEYDEN);
        command.current_dir(self.path()).arg("crashtest").args(args).stdin(Stdio::null());
        command
    }

    fn recording(&self, work: &str, more: &[&str]) -> Output {
        let mut command = self.leyden(&["record", "devices/hexa", "--size", &self.size()]);
        command.args(["--latency", "off", "--out", "crash"]);
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
        let loops = Command::new("losetup")
            .args(["-n", "-l", "-O", "NAME,SIZELIMIT,BACK-FILE"])
            .output()
            .unwrap();
        let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
        let size_bytes = (u64::from(self.size_kib) << 10).to_string();
        let loops = loops.lines().filter(|line| line.contains(&size_bytes));
        let mounts = mounts.lines().filter(|line| line.contains(&folder));
        let mut left: Vec<String> = mounts.chain(loops).map(str::to_owned).collect();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let names = |of: &str| {
                let text = std::fs::read(entry.path().join(of)).unwrap_or_default();
                String::from_utf8_lossy(&text).contains(&folder)
            };
            if names("environ") || names("cmdline") {
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
    assert!(page.contains("acknowledged lost") && page.contains("lies of a drive"));
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
        steady(&mut summary)
    };
    assert_eq!(told("1"), told("2"));
}

/// Without what depends on time.
fn steady(summary: &mut Value) -> Value {
    let mut summary = summary.take();
    let count = summary["models"].as_array().unwrap().len();
    for at in 0..=count {
        let model = if at == count { &mut summary["control"] } else { &mut summary["models"][at] };
        model["seconds"] = Value::Null;
        model["inferred"] = Value::Null;
    }
    summary
}

#[test]
fn states_that_read_alike_are_tried_once_and_a_check_that_is_unsteady_is_told() {
    let Some(bench) = Bench::new() else { return };
    let work = "for i in 1 2 3 4 5 6; do printf %-4096s $i | dd of=$LEYDEN_DEV bs=4096 seek=$i conv=notrunc \
                status=none; done; echo early >>$LEYDEN_ACK; sync $LEYDEN_DEV; echo late >>$LEYDEN_ACK";
    bench.recorded(work, &["--fs", "none"]);
    // Of two blocks that were written, the others are not looked at.
    let check = "a=$(dd if=$LEYDEN_DEV bs=4096 skip=2 count=2 iflag=direct status=none | tr -d ' \\0'); \
                 [ ! -s $LEYDEN_ACKS ] || [ \"$a\" = 23 ] || { echo lost; exit 1; }";
    let run = |more: &[&str]| {
        let (code, mut summary, stderr) =
            bench.run(&[&["--states", "200", "--check", check, "--jobs", "1"], more].concat());
        assert_eq!(code, 1, "{stderr}{summary}");
        let inferred = summary["models"][0]["inferred"].as_u64().unwrap();
        (inferred, steady(&mut summary))
    };
    let ((inferred, guessed), (none, tried)) = (run(&[]), run(&["--try-all"]));
    assert_eq!(guessed, tried);
    assert_eq!(none, 0);
    let states = tried["models"][0]["states"].as_u64().unwrap();
    // Of 64 states between the promise and the flush, two blocks of six must be there: 16 hold, and the last state.
    assert_eq!(verdicts(&tried), "{\"held\":17,\"lost\":48}");
    assert!(states > 40 && inferred > states / 2, "{inferred} of {states}");
    // It fails from the third lie on, whatever the drive holds; where nothing is lost it was asked before.
    let unsteady = "echo >>$LEYDEN_TMP/n; [ $(wc -l <$LEYDEN_TMP/n) -lt 4 ]";
    let (_, summary, stderr) = bench.run(&["--states", "60", "--check", unsteady, "--jobs", "1"]);
    assert!(stderr.contains("--try-all"), "{stderr}");
    assert_eq!(summary["models"][0]["is_refuted"], true);
    bench.is_clean();
}

#[test]
fn checks_that_hang_leak_daemonise_or_die_leave_nothing() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &["--timeout", "500 ms"]);
    let daemon = "cd $LEYDEN_MOUNT; setsid sleep 1000 >/dev/null 2>&1 & sleep 0.05; exit 0";
    let (code, summary, stderr) = bench.run(&["--states", "4", "--check", daemon]);
    // It sees nothing: that is no verdict.
    assert_eq!((code, &summary["verdict"]), (6, &"check_blind".into()), "{stderr}");
    assert_eq!(summary["control"]["verdicts"].to_string(), "{\"held\":8}", "{summary}");
    assert!(stderr.contains("ignores all flushes"), "{stderr}");
    bench.is_clean();
    // Where nothing is lost it passes, as all of these.
    let unless_all = |fails: &str| format!("[ $(wc -l <$LEYDEN_ACKS) = 6 ] || {fails}");
    let run = |fails: &str| {
        let check = unless_all(fails);
        // The last moment comes first; the second state is the first moment's.
        bench.run(&["--states", "3", "--check", &check, "--jobs", "1", "--try-all"])
    };
    let (code, summary, _) = run("exec sleep 1000");
    assert_eq!(
        (code, summary["models"][0]["verdicts"]["hung"].as_u64()),
        (1, Some(2)),
        "{summary}"
    );
    let (code, summary, _) = run("kill -SEGV $$");
    let crashed = summary["models"][0]["verdicts"]["crashed"].as_u64();
    assert_eq!((code, crashed), (1, Some(2)), "{summary}");
    let (code, summary, _) = run("exit 77");
    let skipped = summary["models"][0]["verdicts"]["skipped"].as_u64();
    assert_eq!((code, skipped), (6, Some(2)), "{summary}");
    let (code, _, stderr) = bench.run(&["--states", "2", "--check", "no-such-program"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`no-such-program` cannot be run"), "{stderr}");
    // The check before it is kept.
    let shown = bench.leyden(&["show", "crash", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["plan"]["check"], unless_all("exit 77").as_str());
    bench.is_clean();
}

#[test]
fn a_program_that_holds_the_device_open_does_not_spoil_states() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &[]);
    let args = ["run", "crash", "--json", "--states", "60", "--jobs", "1", "--try-all"];
    let alone: Value =
        serde_json::from_slice(&bench.leyden(&args).output().unwrap().stdout).unwrap();
    let mut command = bench.leyden(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let size_bytes = (u64::from(bench.size_kib) << 10).to_string();
    let device = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut left = bench.left().into_iter();
        let line = left.find(|line| line.starts_with("/dev/loop") && line.contains(&size_bytes))?;
        line.split_whitespace().next().map(PathBuf::from)
    });
    // An open handle keeps the kernel's cache of the device, with an earlier state in it.
    let held = std::fs::File::open(device.expect("a loop device")).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(held);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let beside: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(came_out(&alone), came_out(&beside));
    bench.is_clean();
}

/// Files in a stranger's image give no root rights, and open no device.
#[test]
fn states_are_mounted_without_devices_and_set_user_ids() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let mounts = "grep \" $LEYDEN_MOUNT \" /proc/self/mounts | grep nosuid | grep -q nodev";
    let check = format!("{mounts} || exit 1; {CHECK}");
    let (code, summary, stderr) = bench.run(&["--states", "4", "--check", &check]);
    assert_eq!(code, 0, "{stderr}{summary}");
    assert!(summary["models"][0]["states"].as_u64().unwrap() > 0, "{summary}");
    bench.is_clean();
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[test]
fn interrupted_and_killed_tests_leave_nothing() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    for name in ["-INT", "-TERM", "-KILL"] {
        let mut child = bench
            // All of them: what the check reads of two states is alike, and the run would soon end by itself.
            .leyden(&["run", "crash", "--check", "sleep 0.2", "--states", "100000", "--try-all"])
            // One worker: its answer may come in while the run is interrupted, and nobody is busy then.
            .args(["--jobs", "1"])
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
    let begun = bench.path().join("begun");
    for name in ["-INT", "-KILL", "-INT"] {
        let mut child = bench
            .leyden(&["record", "devices/hexa", "--size", &bench.size(), "--out", "crash"])
            .args(["--latency", "off", "--work", "touch begun; sleep 100", "--check", "true"])
            .spawn()
            .unwrap();
        for _ in 0..600 {
            if begun.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_file(&begun).expect("the work has begun");
        assert!(!bench.left().is_empty(), "nothing to leave behind");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), if name == "-KILL" { None } else { Some(130) });
        // The next command waits until the killed one's worker has taken everything down.
        if name != "-KILL" {
            bench.is_clean();
        }
        let _ = std::fs::remove_file(bench.out().join("recording.leyrec")); // of one that was killed
    }
}

/// The program may be built anew while a series of crash tests runs.
#[test]
fn a_program_that_is_replaced_while_it_works_goes_on_to_its_verdict() {
    let Some(bench) = Bench::new() else { return };
    let program = bench.path().join("leyden");
    let run = |work: &str, out: &str| {
        // Copied by a child, so that it is never busy.
        assert!(Command::new("cp").arg(LEYDEN).arg(&program).status().unwrap().success());
        let mut command = Command::new(&program);
        command.current_dir(bench.path()).stdin(Stdio::null());
        command.args(["crashtest", "devices/hexa", "--size", &bench.size(), "--latency", "off"]);
        command.args(["--set", "device.buffer.region=none", "--set", "device.buffer.size=4 MiB"]);
        command.args(["--work", work, "--check", CHECK, "--states", "20", "--out", out]);
        command.output().unwrap()
    };
    for replaced in ["rm leyden", "rm leyden; echo exit 1 >leyden; chmod +x leyden"] {
        let output = run(&format!("{replaced}; {SYNCED}"), "crash");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{replaced}: {stderr}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("all held"), "{stderr}");
        std::fs::remove_dir_all(bench.out()).unwrap();
        std::fs::remove_file(&program).ok();
    }
    bench.is_clean();
}

// Found by CI: one worker of some twenty that are killed waited for itself for ever, and each sync of the machine with it.
#[test]
fn a_failure_of_the_test_itself_is_no_verdict() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    for round in 0..8 {
        let output = with_workers_killed(&bench);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "round {round}: {stderr}");
        bench.is_clean();
    }
}

/// The process that runs the states is killed: once it is started again; the second time that is given up.
fn with_workers_killed(bench: &Bench) -> Output {
    let mut child = bench
        .leyden(&["run", "crash", "--check", "sleep 2", "--jobs", "1", "--states", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ended = std::collections::BTreeSet::new();
    for _ in 0..1_000 {
        if ended.len() == 2 || child.try_wait().unwrap().is_some() {
            break;
        }
        let id = child.id().to_string();
        let listed = Command::new("pgrep").args(["-P", &id, "unshare"]).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
        if !listed.is_empty() && !ended.contains(&listed) {
            std::thread::sleep(Duration::from_millis(500));
            // One that has ended meanwhile by itself is none.
            let is_killed = Command::new("kill").args(["-KILL", &listed]).status().unwrap();
            if is_killed.success() {
                ended.insert(listed);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// A file system on a loop device, which goes with this.
struct Elsewhere {
    folder: PathBuf,
    device: String,
}

impl Elsewhere {
    fn new(base: &Path, name: &str) -> Self {
        let (image, folder) = (base.join(format!("{name}.img")), base.join(name));
        std::fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let said = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let device = said("losetup", &["-f", "--show", image.to_str().unwrap()]);
        said("mkfs.ext4", &["-q", "-F", &device]);
        said("mount", &[&device, folder.to_str().unwrap()]);
        Self { folder, device }
    }

    fn unmount(&self) {
        assert!(Command::new("umount").arg(&self.folder).status().unwrap().success());
    }

    /// No namespace has the device mounted.
    fn is_free(&self) -> bool {
        use std::os::unix::fs::OpenOptionsExt;
        const O_EXCL: i32 = 0o200;
        let opened =
            std::fs::File::options().read(true).write(true).custom_flags(O_EXCL).open(&self.device);
        opened.is_ok()
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let quiet = |program: &str, args: &[&str]| {
            let _ = Command::new(program).args(args).stderr(Stdio::null()).status();
        };
        quiet("umount", &["-q", self.folder.to_str().unwrap()]);
        quiet("losetup", &["-d", &self.device]);
    }
}

// A copy of a mount in a worker's namespace kept `leyden mount` from writing out what had been unmounted: data was lost.
#[test]
fn mounts_elsewhere_can_be_unmounted_while_a_worker_lives() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    // Where mounts propagate, and where they do not.
    let shared = bench.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let mount = |args: &[&str]| {
        assert!(Command::new("mount").args(args).arg(&shared).status().unwrap().success());
    };
    mount(&["-t", "tmpfs", "tmpfs"]);
    mount(&["--make-shared"]);
    let private = bench.path().join("private");
    std::fs::create_dir(&private).unwrap();
    let elsewhere = [Elsewhere::new(&shared, "one"), Elsewhere::new(&private, "two")];
    assert!(elsewhere.iter().all(|it| !it.is_free()));
    let begun = bench.path().join("begun");
    let seen = shared.join("one/lost+found");
    let check = format!("[ -d {} ] || exit 9; touch {}; sleep 20", seen.display(), begun.display());
    let mut child = bench
        .leyden(&["run", "crash", "--check", &check, "--jobs", "1", "--states", "2"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if begun.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let has_begun = begun.exists();
    let mut are_free = [false; 2];
    for (at, it) in elsewhere.iter().enumerate() {
        it.unmount();
        // Looked at several times: a worker of another test may just have begun. One that keeps it keeps it for good.
        are_free[at] = (0..100).any(|_| {
            let is_free = it.is_free();
            if !is_free {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_free
        });
    }
    let is_at_work = child.try_wait().unwrap().is_none();
    signal(&child, "-INT");
    child.wait().unwrap();
    drop(elsewhere);
    assert!(Command::new("umount").arg(&shared).status().unwrap().success());
    assert!(has_begun && is_at_work);
    assert_eq!(are_free, [true; 2], "a worker holds what was unmounted");
    bench.is_clean();
}

#[test]
fn impossible_recordings_are_refused_in_a_line() {
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

/// Pages of four units, overwritten and not flushed: whole on a drive with atomic writes, and torn on one without.
#[test]
fn pages_are_torn_unless_the_drive_has_atomic_writes() {
    let Some(bench) = Bench::new() else { return };
    let page = "head -c 8192 /dev/zero | tr '\\0' $i";
    let work = format!(
        "for i in 1 2 3 4; do {page} | dd of=$LEYDEN_DEV bs=8192 oflag=direct conv=notrunc,fsync status=none; \
                 echo $i >>$LEYDEN_ACK; done"
    );
    let check = "n=$(dd if=$LEYDEN_DEV bs=8192 count=1 iflag=direct status=none | fold -w 4096 | sort -u | wc -l); \
                 [ $n = 1 ] || { echo torn; exit 1; }; \
                 now=$(head -c 1 $LEYDEN_DEV | tr -d '\\0'); acked=$(tail -n 1 $LEYDEN_ACKS); \
                 [ ${now:-0} -ge ${acked:-0} ] || { echo lost; exit 1; }";
    let run = |more: &[&str]| {
        let _ = std::fs::remove_dir_all(bench.out());
        bench.recorded(&work, &[&["--fs", "none"], more].concat());
        bench.run(&["--states", "60", "--check", check])
    };
    let (code, summary, stderr) = run(&["--set", "device.atomic.nawupf=8 KiB"]);
    assert_eq!(code, 0, "{stderr}{summary}");
    let (code, summary, stderr) = run(&[]);
    assert_eq!(code, 1, "{stderr}{summary}");
    let (code, summary, stderr) = run(&["--set", "device.atomic.nawupf=4 KiB"]);
    assert_eq!(code, 1, "8 KiB is more than is promised: {stderr}{summary}");
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
    // The finding lists the losses that the drive reports; the check looked for them in vain.
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
    assert!(!String::from_utf8_lossy(&output.stderr).contains("no capacitor can help"));
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

/// A check that repairs what it finds: it moves block 2 to block 3, in one order or the other.
fn moving(steps: [&str; 2]) -> String {
    let read = |block: u32| {
        format!(
            "$(dd if=$LEYDEN_DEV bs=4096 skip={block} count=1 iflag=direct status=none | tr -d ' \\0')"
        )
    };
    format!(
        "[ -s $LEYDEN_ACKS ] || exit 0; put() {{ printf %-4096s \"$2\" | dd of=$LEYDEN_DEV bs=4096 seek=$1 \
         conv=fsync,notrunc status=none; }}; if [ \"{}\" = gold ]; then {}; {}; fi; \
         [ \"{}\" = gold ] || {{ echo lost: gold; exit 1; }}",
        read(2),
        steps[0],
        steps[1],
        read(3)
    )
}

#[test]
fn a_second_cut_finds_a_recovery_that_must_not_be_broken_off() {
    let Some(bench) = Bench::new() else { return };
    let work = "printf %-4096s gold | dd of=$LEYDEN_DEV bs=4096 seek=2 conv=fsync,notrunc status=none; \
                echo gold >>$LEYDEN_ACK; sync $LEYDEN_DEV";
    bench.recorded(work, &["--fs", "none"]);
    let (rash, sound) = (moving(["put 2 ''", "put 3 gold"]), moving(["put 3 gold", "put 2 ''"]));
    let (code, summary, stderr) = bench.run(&["--states", "20", "--check", &rash]);
    assert_eq!(code, 0, "{stderr}{summary}");
    let (code, summary, stderr) =
        bench.run(&["--states", "20", "--check", &rash, "--again", "30", "--jobs", "2"]);
    assert_eq!((code, &summary["verdict"]), (1, &"broken".into()), "{stderr}{summary}");
    let model = &summary["models"][1];
    assert_eq!(model["model"], "recovery");
    assert!(model["second_cuts"].as_u64() > Some(0), "{model}");
    assert_eq!(model["findings"][0]["said"], "lost: gold");
    assert!(!model["findings"][0]["is_flaky"].as_bool().unwrap(), "{model}");
    // It is found again from what is kept of it, and is not made small.
    let finding = "crash/findings/recovery-1.json";
    let replayed = bench.leyden(&["replay", "crash", finding]).output().unwrap();
    assert_eq!(replayed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&replayed.stdout).starts_with("acknowledged lost"));
    let shrunk = bench.leyden(&["shrink", "crash", finding]).output().unwrap();
    assert_eq!(shrunk.status.code(), Some(2));
    let (code, summary, stderr) =
        bench.run(&["--states", "20", "--check", &sound, "--again", "30"]);
    assert_eq!(code, 0, "{stderr}{summary}");
    assert!(summary["models"][1]["second_cuts"].as_u64() > Some(3), "{summary}");
    bench.is_clean();
}

/// A file system that is full is the machine's fault, and no script's: exit code 3, its name, and nothing left.
#[test]
fn a_full_disk_ends_a_recording_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let work = "dd if=/dev/urandom of=$LEYDEN_MOUNT/f bs=1M count=40 && sync $LEYDEN_MOUNT/f";
    for size in ["2m", "20m", "60m"] {
        let script = "mkdir -p full && mount -t tmpfs -o size=$1 none full && cd full && shift && \"$@\"; code=$?; ls -A; exit $code";
        let leyden = env!("CARGO_BIN_EXE_leyden");
        let output = Command::new("unshare")
            .args([
                "-m",
                "sh",
                "-c",
                script,
                "sh",
                size,
                leyden,
                "crashtest",
                "record",
                "devices/hexa",
            ])
            .args(["--work", work, "--check", "true", "--out", "crash"])
            .current_dir(bench.path())
            .output()
            .unwrap();
        let (left, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(3), "{size}: {said}");
        assert!(said.contains("the file system is full"), "{size}: {said}");
        assert_eq!(left, "", "{size}");
    }
}

/// A stranger's file system may have names that lead out of a folder. What is taken out of it stays in the folder.
#[test]
fn names_of_a_hostile_file_system_lead_out_of_no_folder() {
    let Some(bench) = Bench::new() else { return };
    let base = bench.path().join("base.img");
    std::fs::File::create(&base).unwrap().set_len(u64::from(bench.size_kib) << 10).unwrap();
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-b", "4096", "-O", "^metadata_csum"])
        .arg(&base)
        .status();
    assert!(made.unwrap().success());
    std::fs::write(bench.path().join("evil"), "evil").unwrap();
    for depth in 1..=6 {
        let name = format!("{}pwn", "aaX".repeat(depth));
        let write = format!("write {}/evil {name}", bench.path().display());
        assert!(
            Command::new("debugfs")
                .args(["-w", "-R", &write])
                .arg(&base)
                .output()
                .unwrap()
                .status
                .success()
        );
    }
    let mut bytes = std::fs::read(&base).unwrap();
    let mut turned = 0;
    for at in 0..bytes.len() - 6 {
        let is_name = bytes[at..].starts_with(b"aaXpwn") || bytes[at..].starts_with(b"aaXaaX");
        if is_name || turned > 0 && bytes[at..].starts_with(b"aaXpwn") {
            bytes[at..at + 3].copy_from_slice(b"../");
            turned += 1;
        }
    }
    assert_eq!(turned, 1 + 2 + 3 + 4 + 5 + 6);
    std::fs::write(&base, bytes).unwrap();
    let work = "echo 1 >$LEYDEN_MOUNT/f1; sync $LEYDEN_MOUNT/f1; echo ack 1 >>$LEYDEN_ACK";
    bench.recorded(work, &["--base", "base.img"]);
    let (code, summary, stderr) = bench.run(&["--states", "5", "--extract"]);
    assert!([0, 1, 5, 6, 7].contains(&code), "{code} {stderr}{summary}");
    let found = Command::new("find").arg(bench.path()).args(["-name", "pwn"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    bench.is_clean();
}

/// The kernel writes back later than a short work lasts: what nobody synced is in no state, which is said.
#[test]
fn data_that_only_the_unmount_wrote_is_told() {
    let write = "head -c 1048576 /dev/urandom >$LEYDEN_MOUNT/f";
    for (work, is_told) in
        [(write.to_owned(), true), (format!("{write}; sync $LEYDEN_MOUNT/f"), false)]
    {
        let Some(bench) = Bench::new() else { return };
        let said = bench.recording(&work, &[]).stderr;
        let said = String::from_utf8_lossy(&said);
        assert_eq!(
            said.contains("were written when the work had ended, by unmounting"),
            is_told,
            "{said}"
        );
    }
}

#[test]
fn a_state_is_looked_into_taken_along_and_begun_with() {
    let Some(bench) = Bench::new() else { return };
    let setup = "echo old >$LEYDEN_MOUNT/old";
    bench.recorded(HASTY, &["--setup", setup]);
    assert_eq!(bench.run(&["--states", "20"]).0, 1);
    let finding = "crash/findings/adversarial-1.json";
    let seed: Value =
        serde_json::from_slice(&std::fs::read(bench.path().join(finding)).unwrap()).unwrap();
    // Why: the promise, the write that it needed, and the file.
    let why = &seed["why"];
    assert!(why["promise"]["line"].is_string(), "{why}");
    assert!(why["needed"][0]["place"]["name"].is_string(), "{why}");
    let files = why["files"].as_array().unwrap();
    let line = why["promise"]["line"].as_str().unwrap();
    assert!(files.iter().any(|file| file["name"] == format!("f{line}").as_str()), "{why}");
    let replay =
        |more: &[&str]| bench.leyden(&["replay", "crash", finding]).args(more).output().unwrap();
    let ran = replay(&["--run", "cat $LEYDEN_MOUNT/old; echo wrong >&2; exit 9"]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"old\nwrong\n"[..], Some(9)));
    assert!(replay(&["--copy", "files", "--raw", "state.img"]).status.success());
    assert_eq!(std::fs::read(bench.path().join("files/old")).unwrap(), b"old\n");
    assert_eq!(replay(&["--copy", "files"]).status.code(), Some(3), "nothing is overwritten");
    // Without a terminal there is no shell, and that is told with what there is instead.
    let mut shell = Command::new("setsid");
    shell.arg(LEYDEN).args(["crashtest", "replay", "crash", finding, "--shell"]);
    let shell = shell.current_dir(bench.path()).stdin(Stdio::null()).output().unwrap();
    assert!(String::from_utf8_lossy(&shell.stderr).contains("--run COMMAND"));
    std::fs::rename(bench.out(), bench.path().join("first")).unwrap();
    bench.recorded("cp $LEYDEN_MOUNT/old $LEYDEN_MOUNT/new", &["--base", "state.img"]);
    let small =
        ["record", "devices/hexa", "--size", "1 MiB", "--base", "state.img", "--out", "other"];
    let refused =
        bench.leyden(&small).args(["--work", "true", "--check", "true"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("name its size with --size"));
    bench.is_clean();
}

#[test]
fn scripts_of_known_software_are_written_and_run() {
    let Some(bench) = Bench::new() else { return };
    let listed = bench.leyden(&["init"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&listed.stdout).lines().count(),
        leyden_crashtest::KITS.len()
    );
    assert_eq!(bench.leyden(&["init", "oracle"]).output().unwrap().status.code(), Some(2));
    let programs = [
        ("git", "git --version", 1),
        ("lmdb", "/usr/bin/python3 -c 'import lmdb'", 0),
        ("sqlite", "python3 -c 'import sqlite3'", 0),
        ("redis", "redis-server --version", 0),
    ];
    for (name, program, code) in programs {
        let written = bench.leyden(&["init", name]).output().unwrap();
        assert!(written.status.success(), "{name}");
        if !Command::new("sh").args(["-c", program]).output().unwrap().status.success() {
            eprintln!("LEFT OUT: {name} is not there");
            continue;
        }
        let mut run = Command::new("sh");
        run.args([&format!("{name}/run.sh"), "--states", "12"]).env("LEYDEN", LEYDEN);
        let output = run.current_dir(bench.path()).stdin(Stdio::null()).output().unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{name}: {out}{err}");
    }
    bench.is_clean();
}

/// A kit's folder; false if the machine lacks its software.
fn has_kit(bench: &Bench, name: &str, program: &str) -> bool {
    if !Command::new("sh").args(["-c", program]).output().unwrap().status.success() {
        eprintln!("LEFT OUT: {name} is not there");
        return false;
    }
    // The user postgres has to get in.
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(bench.leyden(&["init", name]).output().unwrap().status.success(), "{name}");
    true
}

const SQLITE: (&str, &str) = ("sqlite", "python3 -c 'import sqlite3'");
const POSTGRESQL: (&str, &str) =
    ("postgresql", "id postgres && (which initdb || ls /usr/lib/postgresql/*/bin/initdb)");

/// Runs a kit's script with these arguments more: exit code, and what was said.
fn kit(bench: &Bench, name: &str, args: &[&str]) -> (i32, String) {
    let mut run = Command::new("sh");
    run.arg(format!("{name}/run.sh")).args(args).env("LEYDEN", LEYDEN);
    let output = run.current_dir(bench.path()).stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// Changes a file of a kit.
fn changed(bench: &Bench, file: &str, edits: &[(&str, &str)]) {
    let path = bench.path().join(file);
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}: {text}");
        text = text.replace(from, to);
    }
    std::fs::write(path, text).unwrap();
}

/// fsyncgate: `fsync` fails once, and the pages that it failed for are clean afterwards. A database that stops promising then
/// keeps what it has promised; an application that takes the error for nothing loses what it promises from there on.
#[test]
fn databases_keep_what_they_promised_before_fsync_failed() {
    let Some(bench) = Bench::new() else { return };
    for ((name, program), fault, gives_up) in [
        (SQLITE, "flush:nth=20", "disk I/O error"),
        (SQLITE, "write:nth=30", "disk I/O error"),
        (POSTGRESQL, "flush:nth=40", "connection to server was lost"),
    ] {
        if !has_kit(&bench, name, program) {
            continue;
        }
        let (code, said) = kit(&bench, name, &["--states", "8", "--fault", fault]);
        assert_eq!(code, 0, "{name} {fault}: {said}");
        assert!(said.contains("I/O errors (") && said.contains(": held in "), "{said}");
        let log = std::fs::read_to_string(bench.path().join(name).join("crash/work.log")).unwrap();
        assert!(log.contains(gives_up), "{name} {fault}: {log}");
        std::fs::remove_dir_all(bench.path().join(name)).unwrap();
    }
    if has_kit(&bench, SQLITE.0, SQLITE.1) {
        let commit = "            db.execute(\"commit\")\n            acks";
        let careless = "            try: db.execute(\"commit\")\n            except sqlite3.Error: \
                        db.in_transaction and db.execute(\"rollback\")\n            acks";
        changed(&bench, "sqlite/sqlite.py", &[(commit, careless)]);
        let (code, said) = kit(&bench, "sqlite", &["--states", "8", "--fault", "flush:nth=20"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("NOT safe from I/O errors"), "{said}");
    }
    bench.is_clean();
}

/// A newcomer's first tries: the finding gives file, event and cause.
#[test]
fn findings_of_databases_name_file_event_and_cause() {
    let Some(bench) = Bench::new() else { return };
    if has_kit(&bench, SQLITE.0, SQLITE.1) {
        changed(&bench, "sqlite/run.sh", &[("WAL", "DELETE"), ("FULL 200", "FULL 40")]);
        let (code, said) = kit(&bench, "sqlite", &["--states", "20"]);
        assert_eq!(code, 1, "{said}");
        // The journal's removal is in the file system's own journal, which no flush of SQLite's covers.
        for part in [
            "why: promise `1` was made at event ",
            "why: its data reached the drive only at event ",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        for part in ["ext4 journal", "could not cover it", "why: file data.db-journal: "] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    if has_kit(&bench, POSTGRESQL.0, POSTGRESQL.1) {
        let edits = [("postgres.py setup", "postgres.py setup fsync=off"), ("work 200", "work 40")];
        changed(&bench, "postgresql/run.sh", &edits);
        let (code, said) = kit(&bench, "postgresql", &["--states", "12"]);
        assert_eq!(code, 1, "{said}");
        for part in [
            "why: promise `1` was made at event ",
            "why: no flush between",
            ", pg/pg_wal/0",
            "why: file pg/pg_wal/0",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    bench.is_clean();
}

#[test]
fn both_controls_and_the_number_of_states_have_their_exit_codes() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let junit = || std::fs::read_to_string(bench.out().join("junit.xml")).unwrap();
    let page = || std::fs::read_to_string(bench.out().join("report.html")).unwrap();
    // A check that fails on everything is no finding of the software's.
    let (code, summary, stderr) = bench.run(&["--check", "echo no such table; false"]);
    assert_eq!((code, &summary["verdict"]), (7, &"check_fails".into()), "{stderr}");
    assert_eq!(summary["intact"]["said"], "no such table");
    assert_eq!(summary["models"].as_array().unwrap().len(), 0, "nothing else was tried");
    assert!(junit().contains("failures=\"1\"") && junit().contains("no such table"), "{}", junit());
    assert!(page().contains("where nothing is lost"));
    // One that passes everything is none of its virtues.
    let (code, summary, _) = bench.run(&["--check", "true", "--states", "9"]);
    assert_eq!((code, &summary["verdict"]), (6, &"check_blind".into()), "{summary}");
    assert!(junit().contains("name=\"positive control\"") && junit().contains("failures=\"1\""));
    let (code, summary, _) =
        bench.run(&["--check", CHECK, "--states", "9", "--require-states", "10"]);
    assert_eq!((code, &summary["verdict"]), (8, &"too_few".into()), "{summary}");
    assert!(junit().contains("9 states is less than the 10 required"), "{}", junit());
    let (code, ..) = bench.run(&["--states", "9", "--require-states", "9"]);
    assert_eq!(code, 0);
    // Summary, page and JUnit file report the reason for the end.
    let slow = format!("sleep 0.2; {CHECK}");
    let args = ["run", "crash", "--check", &slow, "--budget", "1 s", "--try-all", "--jobs", "1"];
    let output = bench.leyden(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let mut lines = said.lines();
    assert!(lines.next().unwrap().starts_with("6 promises, "), "{said}");
    let stopped = "stopped by --budget after ";
    assert!(said.contains(stopped) && said.contains(" of 500 states"), "{said}");
    assert!(junit().contains(stopped) && page().contains(stopped));
    let shown = bench.leyden(&["show", "crash", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let model = &shown["last_run"]["models"][0];
    assert_eq!((&model["stop"], &model["asked"]), (&"budget".into(), &500.into()), "{model}");
    bench.is_clean();
}

// With more capacitance, more cuts lost something: without the mapping table a scan finds what was promised to nobody.
#[test]
fn where_no_capacitor_can_help_that_is_told() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &[]);
    let args = ["capacitor", "crash", "--uf", "60,3000", "--cuts", "30", "--json"];
    let output = bench.leyden(&args).output().unwrap();
    let curve: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no capacitor can help"));
    let of = |at: usize, what: &str| curve[at][what].as_u64().unwrap();
    // States that hold with the smaller bank were recovered by a scan.
    let more = of(1, "cuts_that_lose") - of(0, "cuts_that_lose").min(of(1, "cuts_that_lose"));
    assert!(more <= of(0, "scans") && of(1, "scans") == 0, "{curve}");
}

// Data from before the recording lies on flash then, and no bank is too small for it.
#[test]
fn a_small_bank_loses_what_the_run_wrote_and_not_what_was_there_before() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &["--set", "device.buffer.region=full"]);
    let args = ["capacitor", "crash", "--uf", "40,3000", "--cuts", "20", "--json"];
    let output = bench.leyden(&args).output().unwrap();
    let curve: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let lost = |at: usize| curve[at]["cuts_that_lose"].as_u64().unwrap();
    assert!(lost(0) >= lost(1), "{curve}");
    bench.is_clean();
}

#[test]
fn without_each_flush_the_audit_says_whether_it_is_missed() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let output = bench.leyden(&["audit", "crash", "--json", "--states", "4"]).output().unwrap();
    let audited: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &audited["as_it_is"]["verdict"]), (Some(0), &"held".into()));
    let flushes = audited["flushes"].as_array().unwrap();
    assert!(flushes.len() >= 6, "{audited}");
    let missed = flushes.iter().filter(|flush| !flush["noticed"].is_null()).count();
    assert!(missed >= 3, "{audited}");
    // A check that fails with all flushes shows nothing about one flush.
    std::fs::remove_dir_all(bench.out()).unwrap();
    bench.recorded(HASTY, &[]);
    let output = bench.leyden(&["audit", "crash"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("NOT crash-safe") && said.contains("no flush was left out"), "{said}");
    bench.is_clean();
}

#[test]
fn wrong_recordings_are_refused() {
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

/// The states of `model`, by verdict and cause.
fn came_out(summary: &Value) -> Vec<(String, String)> {
    let findings = summary["models"][0]["findings"].as_array().unwrap();
    let mut all: Vec<_> = findings
        .iter()
        .map(|finding| (finding["verdict"].to_string(), finding["cause"].to_string()))
        .collect();
    all.push((verdicts(summary), summary["control"]["verdicts"].to_string()));
    all
}

#[test]
fn files_taken_out_of_an_image_are_those_that_are_mounted() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &["--fsck"]);
    let (code, mounted, stderr) = bench.run(&["--states", "60", "--seed", "3"]);
    assert_eq!(code, 1, "{stderr}");
    let small = |more: &[&str]| -> Value {
        let args = ["shrink", "crash", "crash/findings/adversarial-1.json", "--json"];
        let output = bench.leyden(&args).args(more).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let of_mounted = small(&[]);
    let (code, taken_out, stderr) = bench.run(&["--states", "60", "--seed", "3", "--extract"]);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(taken_out["models"][0]["inferred"], 0, "nobody knows what was read");
    assert_eq!(came_out(&mounted), came_out(&taken_out));
    let of_taken_out = small(&["--extract"]);
    assert_eq!(of_mounted["state"], of_taken_out["state"]);
    assert_eq!(of_mounted["lost"], of_taken_out["lost"]);
    bench.is_clean();
}

/// A folder that was changed, or came from elsewhere, runs nothing.
#[test]
fn the_commands_of_a_strangers_folder_are_not_run() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(HASTY, &[]);
    let plan = bench.out().join("plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    let theirs = text.replace("while read i", "echo it ran >&2; while read i");
    assert_ne!(text, theirs);
    std::fs::write(&plan, theirs).unwrap();
    let finding = bench.path().join("none.json");
    for args in [
        &["run", "crash"][..],
        &["audit", "crash"],
        &["capacitor", "crash", "--uf", "100"],
        &["shrink", "crash", finding.to_str().unwrap()],
        &["replay", "crash", finding.to_str().unwrap()],
    ] {
        let output = bench.leyden(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("--trust") && !said.contains("\nit ran"), "{args:?}: {said}");
    }
    // Commands that only read still work.
    assert!(bench.leyden(&["show", "crash"]).output().unwrap().status.success());
    // Once is enough.
    assert_eq!(bench.run(&["--states", "8", "--trust"]).0, 1);
    assert_eq!(bench.run(&["--states", "8"]).0, 1);
    bench.is_clean();
}

/// I/O errors: software that goes on as if nothing had been is found, and software that stops promising is not.
#[test]
fn promises_made_in_spite_of_io_errors_are_found() {
    let Some(bench) = Bench::new() else { return };
    let work = |then: &str| {
        format!(
            "for i in 1 2 3 4 5 6; do echo $i >$LEYDEN_MOUNT/f$i; sync $LEYDEN_MOUNT/f$i {then} \
             echo ack $i >>$LEYDEN_ACK; done; true"
        )
    };
    for rule in ["flush:nth=7", "write:nth=9", "any:nth=12,times=all"] {
        for (then, verdict, code) in [("&&", "held", 0), (";", "broken", 1)] {
            bench.recorded(&work(then), &["--fault", rule]);
            let (came, summary, stderr) = bench.run(&["--states", "40"]);
            assert_eq!(came, code, "{rule} {then}: {stderr}{summary}");
            assert_eq!(summary["verdict"], verdict, "{rule} {then}: {summary}");
            assert_eq!(summary["faults"].as_array().unwrap().len(), 1, "{summary}");
            std::fs::remove_dir_all(bench.out()).unwrap();
        }
    }
    // An error that never came says nothing.
    let output = bench.recording(SYNCED, &["--fault", "write:nth=100000"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no command was made to fail"), "{said}");
    bench.is_clean();
}

#[test]
fn a_recording_is_run_without_root() {
    let Some(bench) = Bench::new() else { return };
    let folder = bench.path();
    // A user who may do nothing, and who gets to the program and the folder.
    let as_nobody = |program: &Path, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(program).args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
    };
    let program = folder.join("leyden");
    std::fs::copy(LEYDEN, &program).unwrap();
    let namespaces = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "true"];
    if !as_nobody(Path::new("unshare"), &namespaces).status.success() {
        eprintln!("LEFT OUT: this machine has no namespaces of users");
        return;
    }
    bench.recorded(HASTY, &[]);
    let (code, mounted, stderr) = bench.run(&["--states", "40"]);
    assert_eq!(code, 1, "{stderr}{mounted}");
    std::fs::remove_file(bench.out().join("report.html")).unwrap();
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(folder).status().unwrap();
    assert!(given.success());
    // Its commands are root's, until this user says otherwise.
    let args = ["crashtest", "run", "crash", "--states", "40", "--json"];
    let output = as_nobody(&program, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--trust") && stderr.contains("plan.json"), "{stderr}");
    let output = as_nobody(&program, &[&args[..], &["--trust"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let taken_out: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(came_out(&mounted), came_out(&taken_out));
    assert!(bench.out().join("report.html").exists());
    // A command that takes root reports that in one line.
    let args = ["crashtest", "devices/hexa", "--work", "true", "--check", "true", "--out", "x"];
    let output = as_nobody(&program, &args);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mounting takes root"));
    bench.is_clean();
}

#[test]
fn logs_of_dm_log_writes_are_imported_and_exported() {
    let Some(bench) = Bench::new() else { return };
    bench.recorded(SYNCED, &[]);
    let (_, recorded, _) = bench.run(&["--states", "80"]);
    let to = ["export", "crash", "run.log", "--base", "base.img"];
    assert!(bench.leyden(&to).output().unwrap().status.success());
    // An output replaces nothing.
    assert_eq!(bench.leyden(&to).output().unwrap().status.code(), Some(3));
    std::fs::rename(bench.out(), bench.path().join("first")).unwrap();
    let import = |check: &str| {
        let args = ["import", "devices/hexa", "run.log", "--base", "base.img", "--begin", "begin"];
        bench.leyden(&args).args(["--check", check, "--out", "crash"]).output().unwrap()
    };
    let imported = import(CHECK);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let (code, again, stderr) = bench.run(&["--states", "80", "--model", "adversarial,realistic"]);
    assert_eq!(code, 0, "{stderr}{again}");
    assert_eq!((&again["acks"], &again["flushes"]), (&recorded["acks"], &recorded["flushes"]));
    assert!(again["control"]["verdicts"]["lost"].as_u64() > Some(0), "{again}");
    assert_eq!(import(CHECK).status.code(), Some(2), "a recording is not replaced");

    // A log that QEMU wrote. It knows no marks.
    let folder = bench.path();
    let options = "driver=raw,file.driver=blklogwrites,file.log-sector-size=512,file.file.driver=file,\
                   file.file.filename=disk.img,file.log.driver=file,file.log.filename=qemu.log";
    for name in ["disk.img", "qemu.log"] {
        std::fs::File::create(folder.join(name)).unwrap().set_len(16 << 20).unwrap();
    }
    let qemu = Command::new("qemu-io")
        .args([
            "-t",
            "writeback",
            "--image-opts",
            options,
            "-c",
            "write -P 49 4k 4k",
            "-c",
            "flush",
        ])
        .args(["-c", "write -P 50 4k 4k", "-c", "write -P 51 8k 4k"])
        .current_dir(folder)
        .output();
    let Ok(qemu) = qemu else {
        eprintln!("LEFT OUT: qemu-io is not there");
        return;
    };
    assert!(qemu.status.success(), "{}", String::from_utf8_lossy(&qemu.stderr));
    std::fs::rename(bench.out(), folder.join("second")).unwrap();
    let check = "a=$(dd if=$LEYDEN_DEV bs=4096 skip=1 count=2 iflag=direct status=none | tr -d '\\0' | \
                 tr -s 123); case $a in 3) echo lost; exit 1;; 23|2|13|1|'') ;; *) exit 9;; esac";
    let args = ["import", "devices/hexa", "qemu.log", "--size", "16 MiB", "--fs", "none"];
    let imported = bench.leyden(&args).args(["--check", check, "--out", "crash"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&imported.stderr);
    assert!(imported.status.success() && stderr.contains("no mark"), "{stderr}");
    // Before the flush its block may be missing, with nothing behind it; after it, it is one of two.
    let (code, found, stderr) = bench.run(&["--states", "80"]);
    assert_eq!(code, 0, "{stderr}{found}");
    assert_eq!(verdicts(&found), "{\"held\":5}", "{found}");
    assert!(found["control"]["findings"][0]["said"] == "lost", "{found}");
    bench.is_clean();
}

//! `leyden crashtest --files`: without root, mounts of devices or loop devices. What takes FUSE is left out where it is not,
//! and said.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const LEYDEN: &str = env!("CARGO_BIN_EXE_leyden");

/// Five values, each written beside the last and renamed; the folder is not synced.
const RENAMED: &str = "for i in 1 2 3 4 5; do echo $i >$LEYDEN_MOUNT/tmp; sync $LEYDEN_MOUNT/tmp; \
                       mv $LEYDEN_MOUNT/tmp $LEYDEN_MOUNT/value; echo ack $i >>$LEYDEN_ACK; done";
/// The same with a sync of the folder before each promise.
const SYNCED: &str = "for i in 1 2 3 4 5; do echo $i >$LEYDEN_MOUNT/tmp; sync $LEYDEN_MOUNT/tmp; \
                      mv $LEYDEN_MOUNT/tmp $LEYDEN_MOUNT/value; sync $LEYDEN_MOUNT; \
                      echo ack $i >>$LEYDEN_ACK; done";
const CHECK: &str = "want=$(tail -n 1 $LEYDEN_ACKS); got=$(cat $LEYDEN_MOUNT/value 2>/dev/null); \
                     [ \"${got:-0}\" -ge \"${want:-0}\" ] || { echo lost $want, found $got; exit 1; }";

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Option<Self> {
        let bench = Self(tempfile::tempdir().unwrap());
        let doctor = bench.again(&["doctor", "--files"]);
        if code(&doctor) != 0 {
            eprintln!("LEFT OUT: {}", text(&doctor).trim());
            return None;
        }
        Some(bench)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// In a namespace of users, where nothing may be done that takes the machine's root.
    fn leyden(&self, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", LEYDEN, "crashtest"]).args(args);
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    fn test(&self, work: &str, check: &str, more: &[&str]) -> Output {
        let mut command = self.leyden(more);
        command.args(["--work", work, "--check", check, "--out", "crash"]).output().unwrap()
    }

    fn again(&self, args: &[&str]) -> Output {
        self.leyden(args).output().unwrap()
    }
}

fn text(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{}", text(output)))
}

#[test]
fn a_rename_that_is_not_synced_is_lost_and_named() {
    let Some(bench) = Bench::new() else { return };
    let output = bench.test(RENAMED, CHECK, &["--files"]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("5 promises, 5 file syncs: NOT crash-safe"), "{said}");
    assert!(said.contains("lies of a disk that ignores all syncs"), "{said}");
    assert!(
        said.contains("lost: rename of tmp and value, and later entries of the journal"),
        "{said}"
    );
    // The finding can be tried again, made small, looked into and taken along.
    let finding = "crash/findings/adversarial-1.json";
    assert_eq!(code(&bench.again(&["replay", "crash", finding])), 1);
    let shrunk = bench.again(&["shrink", "crash", finding]);
    assert!(text(&shrunk).contains("1 of 1 lost atoms are needed"), "{}", text(&shrunk));
    let listed = bench.again(&["replay", "crash", finding, "--run", "ls $LEYDEN_MOUNT"]);
    // The last rename is lost: both names are there.
    assert_eq!(text(&listed), "tmp\nvalue\n");
    let copied = bench.again(&["replay", "crash", finding, "--copy", "taken"]);
    assert_eq!(code(&copied), 0, "{}", text(&copied));
    let taken =
        |name: &str| std::fs::read_to_string(bench.path().join("taken").join(name)).unwrap();
    assert_eq!((taken("tmp").as_str(), taken("value").as_str()), ("5\n", "4\n"));
    let shown = bench.again(&["show", "crash"]);
    assert!(text(&shown).contains("xfs"), "{}", text(&shown));
    let page = std::fs::read_to_string(bench.path().join("crash/report.html")).unwrap();
    assert!(page.contains("lost: rename of tmp and value"), "the page names what is lost");
    assert!(page.contains("The time of the work.") && !page.contains("Capacitors"), "no drive");
}

/// A check that stays and holds the folder open sees each state's files by it.
#[test]
fn a_handle_on_the_folder_lists_what_is_there() {
    let Some(bench) = Bench::new() else { return };
    let work = "for i in 1 2 3; do echo $i >$LEYDEN_MOUNT/f$i; sync $LEYDEN_MOUNT/f$i $LEYDEN_MOUNT; echo ack $i >>$LEYDEN_ACK; done";
    let check = r#"exec python3 -c '
import os, sys
folder = os.open(os.environ["LEYDEN_MOUNT"], os.O_RDONLY)
for _ in sys.stdin:
    promised = [line.strip() for line in open(os.environ["LEYDEN_ACKS"])]
    by_handle, by_path = sorted(os.listdir(folder)), sorted(os.listdir(os.environ["LEYDEN_MOUNT"]))
    if by_handle != by_path: print("differs", by_handle, by_path, flush=True)
    elif any("f" + name not in by_path for name in promised): print("lost", promised, by_path, flush=True)
    else: print("ok", flush=True)
'"#;
    let output = bench.test(work, check, &["--files", "--check-server"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
}

/// docs/crashtest-tutorial.md shows these scripts and this result.
#[test]
fn the_page_shows_what_is_printed() {
    let Some(bench) = Bench::new() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crashtest-tutorial.md");
    let page = std::fs::read_to_string(page).unwrap();
    // The fenced block behind these words.
    let block = |before: &str| {
        let (_, rest) = page.split_once(before).unwrap();
        let (_, rest) = rest.split_once("```").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let (work, check) = (block("Save it as `work.sh`"), block("Save it as `check.sh`"));
    let output = bench.test(&work, &check, &["--files"]);
    assert_eq!(code(&output), 1);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in block("The output ends with:").lines() {
        // Rates and folders are those of a machine.
        let (line, _) = line.split_once(" repeats left out").unwrap_or((line, ""));
        assert!(printed.contains(line), "`{line}` is not in:\n{printed}");
    }
    // The fix of the page.
    let (rename, synced) = ("$LEYDEN_MOUNT/value\n", block("below the line with `mv`"));
    let fixed = work.replace(rename, &format!("{rename}{synced}"));
    let _ = std::fs::remove_dir_all(bench.path().join("crash"));
    let output = bench.test(&fixed, &check, &["--files"]);
    let printed = text(&output);
    let (_, said) = page.split_once("Now the first line is `").unwrap();
    let said = said.split_once('`').unwrap().0;
    assert!(code(&output) == 0 && printed.contains(said), "`{said}` is not in:\n{printed}");
}

#[test]
fn synced_renames_hold_and_each_sync_is_needed() {
    let Some(bench) = Bench::new() else { return };
    for rules in ["--files", "--files=ext4", "--files=btrfs", "--files=posix"] {
        let _ = std::fs::remove_dir_all(bench.path().join("crash"));
        let output = bench.test(SYNCED, CHECK, &[rules]);
        assert_eq!(code(&output), 0, "{rules}: {}", text(&output));
    }
    let output = bench.again(&["audit", "crash", "--states", "50"]);
    let said = text(&output);
    // The file's sync is needed, and the folder's: by the standard neither brings the other.
    assert!(
        said.contains("10 syncs, each left out once: without 10 of them the check fails"),
        "{said}"
    );
}

/// The kernel asks no FUSE folder for sync(2) and syncfs(2). What was written to memory maps is in them, too.
#[test]
fn a_sync_of_everything_is_noticed() {
    let Some(bench) = Bench::new() else { return };
    let work = r#"cd $LEYDEN_MOUNT
echo a >a; sync; echo ack a >>$LEYDEN_ACK
echo b >b; sync -f $LEYDEN_MOUNT; echo ack b >>$LEYDEN_ACK
python3 - <<'END'
import mmap, os
fd = os.open("c", os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 4096)
m = mmap.mmap(fd, 4096); m[0:2] = b"c\n"
os.sync()
open(os.environ["LEYDEN_ACK"], "a").write("ack c\n")
os.kill(os.getpid(), 9)
END
echo d >d; sync -f /tmp    # of another file system
true"#;
    let check = r#"while read name; do [ "$(head -n 1 $LEYDEN_MOUNT/$name 2>/dev/null)" = $name ] || { echo lost $name; exit 1; }; done <$LEYDEN_ACKS"#;
    let output = bench.test(work, check, &["--files"]);
    let said = text(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("3 promises, 3 file syncs: held"), "{said}");
}

/// Everything that FUSE passes on is in the states: what is there at the end is there where nothing is lost.
#[test]
fn each_kind_of_call_is_recorded() {
    let Some(bench) = Bench::new() else { return };
    let work = r#"cd $LEYDEN_MOUNT && python3 - <<'END'
import ctypes, mmap, os
def sync(path):
    fd = os.open(path, os.O_RDONLY); os.fsync(fd); os.close(fd)
os.mkdir("a"); os.mkdir("a/b"); os.mkdir("gone"); os.rmdir("gone")
with open("a/b/f", "wb") as f: f.write(b"x" * 10000); f.truncate(9000)
os.link("a/b/f", "hard"); os.symlink("a/b/f", "soft"); os.chmod("hard", 0o640)
os.rename("a/b", "a/c")
# Names are counted: a file that has another one is linked again.
for name in "pqmz": open("a/" + name, "w").close()
os.link("a/p", "a/p2"); assert os.stat("a/p").st_nlink == 2; os.unlink("a/p"); os.link("a/p2", "a/p3")
os.link("a/m", "a/m2"); os.rename("a/z", "a/m"); os.link("a/m2", "a/m3")
was = os.stat("hard").st_ctime_ns; os.chmod("hard", 0o640); assert os.stat("hard").st_ctime_ns > was
# A folder is listed as it is now, also by a handle that has listed it.
fd = os.open("a", os.O_RDONLY); before = os.listdir(fd); open("a/later", "w").close()
assert "later" in os.listdir(fd) and "later" not in before; os.close(fd)
fd = os.open("mapped", os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 8192)
m = mmap.mmap(fd, 8192); m[5000:5003] = b"map"; m.flush(); m.close(); os.close(fd)
fd = os.open("direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
m = mmap.mmap(-1, 4096); m.write(b"d" * 4096); os.write(fd, m); os.close(fd)
fd = os.open("safe", os.O_WRONLY | os.O_CREAT | os.O_SYNC); os.write(fd, b"safe"); os.close(fd)
fd = os.open("long", os.O_WRONLY | os.O_CREAT); os.posix_fallocate(fd, 0, 20000); os.pwrite(fd, b"l" * 20000, 0)
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
assert libc.fallocate(fd, 3, 4096, 4096) == 0      # a hole
assert libc.fallocate(fd, 8, 0, 4096) == -1        # a range cannot be collapsed
os.truncate("long", 1 << 40); os.close(fd)         # a terabyte of nothing
for at in range(1000): open("a/n%d" % at, "w").close()
open("left", "w").write("left"); open("right", "w").write("right")
assert libc.renameat2(-100, b"left", -100, b"right", 2) == 0   # exchanged
try: os.mkfifo("pipe"); raise SystemExit("a pipe was made")
except PermissionError: pass
try: os.mkdir(b"\xff"); raise SystemExit("a name that is no UTF-8 was taken")
except OSError as e: assert e.errno == 84, e
held = open("deleted", "w+"); held.write("still here"); held.flush(); os.unlink("deleted")
held.seek(0); assert held.read() == "still here" and os.fstat(held.fileno()).st_nlink == 0
for at in os.listdir("."): sync(at) if at != "soft" else None
sync("a/c"); sync("a"); sync(".")
END
echo ack all >>$LEYDEN_ACK"#;
    let check = r#"[ -s $LEYDEN_ACKS ] || exit 77; cd $LEYDEN_MOUNT && python3 - <<'END'
import os
assert open("a/c/f", "rb").read() == b"x" * 9000 and os.path.samefile("a/c/f", "hard")
assert os.readlink("soft") == "a/b/f" and not os.path.exists("gone") and not os.path.exists("deleted")
assert os.stat("hard").st_mode & 0o777 == 0o640
m = open("mapped", "rb").read(); assert m == b"\0" * 5000 + b"map" + b"\0" * 3189
assert open("direct", "rb").read() == b"d" * 4096 and open("safe").read() == "safe"
assert os.path.getsize("long") == 1 << 40
l = open("long", "rb").read(20000); assert l == b"l" * 4096 + b"\0" * 4096 + b"l" * (20000 - 8192)
assert os.stat("a/m2").st_nlink == 2 and os.stat("a/p3").st_nlink == 2
assert os.stat("long").st_blocks < 100
assert len(os.listdir("a")) == 1008 and open("left").read() == "right" and open("right").read() == "left"
END"#;
    let output = bench.test(work, check, &["--files", "--states", "20"]);
    // The check is blind to what was not synced before: nothing was promised then.
    assert!([0, 6].contains(&code(&output)), "{}", text(&output));
    let summary = std::fs::read_to_string(bench.path().join("crash/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["intact"]["verdict"], "held", "{summary}");
}

/// The same scripts as on a modelled drive. What each setting promises holds, and what it does not promise is lost.
#[test]
fn known_software_does_at_the_level_of_files_what_it_promises() {
    let Some(bench) = Bench::new() else { return };
    let compiles = |compiler: &str, header: &str| {
        format!("echo '#include <{header}>' | {compiler} -E - >/dev/null")
    };
    let programs = [
        ("sqlite", "python3 -c 'import sqlite3'".to_owned(), 0, "100"),
        ("git", "git --version".to_owned(), 1, "100"),
        ("redis", "redis-server --version".to_owned(), 0, "100"),
        ("lmdb", "/usr/bin/python3 -c 'import lmdb'".to_owned(), 0, "100"),
        ("gdbm", compiles("cc -x c", "gdbm.h"), 1, "2000"),
        ("leveldb", compiles("c++ -x c++", "leveldb/db.h"), 0, "100"),
        // Modules and crates are looked for where they are kept, or fetched.
        (
            "pebble",
            "GOTOOLCHAIN=local go list -m github.com/cockroachdb/pebble/v2@v2.1.7".to_owned(),
            0,
            "100",
        ),
        ("redb", "cargo info redb@4.6.0".to_owned(), 0, "100"),
        ("sled", "cargo info sled@0.34.7".to_owned(), 1, "100"),
    ];
    for (name, program, want, states) in programs {
        if !Command::new("sh").args(["-c", &program]).output().unwrap().status.success() {
            eprintln!("LEFT OUT: {name} is not there");
            continue;
        }
        assert_eq!(code(&bench.again(&["init", name])), 0, "{name}");
        let mut run = Command::new("unshare");
        run.args([
            "--user",
            "--map-root-user",
            "sh",
            &format!("{name}/run.sh"),
            "--files",
            "--states",
            states,
        ]);
        let run = run.current_dir(bench.path()).env("LEYDEN", LEYDEN).stdin(Stdio::null());
        let output = run.output().unwrap();
        assert_eq!(code(&output), want, "{name}: {}", text(&output));
    }
}

/// A page that is overwritten in place, where the drive keeps sectors.
#[test]
fn pages_are_torn_between_sectors() {
    let Some(bench) = Bench::new() else { return };
    let fill = |byte: &str, more: &str| {
        format!(
            "printf '%4096s' | tr ' ' {byte} | dd of=$LEYDEN_MOUNT/f bs=4096 {more} status=none"
        )
    };
    let work =
        format!("{} && echo ack b >>$LEYDEN_ACK", fill("b", "conv=notrunc,fsync iflag=fullblock"));
    let check = "all=$(tr -s ab <$LEYDEN_MOUNT/f); [ $all = b ] || [ $all = a -a ! -s $LEYDEN_ACKS ] || \
                 { echo torn; exit 1; }";
    let setup = fill("a", "iflag=fullblock");
    let output = bench.test(&work, check, &["--files", "--setup", &setup]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    let output = bench.again(&["run", "crash", "--atom", "512"]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("| torn") && said.contains("lost: bytes "), "{said}");
    assert_eq!(code(&bench.again(&["replay", "crash", "crash/findings/adversarial-1.json"])), 1);
    let page = std::fs::read_to_string(bench.path().join("crash/report.html")).unwrap();
    assert!(page.contains("512 B of a file are kept or lost as a whole"));
    let output = bench.again(&["run", "crash", "--atom", "8192"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output).contains("cannot be torn into pieces of 8192"), "{}", text(&output));
    // Nor is a run recorded in vain.
    let output = bench.again(&[
        "--files", "--atom", "8192", "--work", "true", "--check", "true", "--out", "vain",
    ]);
    assert!(text(&output).contains("cannot be torn into pieces of 8192"), "{}", text(&output));
    let output = bench.again(&[
        "devices/hexa",
        "--atom",
        "512",
        "--work",
        "true",
        "--check",
        "true",
        "--out",
        "vain",
    ]);
    assert!(text(&output).contains("no drive tears a sector"), "{}", text(&output));
    assert!(!bench.path().join("vain").exists());
}

/// Acknowledged commits of a primary and its replica are on both when both lose power, but for those that were not synced.
#[test]
fn a_replica_has_what_was_acknowledged() {
    let Some(bench) = Bench::new() else { return };
    let has = "[ $(id -u) = 0 ] && id postgres && PATH=$PATH:$(echo /usr/lib/postgresql/*/bin) command -v postgres pg_basebackup";
    if !Command::new("sh").args(["-c", has]).output().unwrap().status.success() {
        eprintln!("LEFT OUT: PostgreSQL with a replica takes root and postgresql");
        return;
    }
    // Its programs run as another user, who gets to the scripts and to the folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.path(), open).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(LEYDEN);
        command.arg("crashtest").args(args).current_dir(bench.path()).stdin(Stdio::null());
        command.output().unwrap()
    };
    let output = run(&["--db", "postgresql-replica", "--states", "6", "--out", "kept"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    assert!(text(&output).contains("60 promises"), "{}", text(&output));
    let script = |what: &str| format!("kept/db/replica.py {what}");
    let output = run(&[
        "--files",
        "--drives",
        "2",
        "--setup",
        &script("setup"),
        "--work",
        &script("work 30 fsync=off"),
        "--check",
        &format!("exec {}", script("check")),
        "--check-server",
        "--states",
        "4",
        "--out",
        "lost",
    ]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("member 1 ") && said.contains("member 2 has"), "{said}");
    assert!(said.contains("drive 1 lost: ") || said.contains("drive 2 lost: "), "{said}");
}

/// After an fsync that failed, a second one returns success and writes nothing.
#[test]
fn a_sync_that_fails_once_is_found_to_lose_what_it_was_for() {
    let Some(bench) = Bench::new() else { return };
    let work = r#"python3 - <<'END'
import os
fd = os.open(os.environ["LEYDEN_MOUNT"] + "/f", os.O_RDWR | os.O_CREAT)
with open(os.environ["LEYDEN_ACK"], "a", buffering=1) as acks:
    for number in range(5):
        os.pwrite(fd, b"%d" % number, 4096 * number)
        while True:
            try: os.fsync(fd); break
            except OSError: pass
        print("ack", number, file=acks)
END"#;
    let check = r#"while read n; do got=$(dd if=$LEYDEN_MOUNT/f bs=1 skip=$((n * 4096)) count=1 2>/dev/null)
[ "$got" = $n ] || { echo lost $n; exit 1; }; done <$LEYDEN_ACKS"#;
    let output = bench.test(work, check, &["--files"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    std::fs::remove_dir_all(bench.path().join("crash")).unwrap();
    let output = bench.test(work, check, &["--files", "--fault", "flush:nth=3"]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("I/O errors (flush:nth=3,times=1)") && said.contains("lost 2"), "{said}");
    std::fs::remove_dir_all(bench.path().join("crash")).unwrap();
    let output = bench.test(work, check, &["--files", "--fault", "flush:nth=9"]);
    assert!(text(&output).contains("no call was made to fail: flush:nth=9"), "{}", text(&output));
}

#[test]
fn options_that_take_a_drive_are_refused_by_name() {
    let Some(bench) = Bench::new() else { return };
    for more in [["--size", "64 MiB"], ["--fs", "xfs"], ["--base", "image"]] {
        let output = bench.test("true", "true", &["--files", more[0], more[1]]);
        assert_eq!(code(&output), 2, "{more:?}");
        let said = text(&output);
        let is_refused = said.contains("cannot be used with") || said.contains("takes a drive");
        assert!(is_refused && said.contains(more[0]), "{said}");
        assert!(!bench.path().join("crash").exists(), "it was refused before anything was made");
    }
    assert_eq!(code(&bench.test(SYNCED, CHECK, &["--files"])), 0);
    for args in [
        &["run", "crash", "--again", "3"][..],
        &["run", "crash", "--model", "realistic"],
        &["run", "crash", "--try-all"],
        &["audit", "crash", "--extract"],
        &["capacitor", "crash", "--uf", "100"],
        &["export", "crash", "log"],
    ] {
        let output = bench.again(args);
        let said = text(&output);
        assert_eq!(code(&output), 2, "{args:?}: {said}");
        assert!(said.contains("takes a drive"), "{said}");
    }
    let second = bench.test(SYNCED, CHECK, &["--files"]);
    assert!(text(&second).contains("holds a recording already"), "{}", text(&second));
}

#[test]
fn work_that_fails_leaves_no_recording() {
    let Some(bench) = Bench::new() else { return };
    let fails = "echo of no use >&2; false";
    for (setup, work) in [("true", fails), (fails, "true")] {
        let output = bench.test(work, CHECK, &["--files", "--setup", setup]);
        assert_eq!(code(&output), 2, "{}", text(&output));
        assert!(text(&output).contains("| of no use"), "{}", text(&output));
        let left = std::fs::read_dir(bench.path().join("crash")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
        assert!(
            left.iter()
                .all(|name| !name.contains("recording.files") && !name.starts_with(".leyden")),
            "{left:?}"
        );
    }
}

/// As the root of a container.
#[test]
fn root_that_may_not_mount_uses_a_namespace_of_users() {
    let Some(bench) = Bench::new() else { return };
    let limited = |program: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_admin", "--inh-caps=-all", program]);
        command
    };
    let may_try = limited("unshare").args(["--user", "--map-root-user", "true"]).status();
    if !may_try.is_ok_and(|status| status.success()) {
        eprintln!("LEFT OUT: no root with setpriv and namespaces of users");
        return;
    }
    let work = "echo 1 >$LEYDEN_MOUNT/a; sync $LEYDEN_MOUNT/a; echo ack 1 >>$LEYDEN_ACK";
    let check = "[ ! -s $LEYDEN_ACKS ] || [ -s $LEYDEN_MOUNT/a ]";
    let mut run = limited(LEYDEN);
    run.args(["crashtest", "--files", "--out", "crash", "--work", work, "--check", check]);
    let output = run.current_dir(bench.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", text(&output));
}

#[test]
fn work_that_bypasses_the_folder_is_told_so() {
    let Some(bench) = Bench::new() else { return };
    // A sync changes nothing, though the rules of Btrfs have a log of it.
    for rules in ["--files", "--files=btrfs"] {
        let elsewhere = bench.test("sync $LEYDEN_MOUNT; echo 1 >elsewhere", "true", &[rules]);
        let said = text(&elsewhere);
        assert!(
            said.contains("the work changed no file in $LEYDEN_MOUNT: nothing can be lost"),
            "{said}"
        );
        std::fs::remove_dir_all(bench.path().join("crash")).unwrap();
    }
    let there = bench.test("echo 1 >$LEYDEN_MOUNT/there", "true", &["--files"]);
    assert!(!text(&there).contains("changed no file"), "{}", text(&there));
}

/// Mounts and child processes end with the process that made them.
#[test]
fn nothing_is_left_behind_by_a_kill() {
    let Some(bench) = Bench::new() else { return };
    let marker = format!("sleep 31.{}", std::process::id());
    let work = format!("touch {}/begun; {marker}", bench.path().display());
    let mut command =
        bench.leyden(&["--files", "--check", "true", "--out", "crash", "--work", &work]);
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let begun = bench.path().join("begun");
    wait_for("the work begins", || begun.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = || {
        let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == marker)
    };
    wait_for("its processes end", || !runs());
    // In whatever namespace of mounts; of a process that is about to end they are there for a moment.
    let folder = bench.path().to_str().unwrap();
    let is_mounted = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
            let mounts = std::fs::read_to_string(process.path().join("mountinfo"));
            mounts.unwrap_or_default().contains(folder)
        })
    };
    wait_for("its mounts end", || !is_mounted());
    assert!(!bench.path().join("crash/recording.files").exists());
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}: not after a minute");
}

/// Two copies of each value on two drives, of which the first is synced.
const COPIED: &str = "for i in 1 2 3; do echo $i >$LEYDEN_MOUNT/2/v$i; echo $i >$LEYDEN_MOUNT/1/v$i; \
                      sync $LEYDEN_MOUNT/1/v$i; echo ack $i >>$LEYDEN_ACK; done";
/// Has a port of the loopback interface, which no other state has.
const LISTEN: &str = "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 4007)); \
     socket.create_connection((\"127.0.0.1\", 4007))' && ";

#[test]
fn drives_of_a_cluster_lose_power_at_one_moment_and_each_what_it_may() {
    let Some(bench) = Bench::new() else { return };
    let one_of = "while read i; do grep -qs $i $LEYDEN_MOUNT/[12]/v$i || { echo lost $i; exit 1; }; done <$LEYDEN_ACKS";
    let checked = format!("[ $LEYDEN_DRIVES = 2 ] && {LISTEN} {one_of}");
    let output = bench.test(&format!("{LISTEN} {COPIED}"), &checked, &["--drives", "2", "--files"]);
    let said = text(&output);
    assert_eq!(code(&output), 0, "{said}");
    assert!(said.contains("events of 2 drives"), "{said}");
    // Where the second copy is needed, the page says which drive has lost it.
    let second = "while read i; do grep -qs $i $LEYDEN_MOUNT/2/v$i || { echo lost $i; exit 1; }; done <$LEYDEN_ACKS";
    let output = bench.again(&["run", "crash", "--check", second]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("  drive 1 lost: nothing\n  drive 2 lost: "), "{said}");
    let page = std::fs::read_to_string(bench.path().join("crash/report.html")).unwrap();
    assert!(page.contains("on 2 drives, of which all or some lose power"));
    assert!(page.contains("drive 2 lost: "));
}

#[test]
fn known_software_needs_no_scripts() {
    let Some(bench) = Bench::new() else { return };
    let test = |args: &[&str]| bench.again(&[args, &["--states", "20", "--out", "crash"]].concat());
    let output = test(&["--db", "sqlite"]);
    assert_eq!(code(&output), 0, "{}", text(&output));
    assert!(text(&output).contains("200 promises, "), "{}", text(&output));
    let page = std::fs::read_to_string(bench.path().join("crash/report.html")).unwrap();
    assert!(page.contains("SQLite 3."), "the page has the version");
    // The scripts stay with the recording, for the next run.
    assert_eq!(code(&bench.again(&["run", "crash", "--states", "5"])), 0);
    let refused = |args: &[&str], why: &str| {
        let output = test(args);
        assert_eq!(code(&output), 2, "{}", text(&output));
        assert!(text(&output).contains(why), "{}", text(&output));
    };
    refused(&["--db", "oracle"], "there are no scripts for `oracle`");
    refused(&["--db", "etcd", "devices/hexa"], "has several members");
    refused(&["--db", "sqlite", "--work", "true"], "cannot be used with");
    let mut bare = Command::new(LEYDEN);
    bare.args(["crashtest", "--db", "redis", "--out", "other"]).env("PATH", "/nowhere");
    let output = bare.current_dir(bench.path()).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(text(&output).contains("skipped, `python3` is not installed"), "{}", text(&output));
    assert!(!bench.path().join("other").exists(), "nothing is left of it");
}

/// An attribute that is synced by fdatasync(2) alone is lost, and named. All that calls say of attributes is as on a disk.
#[test]
fn extended_attributes_are_kept_and_lost() {
    let Some(bench) = Bench::new() else { return };
    let work = |sync: &str| {
        format!(
            r#"python3 - <<'END'
import errno, os
os.chdir(os.environ["LEYDEN_MOUNT"])
def code(call, *args):
    try: return call(*args) and 0
    except OSError as error: return error.errno
fd = os.open("f", os.O_RDWR | os.O_CREAT)
assert code(os.getxattr, fd, "user.n") == errno.ENODATA and os.listxattr("f") == []
assert code(os.setxattr, fd, "user.n", b"", os.XATTR_REPLACE) == errno.ENODATA
os.setxattr("f", "user.big", b"b" * 65536); assert os.getxattr("f", "user.big") == b"b" * 65536
assert code(os.setxattr, "f", "user.big", b"b" * 65537) == errno.E2BIG
assert code(os.setxattr, "f", "system.posix_acl_access", b"\2\0\0\0") == errno.EOPNOTSUPP
os.removexattr(fd, "user.big"); assert code(os.removexattr, fd, "user.big") == errno.ENODATA
os.setxattr(".", "user.top", b"folder"); os.fsync(os.open(".", os.O_RDONLY)); os.fsync(fd)
with open(os.environ["LEYDEN_ACK"], "a", buffering=1) as acks:
    for number in range(5):
        os.setxattr(fd, "user.n", b"%d" % number)
        os.{sync}(fd)
        print("ack", number, file=acks)
assert code(os.setxattr, fd, "user.n", b"", os.XATTR_CREATE) == errno.EEXIST
assert os.listxattr("f") == ["user.n"] and os.listxattr(".") == ["user.top"]
END"#
        )
    };
    let check = r#"exec python3 -c '
import os
promised = [line.strip() for line in open(os.environ["LEYDEN_ACKS"])]
os.chdir(os.environ["LEYDEN_MOUNT"])
found = {at: {name: os.getxattr(at, name) for name in os.listxattr(at)} for at in [".", *os.listdir()]}
if promised:
    assert found["."] == {"user.top": b"folder"} and list(found["f"]) == ["user.n"], found
    n = int(found["f"]["user.n"]); assert n >= int(promised[-1]), f"lost {promised[-1]}, found {n}"
'"#;
    for rules in ["--files=posix", "--files=ext4", "--files=xfs"] {
        let _ = std::fs::remove_dir_all(bench.path().join("crash"));
        let output = bench.test(&work("fsync"), check, &[rules]);
        assert_eq!(code(&output), 0, "{rules}: {}", text(&output));
    }
    std::fs::remove_dir_all(bench.path().join("crash")).unwrap();
    let output = bench.test(&work("fdatasync"), check, &["--files"]);
    let said = text(&output);
    assert_eq!(code(&output), 1, "{said}");
    assert!(said.contains("lost: setxattr of user.n, 1 B, on f"), "{said}");
    // A copy has them, or it is said.
    let finding = "crash/findings/adversarial-1.json";
    let get = r#"python3 -c 'import os; print(os.getxattr(os.environ["AT"] + "/.", "user.top"))'"#;
    let run = format!("AT=$LEYDEN_MOUNT {get}");
    let shown = bench.again(&["replay", "crash", finding, "--run", &run]);
    assert_eq!(text(&shown), "b'folder'\n");
    let copied = bench.again(&["replay", "crash", finding, "--copy", "taken"]);
    assert_eq!(code(&copied), 0, "{}", text(&copied));
    let taken = bench.path().join("taken");
    let got = Command::new("sh").args(["-c", get]).env("AT", taken).output().unwrap();
    assert_eq!(text(&got), "b'folder'\n");
}

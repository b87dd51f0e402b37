//! `./demo` on machines that lack something: a folder of stand-ins is all that is on the path.

mod executables;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// Programs that stand-ins need, and that every machine has.
const PLAIN: [&str; 12] =
    ["sh", "dirname", "mktemp", "rm", "sed", "cat", "cut", "sort", "head", "df", "awk", "mkdir"];

/// A machine on which these commands do what these scripts say.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(scripts: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in PLAIN {
            let found = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, folder.path().join(name)).unwrap();
        }
        for (name, script) in scripts {
            executables::script(&folder.path().join(name), script);
        }
        Self(folder)
    }

    fn demo(&self, args: &[&str]) -> Output {
        self.demo_in(args, "target")
    }

    /// With this folder for what is built.
    fn demo_in(&self, args: &[&str], target: &str) -> Output {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
        let mut command = Command::new(demo);
        command.args(args).env_clear().env("PATH", self.0.path()).env("HOME", self.0.path());
        command.env("CARGO_TARGET_DIR", self.0.path().join(target));
        command.output().unwrap()
    }
}

#[track_caller]
fn says(output: &Output, code: i32, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
}

const ROOT: (&str, &str) = ("id", "echo 0");
const COMPILER: (&str, &str) = ("cc", ": >\"$2\"");

#[test]
fn a_download_that_fails_is_named_with_what_else_will_do() {
    let no_network = ("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6");
    let machine = Machine::with(&[ROOT, COMPILER, no_network]);
    let output = machine.demo(&["--install"]);
    says(&output, 1, &["The download of rustup failed", "a toolchain that is there"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("As root, ./demo --install"), "it was just tried:\n{said}");
}

#[test]
fn only_root_installs() {
    let machine = Machine::with(&[("id", "echo 1000"), ("apt-get", "echo locked >&2; exit 100")]);
    says(&machine.demo(&["--install"]), 1, &["run it as root"]);
}

/// `cc` without the C library's headers is there, and makes no program.
#[test]
fn a_compiler_that_makes_no_program_is_missing() {
    let machine = Machine::with(&[ROOT, ("cc", "exit 1")]);
    let output = machine.demo(&[]);
    says(&output, 1, &["missing: a C compiler", "libc6-dev", "missing: Rust"]);
    let machine = Machine::with(&[ROOT, COMPILER]);
    let output = machine.demo(&[]);
    says(&output, 1, &["missing: Rust"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("compiler ("));
}

#[test]
fn its_help_is_no_error() {
    let output = Machine::with(&[]).demo(&["--help"]);
    says(&output, 0, &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("./demo --install"));
    says(&Machine::with(&[]).demo(&["--instal"]), 2, &["usage: "]);
}

/// A cargo that says this version of itself.
const CARGO: (&str, &str) = ("cargo", "echo 'cargo 1.95.0 (f2d3ce0bd 2026-03-21)'");

#[test]
fn an_old_rust_is_named_with_the_version_that_is_needed() {
    let old = ("cargo", "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'");
    let output = Machine::with(&[ROOT, COMPILER, old]).demo(&[]);
    says(&output, 1, &["too old: cargo 1.63.0", "asks for Rust 1.95"]);
}

#[test]
fn a_checkout_that_cannot_be_written_is_named() {
    let machine = Machine::with(&[ROOT, COMPILER, CARGO]);
    std::fs::write(machine.0.path().join("file"), "").unwrap();
    let output = machine.demo_in(&[], "file/target");
    says(&output, 1, &["not writable: ", "file/target"]);
}

#[test]
fn a_disk_without_room_is_named_before_the_build() {
    let full = ("df", "echo header; echo '/dev/vda 1000000 999000 1000 99% /'");
    let output = Machine::with(&[ROOT, COMPILER, CARGO, full]).demo(&[]);
    says(&output, 1, &["too little room: 2 GiB are needed"]);
}

#[test]
fn a_disk_that_fills_amid_the_build_is_named() {
    // Room at first; none when the build has failed.
    let full = (
        "df",
        "[ -e \"$HOME/built\" ] && free=0 || free=9000000; echo header; echo \"/dev/vda 1 1 $free 99% /\"",
    );
    let cargo = (
        "cargo",
        "case $1 in build) : >\"$HOME/built\"; echo 'No space left on device' >&2; exit 101 ;; esac; \
         echo 'cargo 1.95.0'",
    );
    let output = Machine::with(&[ROOT, COMPILER, cargo, full]).demo(&[]);
    says(&output, 101, &["The disk at", "is full", "CARGO_TARGET_DIR"]);
}

//! `./demo` on machines that lack something: a folder of stand-ins is all that is on the path.

mod executables;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// Programs that stand-ins need, and that every machine has.
const PLAIN: [&str; 6] = ["sh", "dirname", "mktemp", "rm", "sed", "cat"];

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
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
        let mut command = Command::new(demo);
        command.args(args).env_clear().env("PATH", self.0.path()).env("HOME", self.0.path());
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

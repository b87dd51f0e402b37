//! Crash tests from other languages: the packages in `integrations/` and their examples, run where their toolchains are.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::PathBuf;
use std::process::Command;

const LEYDEN: &str = env!("CARGO_BIN_EXE_leyden");

fn package(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../integrations").join(name)
}

/// True, with a message, if this machine lacks a tool.
fn lacks(toolchain: &[&str]) -> bool {
    let doctor = Command::new(LEYDEN).args(["crashtest", "doctor"]).output().unwrap();
    if !doctor.status.success() {
        eprintln!("LEFT OUT: {}", String::from_utf8_lossy(&doctor.stderr).trim());
        return true;
    }
    let is_there = Command::new(toolchain[0]).args(&toolchain[1..]).output();
    let is_there = is_there.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("LEFT OUT: `{}` does not end well here", toolchain.join(" "));
    }
    !is_there
}

fn assert_passes(command: &mut Command, says: &str) {
    let output = command.env("LEYDEN", LEYDEN).env("LEYDEN_REQUIRED", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(says), "{said}");
}

#[test]
fn pytest_cuts_the_power() {
    if lacks(&["python3", "-m", "pytest", "--version"]) {
        return;
    }
    let folder = package("pytest");
    let mut pytest = Command::new("python3");
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_leyden"]);
    pytest.args(["--leyden-required", "tests"]).current_dir(&folder);
    pytest.env("PYTHONPATH", &folder).env("PYTHONDONTWRITEBYTECODE", "1");
    assert_passes(&mut pytest, "6 passed");
}

#[test]
fn go_test_cuts_the_power() {
    if lacks(&["go", "version"]) {
        return;
    }
    assert_passes(&mut go(&["test", "-count=1", "./..."], "go"), "ok");
}

/// In a folder of `integrations`. Another toolchain is not fetched.
fn go(args: &[&str], folder: &str) -> Command {
    let mut go = Command::new("go");
    go.args(args).current_dir(package(folder)).env("GOTOOLCHAIN", "local");
    go.env("GOFLAGS", "-mod=mod");
    go
}

/// Pebble, unmodified, on the files that lose power: with its syncs, and without one.
#[test]
fn pebble_survives_power_cuts_with_its_syncs_only() {
    if lacks(&["go", "version"]) {
        return;
    }
    let built = go(&["vet", "./..."], "go/pebblefs").output().unwrap();
    if !built.status.success() {
        eprintln!("LEFT OUT: Pebble: {}", String::from_utf8_lossy(&built.stderr).trim());
        return;
    }
    assert_passes(
        &mut go(&["test", "-count=1", "-v", "./..."], "go/pebblefs"),
        "--- PASS: TestAMissingSync",
    );
}

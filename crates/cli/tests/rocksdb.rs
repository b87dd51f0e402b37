//! The RocksDB plugin (`integrations/rocksdb`) is built, and its tests pass on a drive in memory.
//!
//! Tests on `libleyden.so`, a killed database and the session of docs/rocksdb.md, run where that library stands beside
//! the command line's binary.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::Path;
use std::process::Command;

/// Whether there is such a program.
fn runs(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn the_plugin_passes_its_tests() {
    for (program, package) in [("cmake", "cmake"), ("c++", "g++")] {
        if !runs(program, "--version") {
            eprintln!("SKIPPED: {program} is missing (Debian: {package})");
            return;
        }
    }
    if !Path::new("/usr/include/rocksdb/file_system.h").exists() {
        eprintln!("SKIPPED: RocksDB is missing (Debian: librocksdb-dev)");
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/rocksdb");
    let build = tempfile::tempdir().unwrap();
    let libraries = Path::new(env!("CARGO_BIN_EXE_leyden")).parent().unwrap();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source).arg("-B").arg(build.path());
    if libraries.join("libleyden.so").exists() {
        configure.arg(format!("-DLEYDEN_LIBRARY_DIR={}", libraries.display()));
    } else {
        eprintln!("SKIPPED in part: there is no libleyden.so beside the command line");
    }
    run(&mut configure);
    run(Command::new("cmake").arg("--build").arg(build.path()));
    run(Command::new("ctest").arg("--output-on-failure").arg("--test-dir").arg(build.path()));
}

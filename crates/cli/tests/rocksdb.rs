//! The RocksDB plugin (`integrations/rocksdb`) is built, and its tests pass on a drive in memory.
//!
//! Tests on `libleyden.so`, a killed database and the session of docs/rocksdb.md, run where that library stands beside
//! the command line's binary. `./test` builds it, and sets `LEYDEN_TEST_PLUGIN`: without the library the test fails then.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

mod executables;

use std::path::Path;
use std::process::Command;

/// Whether there is such a program.
fn runs(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
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
        assert!(
            std::env::var_os("LEYDEN_TEST_PLUGIN").is_none(),
            "there is no libleyden.so beside the command line: cargo build --workspace --lib"
        );
        eprintln!("SKIPPED in part: there is no libleyden.so beside the command line");
    }
    run(&mut configure);
    let cores = std::thread::available_parallelism().unwrap().to_string();
    run(Command::new("cmake").arg("--build").arg(build.path()).args(["--parallel", &cores]));
    let mut tests = Command::new("ctest");
    tests.args(["--output-on-failure", "--parallel", &cores, "--test-dir"]).arg(build.path());
    let said = run(&mut tests);
    said.lines().filter(|line| line.contains("Skipped")).for_each(|line| eprintln!("{line}"));
}

/// The command, in a folder with nothing beside it and an empty PATH.
fn alone(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let program = folder.join("leyden");
    if !program.exists() {
        executables::copy(Path::new(env!("CARGO_BIN_EXE_leyden")), &program);
    }
    let mut command = Command::new(program);
    let output = command.args(args).env("PATH", "").current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn missing_programs_are_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = alone(folder.path(), &["reproduce", "selective-plp", "--live"]);
    assert_eq!(code, Some(2), "{said}");
    for word in
        ["python3", "rocksdb-tools", "leyden-capi", "integrations/rocksdb", "LEYDEN_ROCKSDB"]
    {
        assert!(said.contains(word), "{word}: {said}");
    }
    let (code, said) = alone(folder.path(), &["fs", "check", "no.leyden"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("integrations/rocksdb") && said.contains("LEYDEN_FS"), "{said}");
}

#[test]
fn fs_becomes_the_tool_beside_the_command_or_the_one_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let tool = |name: &str, says: &str, code: u8| {
        let path = folder.path().join(name);
        executables::script(&path, &format!("echo {says} \"$@\"\nexit {code}"));
        path
    };
    tool("leyden-fs", "beside", 7);
    let fs = ["fs", "mkfs", "a b.leyden", "--force", "--help"];
    let (code, said) = alone(folder.path(), &fs);
    assert_eq!((code, said.trim()), (Some(7), "beside mkfs a b.leyden --force --help"));
    let other = tool("other", "named", 0);
    let run = |named: &Path| {
        let mut command = Command::new(folder.path().join("leyden"));
        command.args(["fs", "ls"]).env("LEYDEN_FS", named).output().unwrap()
    };
    let output = run(&other);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "named ls\n");
    let output = run(Path::new("missing"));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("LEYDEN_FS names missing"));
}

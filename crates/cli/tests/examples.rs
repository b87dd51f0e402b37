//! Every folder of `examples/` runs as a user runs it. A script ends with 77 where the machine lacks something.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs `examples/NAME/run.sh` with this build of `leyden`.
fn example(name: &str) -> Option<String> {
    let leyden = Path::new(env!("CARGO_BIN_EXE_leyden"));
    let output = Command::new(folder().join(name).join("run.sh"))
        .env("LEYDEN", leyden)
        .env("LEYDEN_LIBRARY_DIR", leyden.parent().unwrap())
        .env("STATES", "20")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Some(text),
        Some(77) => {
            eprintln!("SKIPPED: {name}: {}", text.trim());
            None
        }
        code => panic!("{name}: {code:?}\n{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn each_example_has_a_test_and_a_line_in_the_index() {
    let here = include_str!("examples.rs");
    let index = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        // A crate has tests of its own.
        let is_crate = folder().join(&name).join("Cargo.toml").is_file();
        assert!(
            is_crate || here.contains(&format!("example(\"{name}\")")),
            "no test runs examples/{name}"
        );
        assert!(index.contains(&format!("[{name}]({name})")), "README.md does not list {name}");
    }
}

#[test]
fn sqlite_keeps_orders_with_full_and_loses_them_with_normal() {
    let Some(text) = example("sqlite-crashtest") else { return };
    let (full, normal) = text.split_once("synchronous=NORMAL:").unwrap();
    assert!(full.contains("all held"), "{text}");
    assert!(normal.contains("acknowledged lost"), "{text}");
}

#[test]
fn postgres_keeps_orders_with_fsync_and_loses_them_without() {
    let Some(text) = example("postgres-crashtest") else { return };
    let (on, off) = text.split_once("fsync=off:").unwrap();
    assert!(on.contains("all held"), "{text}");
    assert!(!off.contains("all held"), "{text}");
}

#[test]
fn a_trace_of_ones_own_needs_fewer_programs_with_more_spare() {
    let Some(text) = example("trace-sweep") else { return };
    let path = text.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let table = Path::new(path.split(' ').next().unwrap());
    let csv = std::fs::read_to_string(table).unwrap();
    let mut lines = csv.lines();
    let column = lines.next().unwrap().split(',').position(|name| name == "flash.waf").unwrap();
    let waf: Vec<f64> =
        lines.map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
    std::fs::remove_dir_all(table.parent().unwrap()).unwrap();
    assert!(waf.len() == 3 && waf[0] > 1.3 * waf[1] && waf[1] > 1.2 * waf[2], "{waf:?}");
}

#[test]
fn a_sweep_in_shards_is_one_table() {
    let Some(text) = example("sweep") else { return };
    assert!(text.contains("8 runs, "), "{text}");
    let path = text.lines().find_map(|line| line.strip_prefix("results: ")).unwrap();
    let table = std::fs::read(path).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    std::fs::remove_dir_all(Path::new(path).parent().unwrap()).unwrap();
}

#[test]
fn a_log_in_c_keeps_its_records_over_a_kill() {
    let Some(text) = example("c-log") else { return };
    assert!(text.contains("acknowledged"), "{text}");
}

#[test]
fn rocksdb_is_consistent_after_a_kill() {
    example("rocksdb");
}

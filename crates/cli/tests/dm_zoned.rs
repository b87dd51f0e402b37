//! The block device on two drives beside Linux's dm-zoned, of which `papers/campaigns/dm_zoned.json` says what it did.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::path::PathBuf;
use std::process::Command;

/// Largest difference of reclaim's reads and writes, in percent: docs/papers/journal-zones.md has its reasons.
const MOST: f64 = 10.0;
const CASES: [&str; 6] =
    ["fill", "bursts-1", "bursts-2", "bursts-3", "ordered-sequential", "journal-sequential"];

fn python(arguments: &[&str]) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut python = Command::new("python3");
    python.args(arguments).current_dir(root).env("PYTHONDONTWRITEBYTECODE", "1");
    let Ok(output) = python.output() else {
        eprintln!("LEFT OUT: there is no python3");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{errors}");
    Some(said + &errors)
}

/// The percentages of a row: of what is read, and of what is written.
fn differences(row: &str) -> Vec<f64> {
    let cells = row.split('|').filter_map(|cell| cell.trim().strip_suffix(" %"));
    cells.map(|percent| percent.parse().expect("a number")).collect()
}

/// Holds reclaim's reads and writes of `cases` against the kernel's in the record of that name.
fn compare(record: &str, cases: &[&str], settings: &[&str]) {
    let recorded = format!("papers/campaigns/{record}.json");
    let (leyden, named) = (env!("CARGO_BIN_EXE_leyden"), cases.join(","));
    let script = [
        "papers/campaigns/dm_zoned.py",
        "--leyden",
        leyden,
        "--recorded",
        &recorded,
        "--only",
        &named,
    ];
    let Some(table) = python(&[&script[..], settings].concat()) else { return };
    for case in cases {
        let row = table.lines().find(|line| line.starts_with(&format!("| {case} |")));
        let found = differences(row.unwrap_or_else(|| panic!("{case} is not in {table}")));
        assert_eq!(found.len(), 2, "{table}");
        assert!(found.iter().all(|percent| percent.abs() <= MOST), "{table}");
    }
}

#[test]
fn reclaim_copies_what_the_kernels_copies() {
    // The kernel's has one drive.
    compare("dm_zoned", &CASES, &["--set", "host.zoned_block.idle_of=both"]);
}

#[test]
fn reclaim_copies_what_the_kernels_copies_on_two_drives() {
    // The pace at which data=journal with random writes fits, too. The drives' own 10 us copy one chunk more (12.9 %).
    let pace = [
        "--set",
        "device.frontend.command=30us",
        "--set",
        "host.conventional.frontend.command=30us",
    ];
    compare("dm_zoned_once", &["once-ordered-sequential"], &pace);
}

#[test]
fn the_campaigns_own_tests_pass() {
    python(&["-m", "unittest", "discover", "papers/campaigns"]);
}

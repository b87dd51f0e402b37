//! The readers on real traces that lie beside the repository, where there are any. They are not
//! part of it: without them this test says so and passes.
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use leyden_workload::trace::{
    self, Devices, Format, Merged, OpenOptions, Profile, TraceError, WriteOptions, Writer,
};

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: no real traces in {}", folder.display());
    None
}

fn profiled(merged: Merged) -> Profile {
    let classes = merged.trace().classes().clone();
    trace::profile(merged, &classes).unwrap()
}

fn overlaid() -> OpenOptions {
    OpenOptions { devices: Devices::Overlay, ..OpenOptions::default() }
}

#[test]
fn real_traces_are_read_to_their_ends() {
    let Some(folder) = folder() else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "zst"))
        .collect();
    paths.sort();
    for path in paths {
        let mut reader = trace::open(&path, &overlaid()).unwrap();
        let requests: Result<Vec<_>, TraceError> = reader.by_ref().collect();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let requests = requests.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(requests.len() as u64, reader.counts().requests);
        eprintln!("{name}: {} {} {:?}", reader.format(), requests.len(), reader.warnings());
        let profile = profiled(Merged::from(trace::open(&path, &overlaid()).unwrap()));
        assert_eq!(profile.requests + profile.hints, requests.len() as u64);
        assert_eq!(profile.hints > 0, name.contains("hints"));
        eprintln!("{}", serde_json::to_string_pretty(&profile).unwrap());
    }
}

#[test]
fn known_figures_of_real_traces_come_out() {
    let Some(folder) = folder() else { return };
    // The traces' own notes on the TPC-C run: 4,037 MiB written, highest address 8.19 GiB.
    let tpcc = trace::open(&folder.join("pg-tpcc5w.csv.zst"), &OpenOptions::default()).unwrap();
    let profile = profiled(Merged::from(tpcc));
    assert_eq!(profile.bytes_written >> 20, 4037);
    let gib = profile.end_byte as f64 / f64::from(1 << 30);
    assert!((gib - 8.19).abs() < 0.01, "{gib}");
    let blkparse = folder.join("blkparse-sample.txt.zst");
    let reader = trace::open(&blkparse, &OpenOptions::default()).unwrap();
    let profile = profiled(Merged::from(reader));
    // blkparse's own summary: 161 reads of 644 KiB, 512 writes of 131,072 KiB dispatched.
    assert_eq!((profile.reads, profile.bytes_read >> 10), (161, 644));
    assert_eq!((profile.writes, profile.bytes_written >> 10), (512, 131_072));
}

#[test]
fn hints_announce_nearly_all_data_and_no_log() {
    let Some(folder) = folder() else { return };
    for (name, data_share) in [("pg-pgbenchA", 0.98), ("pg-pgbenchD", 0.95), ("pg-tpcc5w", 0.90)] {
        let open = |kind: &str| {
            let path = folder.join(format!("{name}{kind}.csv.zst"));
            trace::open(&path, &OpenOptions::default()).unwrap()
        };
        let profile = profiled(Merged::new(open(""), open(".hints")));
        let announced = &profile.announced_share_by_class;
        assert!(announced["data"] > data_share, "{name}: {announced:?}");
        assert!(announced["wal"] < 0.001, "{name}: {announced:?}");
    }
}

#[test]
fn a_converted_trace_is_the_same_trace() {
    let Some(folder) = folder() else { return };
    let out = tempfile::tempdir().unwrap();
    let path = folder.join("pg-pgbenchD.csv.zst");
    let open = |path: &Path| trace::open(path, &OpenOptions::default()).unwrap();
    let before: Vec<_> = open(&path).map(Result::unwrap).collect();
    for format in [Format::Compact, Format::Csv] {
        let converted = out.path().join(format.name());
        let reader = open(&path);
        let classes = reader.classes().clone();
        let options = WriteOptions { classes, ..WriteOptions::new(format) };
        let writer = Writer::create(&converted, &options).unwrap();
        let go_on = AtomicBool::new(false);
        let written = trace::convert(reader, writer, &mut |_| {}, &go_on).unwrap();
        assert!(written.lost.is_nothing());
        let after: Vec<_> = open(&converted).map(Result::unwrap).collect();
        assert!(before == after);
    }
}

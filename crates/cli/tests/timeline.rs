//! The file that `leyden timeline` writes: what it shows, and the Trace Event Format, which its viewers read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");

fn leyden(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leyden")).current_dir(folder).args(args).output().unwrap()
}

#[track_caller]
fn ends_with(output: &Output, code: i32) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
}

fn timeline(folder: &Path, args: &[&str]) -> Value {
    let mut all = vec!["timeline", TINY, "--output", "slow.json"];
    all.extend(args);
    ends_with(&leyden(folder, &all), 0);
    let text = fs::read_to_string(folder.join("slow.json")).unwrap();
    assert!(text.starts_with(leyden_report::TIMELINE_HEAD));
    serde_json::from_str(&text).unwrap()
}

/// A slice: its row (process and thread), and from when until when, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    row: (u64, u64),
    from: i64,
    until: i64,
}

/// Microseconds that are whole nanoseconds.
#[track_caller]
fn ns(value: &Value) -> i64 {
    let ns = value.as_f64().unwrap() * 1e3;
    assert!(ns >= 0.0 && (ns - ns.round()).abs() < 1e-4, "{value} is no whole nanoseconds");
    ns.round() as i64
}

/// The slices of a timeline, once it is certain that a viewer will show them all.
///
/// Fields and phases are those of the "Trace Event Format" document. Beyond that Perfetto wants a thread's number
/// to be one process's only, and the slices of a thread to nest: it drops those that overlap.
fn slices_of(timeline: &Value) -> Vec<Slice> {
    let fields = timeline.as_object().unwrap();
    assert!(
        fields
            .keys()
            .all(|key| ["traceEvents", "displayTimeUnit", "otherData"].contains(&key.as_str()))
    );
    assert!(["ms", "ns"].contains(&timeline["displayTimeUnit"].as_str().unwrap()));
    let mut processes = BTreeMap::<u64, u64>::new(); // by thread
    let mut named = BTreeSet::new();
    let mut slices = Vec::new();
    for event in timeline["traceEvents"].as_array().unwrap() {
        assert!(!event["name"].as_str().unwrap().is_empty(), "{event}");
        let pid = event["pid"].as_u64().unwrap();
        let tid = event.get("tid").map(|tid| tid.as_u64().unwrap());
        if let Some(tid) = tid {
            assert_eq!(
                *processes.entry(tid).or_insert(pid),
                pid,
                "{event}: a thread of two processes"
            );
        }
        assert!(event.get("args").is_none_or(Value::is_object), "{event}");
        match event["ph"].as_str().unwrap() {
            "M" => {
                let wanted = match event["name"].as_str().unwrap() {
                    "process_name" => event["args"]["name"].is_string(),
                    "process_sort_index" => event["args"]["sort_index"].is_u64(),
                    "thread_name" => tid.is_some() && event["args"]["name"].is_string(),
                    _ => false,
                };
                assert!(wanted, "{event}");
                named.insert((pid, tid));
            }
            "C" => {
                assert!(ns(&event["ts"]) >= 0);
                assert!(
                    event["args"].as_object().unwrap().values().all(Value::is_number),
                    "{event}"
                );
            }
            "X" => {
                let row = (pid, tid.expect("a row"));
                let from = ns(&event["ts"]);
                slices.push(Slice { row, from, until: from + ns(&event["dur"]) });
            }
            // Flows would come here, with ids that begin and end.
            other => panic!("{other} is no phase that is written: {event}"),
        }
    }
    for slice in &slices {
        assert!(
            named.contains(&(slice.row.0, Some(slice.row.1))),
            "{slice:?} has a row without a name"
        );
        assert!(named.contains(&(slice.row.0, None)), "{slice:?} has a group without a name");
    }
    assert_eq!(overlap(&slices), None);
    slices
}

/// Two slices of one row of which neither lies within the other, nor beside it.
fn overlap(slices: &[Slice]) -> Option<(Slice, Slice)> {
    let mut rows = BTreeMap::<(u64, u64), Vec<Slice>>::new();
    for slice in slices {
        rows.entry(slice.row).or_default().push(*slice);
    }
    for mut row in rows.into_values() {
        row.sort_by_key(|slice| (slice.from, -slice.until));
        let mut open: Vec<Slice> = Vec::new();
        for slice in row {
            while open.last().is_some_and(|outer| outer.until <= slice.from) {
                open.pop();
            }
            if let Some(outer) = open.last().filter(|outer| outer.until < slice.until) {
                return Some((*outer, slice));
            }
            open.push(slice);
        }
    }
    None
}

#[test]
fn slices_that_overlap_are_found() {
    let slice = |from, until| Slice { row: (1, 1), from, until };
    assert!(overlap(&[slice(0, 10), slice(0, 4), slice(4, 10), slice(10, 12)]).is_none());
    assert!(overlap(&[slice(0, 10), slice(9, 11)]).is_some());
    let other = Slice { row: (1, 2), ..slice(9, 11) };
    assert!(overlap(&[slice(0, 10), other]).is_none());
}

#[test]
fn every_timeline_is_one_that_viewers_show_whole() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["--of", "write"][..],
        &["--of", "read"],
        &["--at", "20 ms", "--before", "5 ms", "--after", "5 ms"],
        &[
            "--of",
            "write",
            "--set",
            "device.ftl.map.protection={ policy = 'partial', protected = '10 %' }",
        ],
        &["--of", "any", "--set", "device.ftl.gc.pace=even"],
    ] {
        let slices = slices_of(&timeline(folder.path(), args));
        assert!(slices.len() > 10, "{args:?}: {}", slices.len());
    }
}

/// The timeline of the slowest write: as long as the record says it took, in rows that do not overlap.
#[test]
fn a_timeline_shows_the_slowest_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let of_write = ["--of", "write"];
    timeline(path, &of_write);
    let shown = timeline(path, &of_write); // takes the place of the first
    let record = leyden(path, &["run", TINY, "--json"]);
    let record: Value = serde_json::from_slice(&record.stdout).unwrap();
    assert_eq!(shown["otherData"]["digest"], record["sim"]["digest"]);
    let slices = slices_of(&shown);
    let first = slices.iter().filter(|it| it.row.0 == 1).map(|it| it.row).min().unwrap();
    let slow = slices.iter().find(|it| it.row == first).unwrap();
    assert_eq!(slow.until - slow.from, ns(&record["host"]["write_latency_us"]["max"]));
    // Commands and transfers lie beside each other, never within one another.
    let mut rows = BTreeMap::<(u64, u64), Vec<Slice>>::new();
    for slice in slices.iter().filter(|slice| slice.row.0 < 3) {
        rows.entry(slice.row).or_default().push(*slice);
    }
    assert!(rows.keys().any(|row| row.0 == 2), "something was transferred");
    for mut row in rows.into_values() {
        row.sort_by_key(|slice| slice.from);
        for pair in row.windows(2) {
            assert!(pair[0].until <= pair[1].from, "{pair:?}");
        }
    }
    let refused = |args: &[&str]| {
        fs::copy(TINY, path.join("tiny.toml")).unwrap();
        ends_with(&leyden(path, args), 2);
    };
    refused(&["timeline", "tiny.toml", "--of", "flush", "--output", "f.json"]);
    refused(&["timeline", "tiny.toml", "--output", "tiny.toml"]);
}

/// The page shows what the trace has: as many blocks as slices, and the slow command by name.
#[test]
fn the_page_has_every_slice_and_names_the_slow_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let of_write = ["--of", "write"];
    let slices = slices_of(&timeline(path, &of_write));
    let made = leyden(path, &["timeline", TINY, "--of", "write", "--output", "slow.html"]);
    ends_with(&made, 0);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let html = fs::read_to_string(path.join("slow.html")).unwrap();
    // "the write of 4 KiB at LBA 1,234 took": the same words on the page.
    let name = said.strip_prefix("the ").and_then(|it| it.split_once(" took ")).unwrap().0;
    assert!(name.starts_with("write of ") && name.contains(" at LBA "), "{name}");
    assert!(html.contains(&format!("<dt>Command</dt><dd>{name}</dd>")), "{name}");
    // An operation of the trace is a slice with its parts within; the page has the parts alone.
    let drawing = html.split_once("<svg class=\"lanes timeline\"").unwrap().1;
    let drawing = drawing.split_once("</svg>").unwrap().0;
    let blocks = drawing.matches("<rect ").count() - 1; // the shade of the slow command
    let of = |group| slices.iter().filter(|it| it.row.0 == group).count();
    let dies: BTreeSet<_> = slices.iter().filter(|it| it.row.0 == 3).map(|it| it.row).collect();
    let whole = dies.iter().map(|row| {
        // Operations of a die follow one another: a slice that lies in no other is one.
        let mut row: Vec<&Slice> = slices.iter().filter(|it| it.row == *row).collect();
        row.sort_by_key(|it| (it.from, -it.until));
        let mut last = i64::MIN;
        let mut count = 0;
        for it in row {
            count += usize::from(it.until > last);
            last = last.max(it.until);
        }
        count
    });
    let operations: usize = whole.sum();
    assert_eq!(blocks, of(1) + of(2) + of(3) - operations);
    assert!(html.contains("<html") && !html.contains("http://") && !html.contains("src="));
    ends_with(&leyden(path, &["timeline", TINY, "--output", "slow.html"]), 0);
    fs::write(path.join("notes.html"), "my notes").unwrap();
    ends_with(&leyden(path, &["timeline", TINY, "--output", "notes.html"]), 2);
}

//! Traces as files: they appear whole or not at all, and can be cut.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use leyden_device::{Lba, Op};
use leyden_sim::Time;
use leyden_workload::trace::{
    self, Compression, Cut, ErrorKind, Format, OpenOptions, TraceError, WriteOptions, Writer,
};
use leyden_workload::{Class, Request};

fn requests(count: u64) -> impl Iterator<Item = Result<Request, TraceError>> {
    (0..count).map(|i| {
        Ok(Request {
            at: Time::from_ns(i * 1_000),
            op: if i % 10 == 9 { Op::Flush } else { Op::Write },
            lba: Lba(if i % 10 == 9 { 0 } else { i * 8 }),
            sectors: if i % 10 == 9 { 0 } else { 8 },
            fua: false,
            class: Class::Unknown,
        })
    })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let mut options = WriteOptions::new(Format::Compact);
    let go_on = AtomicBool::new(false);

    let writer = Writer::create(&path, &options).unwrap();
    let mut seen = Vec::new();
    let written = trace::convert(
        requests(10_000),
        writer,
        &mut |taken| {
            assert!(!path.exists());
            seen.push(taken);
        },
        &go_on,
    )
    .unwrap();
    assert_eq!(names(folder.path()), ["a.trace"]);
    assert_eq!(written.requests, 10_000);
    assert_eq!(written.file_bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(seen, [4096, 8192, 10_000]);

    // Not over another file, unless told so.
    let error = Writer::create(&path, &options).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
    options.overwrite = true;
    options.compression = Compression::Zstd;
    let writer = Writer::create(&path, &options).unwrap();
    trace::convert(requests(50), writer, &mut |_| {}, &go_on).unwrap();
    let reader = trace::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(reader.map(Result::unwrap).count(), 50);
}

#[test]
fn nothing_is_left_of_a_file_that_is_not_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let options = WriteOptions::new(Format::Csv);
    let go_on = AtomicBool::new(false);

    // Dropped.
    let mut writer = Writer::create(&path, &options).unwrap();
    writer.write(&requests(1).next().unwrap().unwrap()).unwrap();
    assert_eq!(names(folder.path()).len(), 1);
    drop(writer);
    assert!(names(folder.path()).is_empty());

    // Cancelled, from within the progress callback as from another thread.
    let writer = Writer::create(&path, &options).unwrap();
    let stop = AtomicBool::new(false);
    let mut progress = |_| stop.store(true, Ordering::Relaxed);
    let error = trace::convert(requests(100_000), writer, &mut progress, &stop).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Cancelled), "{error}");
    assert!(names(folder.path()).is_empty());

    // A source that fails, and an empty one.
    let source = folder.path().join("source.csv");
    fs::write(&source, "time_us,op,lba,len\n0,W,8,8\n1,W,x,8\n").unwrap();
    let reader = trace::open(&source, &OpenOptions::default()).unwrap();
    let writer = Writer::create(&path, &options).unwrap();
    let error = trace::convert(reader, writer, &mut |_| {}, &go_on).unwrap_err();
    assert_eq!(error.path(), source);
    let writer = Writer::create(&path, &options).unwrap();
    assert!(trace::convert(requests(0), writer, &mut |_| {}, &go_on).is_err());
    assert_eq!(names(folder.path()), ["source.csv"]);
}

#[test]
fn a_name_taken_meanwhile_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trace");
    let mut writer = Writer::create(&path, &WriteOptions::new(Format::Csv)).unwrap();
    writer.write(&requests(1).next().unwrap().unwrap()).unwrap();
    fs::write(&path, "mine").unwrap();
    let error = writer.finish().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["a.trace"]);
}

#[test]
fn parts_are_cut_by_number_time_and_bytes() {
    let cut = |cut: Cut| -> Vec<Request> { cut.apply(requests(100)).map(Result::unwrap).collect() };
    assert_eq!(cut(Cut::default()).len(), 100);
    let first = Cut { max_requests: Some(7), ..Cut::default() };
    assert_eq!(cut(first).len(), 7);
    let stretch = Cut {
        from: Some(Time::from_ns(20_500)),
        until: Some(Time::from_ns(25_000)),
        ..Cut::default()
    };
    let part = cut(stretch);
    assert_eq!(part.len(), 4);
    assert_eq!((part[0].at, part[0].lba), (Time::ZERO, Lba(21 * 8)));
    // Ten writes of 4 KiB, and the flush between them, which moves nothing.
    let bytes = Cut { max_bytes: Some(10 * 4096 + 4095), ..Cut::default() };
    assert_eq!(cut(bytes).len(), 11);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = trace::open(Path::new("no/such.trace"), &OpenOptions::default()).err().unwrap();
    assert!(error.to_string().starts_with("no/such.trace: it can't be read"), "{error}");
}

//! Classes by the names that a trace gives them.

use super::super::fuzz::reseal;
use super::super::read::compact::{BLOCK_HEADER_BYTES, HEADER_BYTES};
use super::super::{Compression, WriteOptions, Writer};
use super::*;

fn reader(bytes: &[u8]) -> Reader {
    let bytes = Box::new(Cursor::new(bytes.to_vec()));
    Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap()
}

fn csv(classes: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let lines = classes.into_iter().enumerate();
    let lines = lines.map(|(i, class)| format!("{i},W,{},8,W,{}\n", i * 8, class.as_ref()));
    format!("time_us,op,lba,len,flags,class\n{}", lines.collect::<String>())
}

/// The trace in another format, and what it could not carry.
fn converted(bytes: &[u8], format: Format, compression: Compression) -> (Vec<u8>, u64) {
    let reader = reader(bytes);
    let classes = reader.classes().clone();
    let options = WriteOptions { compression, classes, ..WriteOptions::new(format) };
    let mut writer = Writer::in_memory(&options).unwrap();
    for request in reader {
        writer.write(&request.unwrap()).unwrap();
    }
    let (bytes, written) = writer.into_bytes().unwrap();
    (bytes, written.lost.classes)
}

fn compact(bytes: &[u8]) -> Vec<u8> {
    converted(bytes, Format::Compact, Compression::None).0
}

fn called(bytes: &[u8]) -> Result<Vec<String>, TraceError> {
    let mut reader = reader(bytes);
    let classes = reader.classes().clone();
    let name = |request: Request| classes.name(request.class).unwrap().to_owned();
    reader.by_ref().map(|request| request.map(name)).collect()
}

#[test]
fn names_go_through_every_format_that_has_classes() {
    let text = csv(["heap", "wal", "index", "heap", "-", "catalog/other", "sst-l3", "Heap"]);
    let names = ["heap", "wal", "index", "heap", "unknown", "catalog/other", "sst-l3", "Heap"];
    for compression in [Compression::None, Compression::Zstd] {
        let (binary, lost) = converted(text.as_bytes(), Format::Compact, compression);
        assert_eq!((called(&binary).unwrap(), lost), (names.map(str::to_owned).into(), 0));
        let (back, lost) = converted(&binary, Format::Csv, compression);
        assert_eq!((called(&back).unwrap(), lost), (names.map(str::to_owned).into(), 0));
    }
    assert_eq!(
        converted(&compact(text.as_bytes()), Format::Csv, Compression::None).0,
        text.as_bytes()
    );
    assert_eq!(converted(text.as_bytes(), Format::Msr, Compression::None).1, 7);
}

/// A block of names stands before each block that has new ones, and numbers go on.
#[test]
fn names_may_come_late() {
    let name = |i: usize| match i {
        0 => "heap",
        5_000 => "index",
        9_000 => "fsm",
        _ if i.is_multiple_of(3) => "heap",
        _ if i > 5_000 && i % 3 == 1 => "index",
        _ => "wal",
    };
    let text = csv((0..10_000).map(name));
    let binary = compact(text.as_bytes());
    assert!(called(&binary).unwrap().iter().enumerate().all(|(i, found)| found == name(i)));
    assert!(converted(&binary, Format::Csv, Compression::None).0 == text.as_bytes());
}

/// Files without names are as they were before there were names.
#[test]
fn the_version_says_whether_there_are_names() {
    let version = |text: &str| {
        let bytes = compact(text.as_bytes());
        u16::from_le_bytes([bytes[8], bytes[9]])
    };
    assert_eq!(version(&csv(["wal", "data", "-"])), 1);
    assert_eq!(version(&csv(["wal", "heap"])), 2);
    // In version 1 there are neither blocks of names nor tags that refer to them.
    let mut old = compact(csv(["heap"]).as_bytes());
    old[8] = 1;
    reseal(&mut old);
    assert!(matches!(called(&old).unwrap_err().kind(), ErrorKind::Corrupt(_)));
}

/// A writer without the names reports its loss; nothing panics, and no class gets a wrong name.
#[test]
fn a_writer_without_the_names_counts_what_it_loses() {
    let text = csv(["heap", "wal", "index"]);
    for format in [Format::Csv, Format::Compact] {
        let mut writer = Writer::in_memory(&WriteOptions::new(format)).unwrap();
        for request in reader(text.as_bytes()) {
            writer.write(&request.unwrap()).unwrap();
        }
        let (bytes, written) = writer.into_bytes().unwrap();
        assert_eq!(written.lost.classes, 2);
        assert_eq!(called(&bytes).unwrap(), ["unknown", "wal", "unknown"]);
    }
}

#[test]
fn a_name_too_many_is_an_error_at_its_place() {
    let names: Vec<String> = (0..=ClassNames::MOST).map(|i| format!("table-{i}")).collect();
    let all = csv(&names[..ClassNames::MOST]);
    assert_eq!(called(all.as_bytes()).unwrap(), names[..ClassNames::MOST]);
    assert_eq!(called(&compact(all.as_bytes())).unwrap(), names[..ClassNames::MOST]);
    let error = called(csv(&names).as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "test:252: a class beyond the 250 that a trace may name; found `250,W,2000,8,W,table-250`. \
         Give several classes one name, or none: `-` in the column `class`."
    );
}

#[test]
fn damaged_names_are_told() {
    let good = compact(csv(["heap", "index"]).as_bytes());
    let payload = HEADER_BYTES + BLOCK_HEADER_BYTES;
    assert_eq!(&good[payload..payload + 11], b"\x04heap\x05index");
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        reseal(&mut bytes);
        called(&bytes)
    };
    assert_eq!(changed(payload, b"\x04heap").unwrap(), ["heap", "index"]);
    let requests = payload + 11 + BLOCK_HEADER_BYTES;
    assert_eq!(good[requests + 1], 0, "the first request's name");
    let cases: [(usize, &[u8], &str); 8] = [
        (payload, b"\x04data", "a known class"),
        (payload, b"\x04he p", "a blank"),
        (payload, b"\x04h\xc3\xa4p", "no ASCII"),
        (payload, b"\x00", "an empty name"),
        (payload, b"\x0bheap", "a name beyond the block"),
        (HEADER_BYTES + 8, b"\x01", "names that begin with number 1"),
        (payload + 5, b"\x04heap\x00", "a name twice"),
        (requests + 1, b"\x02", "a number without a name"),
    ];
    for (at, to, what) in cases {
        let error = changed(at, to).expect_err(what);
        assert!(matches!(error.kind(), ErrorKind::Corrupt(_)), "{what}: {error}");
        assert!(matches!(error.place(), Place::Byte(_)), "{what}: {error}");
    }
}

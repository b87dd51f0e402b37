//! Written traces are read back: exactly where a format can carry them, and as it says otherwise.

use std::io::Cursor;
use std::path::Path;

use leyden_device::{Lba, Op, ZoneAction};
use leyden_sim::Time;
use leyden_workload::trace::{
    Compression, Format, OpenOptions, Reader, WriteOptions, Writer, fuzz,
};
use leyden_workload::{Class, Request};
use proptest::prelude::*;

const OPS: [Op; 11] = [
    Op::Read,
    Op::Write,
    Op::Flush,
    Op::Trim,
    Op::WriteZeroes,
    Op::WritePrepare,
    Op::ZoneAppend,
    Op::Zone(ZoneAction::Reset),
    Op::Zone(ZoneAction::Finish),
    Op::Zone(ZoneAction::Open),
    Op::Zone(ZoneAction::Close),
];
const CLASSES: [Class; 5] =
    [Class::Unknown, Class::Data, Class::Wal, Class::Journal, Class::FsMeta];

fn request() -> impl Strategy<Value = Request> {
    let gap_ns = prop_oneof![Just(0u64), 0..5_000u64, 0..1u64 << 44];
    let lba = prop_oneof![0..1_000u64, 0..(1u64 << 55) - u64::from(u32::MAX)];
    let sectors = prop_oneof![Just(8u32), 1..256u32, 1..u32::MAX];
    let rest = (0..OPS.len(), any::<bool>(), 0..5usize);
    (gap_ns, lba, sectors, rest).prop_map(|(gap_ns, lba, sectors, (op, fua, class))| {
        let flush = OPS[op] == Op::Flush;
        let is_empty = flush || matches!(OPS[op], Op::Zone(_));
        Request {
            at: Time::from_ns(gap_ns),
            op: OPS[op],
            lba: Lba(if flush { 0 } else { lba }),
            sectors: if is_empty { 0 } else { sectors },
            fua: fua && !flush && OPS[op] != Op::WritePrepare,
            class: CLASSES[class],
        }
    })
}

/// Requests in time order, the first at zero; more than a block of the compact format now and then.
fn requests() -> impl Strategy<Value = Vec<Request>> {
    let length = prop_oneof![9 => 1..60usize, 1 => 4_000..9_000usize];
    length.prop_flat_map(|length| proptest::collection::vec(request(), length)).prop_map(
        |mut all| {
            let mut now_ns = 0;
            for (i, request) in all.iter_mut().enumerate() {
                now_ns += if i == 0 { 0 } else { request.at.as_ns() };
                request.at = Time::from_ns(now_ns);
            }
            all
        },
    )
}

fn written(
    requests: &[Request],
    options: &WriteOptions,
) -> (Vec<u8>, leyden_workload::trace::Written) {
    let mut writer = Writer::in_memory(options).unwrap();
    for request in requests {
        writer.write(request).unwrap();
    }
    writer.into_bytes().unwrap()
}

fn read(bytes: Vec<u8>) -> (Format, Vec<Request>) {
    let bytes = Box::new(Cursor::new(bytes));
    let mut reader = Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap();
    let requests = reader.by_ref().map(Result::unwrap).collect();
    (reader.format(), requests)
}

/// The fields of a request that `format` keeps.
fn kept(format: Format, request: &Request) -> Option<Request> {
    let (resolution_ns, fio) = match format {
        Format::Csv | Format::Compact => return Some(*request),
        Format::FioV2 | Format::FioV3 => (1_000, true),
        Format::Msr => (100, false),
        _ => (1, false),
    };
    let carried = match request.op {
        Op::Read | Op::Write => true,
        Op::Flush | Op::Trim => fio,
        _ => false,
    };
    let at_ns = request.at.as_ns() / resolution_ns * resolution_ns;
    carried.then_some(Request {
        at: Time::from_ns(at_ns),
        fua: false,
        class: Class::Unknown,
        ..*request
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_writable_format_is_read_back(
        requests in requests(),
        compression in prop_oneof![
            Just(Compression::None), Just(Compression::Gzip), Just(Compression::Zstd)
        ],
    ) {
        for format in Format::ALL.into_iter().filter(|format| format.can_write()) {
            let mut expected: Vec<Request> =
                requests.iter().filter_map(|request| kept(format, request)).collect();
            let Some(first) = expected.first().map(|first| first.at.as_ns()) else { continue };
            for request in &mut expected {
                request.at = Time::from_ns(request.at.as_ns() - first);
            }
            let options = WriteOptions { compression, ..WriteOptions::new(format) };
            let (bytes, written) = written(&requests, &options);
            prop_assert_eq!(written.file_bytes, bytes.len() as u64);
            prop_assert_eq!(written.requests, expected.len() as u64);
            let lost = written.lost;
            prop_assert_eq!(
                lost.flushes + lost.trims + lost.write_zeroes + lost.hints + lost.zone_operations,
                (requests.len() - expected.len()) as u64
            );
            prop_assert_eq!(lost.is_nothing(), matches!(format, Format::Csv | Format::Compact)
                || requests.iter().all(|request| kept(format, request) == Some(*request)));
            let (sniffed, read) = read(bytes);
            prop_assert_eq!(sniffed, format);
            prop_assert!(read == expected, "{format}");
        }
    }

    /// Our text, the compact format and our text again: the same bytes, whatever the classes are called.
    #[test]
    fn names_of_classes_survive_every_way_round(
        classes in proptest::collection::vec(
            prop_oneof![
                4 => "[a-zA-Z0-9_./:+-]{1,40}", 4 => "[a-d]", 1 => Just("wal".to_owned()), 1 => Just("-".to_owned()),
            ],
            1..200,
        ),
        compression in prop_oneof![Just(Compression::None), Just(Compression::Zstd)],
    ) {
        // These mean the same as `-`, which is how they are written.
        let plain = |class: &str| if matches!(class, "other" | "unknown") { "-".to_owned() } else { class.to_owned() };
        let line = |(i, class): (usize, &String)| format!("{i},W,{},8,W,{}\n", i * 8, plain(class));
        let lines: String = classes.iter().enumerate().map(line).collect();
        let text = format!("time_us,op,lba,len,flags,class\n{lines}").into_bytes();
        let convert = |bytes: Vec<u8>, format: Format, compression: Compression| {
            let bytes = Box::new(Cursor::new(bytes));
            let reader = Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap();
            let classes = reader.classes().clone();
            let options = WriteOptions { classes, compression, ..WriteOptions::new(format) };
            let requests: Vec<Request> = reader.map(Result::unwrap).collect();
            written(&requests, &options).0
        };
        let compact = convert(text.clone(), Format::Compact, compression);
        prop_assert!(convert(compact, Format::Csv, Compression::None) == text);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = fuzz::read_all(None, &bytes);
        for format in Format::ALL {
            let _ = fuzz::read_all(Some(format), &bytes);
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(
        text in "([0-9]{1,21}|[RWFDZH-]|Read|Write|,| |\\.|\n|\r|\\+|\\[|wait|sync|time_us){0,80}"
    ) {
        for format in Format::ALL {
            let _ = fuzz::read_all(Some(format), text.as_bytes());
        }
    }
}

#[test]
fn formats_without_a_writer_say_so() {
    for format in Format::ALL {
        let writer = Writer::in_memory(&WriteOptions::new(format));
        assert_eq!(writer.is_ok(), format.can_write());
        if let Err(error) = writer {
            assert!(error.to_string().contains("only read"), "{error}");
        }
    }
}

#[test]
fn a_writer_takes_only_what_a_reader_could_hand_out() {
    let good = Request {
        at: Time::from_ns(5),
        op: Op::Write,
        lba: Lba(0),
        sectors: 8,
        fua: false,
        class: Class::Unknown,
    };
    let bad = [
        Request { at: Time::ZERO, ..good },
        Request { sectors: 0, ..good },
        Request { lba: Lba(1 << 55), ..good },
        Request { lba: Lba(u64::MAX), ..good },
    ];
    for request in bad {
        let mut writer = Writer::in_memory(&WriteOptions::new(Format::Compact)).unwrap();
        writer.write(&good).unwrap();
        assert!(writer.write(&request).is_err());
    }
    let empty = Writer::in_memory(&WriteOptions::new(Format::Csv)).unwrap();
    assert!(empty.into_bytes().is_err());
    let options =
        WriteOptions { fio_file: "two words".to_owned(), ..WriteOptions::new(Format::FioV3) };
    assert!(Writer::in_memory(&options).is_err());
}

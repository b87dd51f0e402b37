//! blktrace's records and our compact format.

use super::*;
use crate::trace::{Compression, WriteOptions, Writer};
use leyden_device::ZoneAction;

/// `BLK_TC_*` bits as they stand in an action.
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const PASSTHROUGH: u64 = 1 << 25;
const NOTIFY: u64 = 1 << 26;
const DISCARD: u64 = 1 << 29;
const FUA: u64 = 1 << 31;
const ZONE_RESET: u64 = 1 << 33;
const WRITE_ZEROES: u64 = 1 << 38;
const ISSUE: u64 = 7;

/// A record: time in ns, sector, bytes, action, what follows it.
type Fields = (u64, u64, u32, u64, &'static [u8]);

fn v1((time_ns, sector, bytes, action, pdu): Fields) -> Vec<u8> {
    let mut record = 0x6561_7407u32.to_le_bytes().to_vec();
    record.extend(1u32.to_le_bytes());
    record.extend(time_ns.to_le_bytes());
    record.extend(sector.to_le_bytes());
    record.extend(bytes.to_le_bytes());
    record.extend((action as u32).to_le_bytes());
    record.extend(700u32.to_le_bytes());
    record.extend((8u32 << 20 | 1).to_le_bytes());
    record.extend(0u32.to_le_bytes());
    record.extend(0u16.to_le_bytes());
    record.extend((pdu.len() as u16).to_le_bytes());
    record.extend(pdu);
    record
}

fn v2((time_ns, sector, bytes, action, pdu): Fields) -> Vec<u8> {
    let mut record = 0x6561_7408u32.to_le_bytes().to_vec();
    record.extend(1u32.to_le_bytes());
    record.extend(time_ns.to_le_bytes());
    record.extend(sector.to_le_bytes());
    record.extend(bytes.to_le_bytes());
    record.extend(700u32.to_le_bytes());
    record.extend(action.to_le_bytes());
    record.extend((8u32 << 20 | 1).to_le_bytes());
    record.extend(0u32.to_le_bytes());
    record.extend(0u16.to_le_bytes());
    record.extend((pdu.len() as u16).to_le_bytes());
    record.extend([0; 12]);
    record.extend(pdu);
    record
}

const RECORDS: [Fields; 8] = [
    (0, 0, 0, NOTIFY, b"db"),
    (500, 8, 4096, 1 | WRITE, b""),
    (1_000, 8, 4096, ISSUE | WRITE | 1 << 8, b"cgroupid"),
    (2_000, 0, 0, ISSUE | FLUSH, b""),
    (3_000, 16, 512, ISSUE | WRITE | FUA, b""),
    (4_000, 0, 36, ISSUE | PASSTHROUGH, b"\x12\x00"),
    (5_000, 24, 1024, ISSUE, b""),
    (6_000, 32, 8192, ISSUE | DISCARD | WRITE, b""),
];

fn expected() -> Vec<Request> {
    vec![
        request(0, Op::Write, 8, 8),
        request(1_000, Op::Flush, 0, 0),
        Request { fua: true, ..request(2_000, Op::Write, 16, 1) },
        request(4_000, Op::Read, 24, 2),
        request(5_000, Op::Trim, 32, 16),
    ]
}

#[test]
fn blktrace_records_of_both_versions_are_read() {
    for encode in [v1, v2] {
        let bytes: Vec<u8> = RECORDS.into_iter().flat_map(encode).collect();
        let (requests, counts) = read(&bytes, &OpenOptions::default()).unwrap();
        assert_eq!(requests, expected());
        assert_eq!((counts.skipped_actions, counts.skipped_passthrough), (2, 1));
    }
    let extra =
        [(7_000, 0, 512, ISSUE | WRITE_ZEROES, &b""[..]), (7_000, 0, 0, ISSUE | ZONE_RESET, b"")];
    let bytes: Vec<u8> = extra.into_iter().flat_map(v2).collect();
    let (requests, counts) = read(&bytes, &OpenOptions::default()).unwrap();
    let reset = request(0, Op::Zone(ZoneAction::Reset), 0, 0);
    assert_eq!(requests, [request(0, Op::WriteZeroes, 0, 1), reset]);
    assert_eq!(counts.skipped_zone_ops, 0);
    // An append, and a reset of all zones, which is none of one.
    let of_zones = [
        (7_000, 64, 512, ISSUE | ZONE_RESET >> 1, &b""[..]),
        (7_000, 0, 0, ISSUE | ZONE_RESET << 1, b""),
    ];
    let bytes: Vec<u8> = of_zones.into_iter().flat_map(v2).collect();
    let (requests, counts) = read(&bytes, &OpenOptions::default()).unwrap();
    assert_eq!(requests, [request(0, Op::ZoneAppend, 64, 1)]);
    assert_eq!(counts.skipped_zone_ops, 1);
}

#[test]
fn blktrace_damage_is_named() {
    let options = OpenOptions::default();
    let bytes: Vec<u8> = RECORDS.into_iter().flat_map(v1).collect();
    let ends: Vec<usize> = RECORDS
        .into_iter()
        .scan(0, |end, fields| {
            *end += v1(fields).len();
            Some(*end)
        })
        .collect();
    for cut in 4..bytes.len() {
        // A cut between two records can't be noticed: the format has no end mark.
        if !ends.contains(&cut) {
            let error = read(&bytes[..cut], &options).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Truncated(_)), "{cut}: {error}");
        }
    }
    let mut shifted = bytes.clone();
    shifted.remove(ends[2] - 1);
    let error = read(&shifted, &options).unwrap_err();
    assert!(error.to_string().contains("no record begins here"), "{error}");
    let mut swapped = bytes.clone();
    swapped[..4].reverse();
    let error = read(&swapped, &options).unwrap_err();
    assert!(error.to_string().contains("big-endian"), "{error}");
    let mut newer = bytes;
    newer[0] = 9;
    let error = read(&newer, &options).unwrap_err();
    assert!(error.to_string().contains("version"), "{error}");
}

fn compact(requests: &[Request], compression: Compression) -> Vec<u8> {
    let options = WriteOptions { compression, ..WriteOptions::new(Format::Compact) };
    let mut writer = Writer::in_memory(&options).unwrap();
    for request in requests {
        writer.write(request).unwrap();
    }
    writer.into_bytes().unwrap().0
}

#[test]
fn compact_says_what_it_holds_where_it_can() {
    for (compression, known) in [(Compression::None, true), (Compression::Zstd, false)] {
        let bytes = compact(&expected(), compression);
        let bytes = Box::new(Cursor::new(bytes));
        let mut reader = Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap();
        let declared = reader.declared().map(|all| (all.requests, all.end_sector));
        assert_eq!(declared, known.then_some((5, 48)));
        let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(requests, expected());
    }
}

#[test]
fn every_cut_and_every_changed_byte_of_a_compact_trace_is_noticed() {
    let bytes = compact(&expected(), Compression::None);
    let options = OpenOptions { format: Some(Format::Compact), ..OpenOptions::default() };
    assert!(read(&bytes, &options).is_ok());
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at], &options).is_err(), "cut at {at}");
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            assert!(read(&changed, &options).is_err(), "changed at {at}");
        }
    }
    let error = read(&[&bytes[..], b"x"].concat(), &options).unwrap_err();
    assert!(error.to_string().contains("something follows"), "{error}");
}

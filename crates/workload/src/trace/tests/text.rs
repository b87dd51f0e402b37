//! The text formats, as they should be.

use super::super::Packing;
use super::*;

#[test]
fn our_csv_knows_all_operations_flags_and_classes() {
    let (requests, counts) = read_plain(
        "time_us,op,lba,len,flags,class\n\
         100,W,8,16,WS,wal\n\
         100.5,F,0,0,FF,-\n\
         101,R,0,8,RA,data\n\
         102,D,64,8,DS,other\n\
         103,Z,72,8,-,fs-meta\n\
         104,W,80,8,FWFSM,journal\n\
         105,H,8,8,-,catalog/other\n\
         105,H,16,8,-,wal\n\
         106,W,88,8,WFS,-\n",
    )
    .unwrap();
    // A table that has met the same names has the same classes.
    let classes = ClassNames::default();
    let class = |request, class| Request { class, ..request };
    let fua = |request| Request { fua: true, ..request };
    let expected = [
        class(request(0, Op::Write, 8, 16), Class::Wal),
        request(500, Op::Flush, 0, 0),
        class(request(1_000, Op::Read, 0, 8), Class::Data),
        request(2_000, Op::Trim, 64, 8),
        class(request(3_000, Op::WriteZeroes, 72, 8), Class::FsMeta),
        request(4_000, Op::Flush, 0, 0),
        fua(class(request(4_000, Op::Write, 80, 8), Class::Journal)),
        class(request(5_000, Op::WritePrepare, 8, 8), classes.class("catalog/other").unwrap()),
        class(request(5_000, Op::WritePrepare, 16, 8), Class::Wal),
        fua(request(6_000, Op::Write, 88, 8)),
    ];
    assert_eq!(requests, expected);
    assert_eq!((counts.hints, counts.split_preflush), (2, 1));
}

#[test]
fn classes_can_be_left_out() {
    let text = "time_us,op,lba,len,flags,class\n\
         90,W,0,8,FWFS,wal\n\
         100,W,8,16,WS,data\n\
         101,F,0,0,FF,-\n\
         102,W,80,8,W,heap\n\
         103,W,88,8,W,wal\n";
    let left = |names: &[&str]| {
        let without = names.iter().map(|&name| name.to_owned()).collect();
        let options = OpenOptions { without, ..OpenOptions::default() };
        read(text.as_bytes(), &options)
    };
    // The log's own flush goes with it; one of no class is of all writes. The first that is left is at time zero.
    let (requests, counts) = left(&["wal", "heap"]).unwrap();
    let data = Request { class: Class::Data, ..request(0, Op::Write, 8, 16) };
    assert_eq!(requests, [data, request(1_000, Op::Flush, 0, 0)]);
    assert_eq!((counts.skipped_classes, counts.split_preflush), (3, 0));
    let (whole, counts) = left(&[]).unwrap();
    assert_eq!((whole.len(), counts.skipped_classes), (6, 0));
    let (all_but_unknown, _) = left(&["other"]).unwrap();
    assert_eq!(all_but_unknown.len(), 6, "flushes stay");
    let options = OpenOptions { without: vec!["wall".to_owned()], ..OpenOptions::default() };
    let bytes = Box::new(Cursor::new(text.to_owned()));
    let mut reader = Reader::new(Path::new("trace"), bytes, &options).unwrap();
    assert_eq!(reader.by_ref().count(), 6);
    assert_eq!(reader.warnings(), ["no request is of the class `wall`, which was to be left out"]);
    let only_log = "time_us,op,lba,len,flags,class\n90,W,0,8,WS,wal\n";
    let options = OpenOptions { without: vec!["wal".to_owned()], ..OpenOptions::default() };
    let error = read(only_log.as_bytes(), &options).unwrap_err();
    assert!(error.to_string().contains("Leave fewer classes out"), "{error}");
}

#[test]
fn our_csv_may_lack_its_last_columns_or_tell_the_journal() {
    let (requests, counts) =
        read_plain("time_us,op,lba,len,flags,is_journal\r\n0,W,0,8,WSM,1\r\n1,W,8,8,WS,0").unwrap();
    assert_eq!(requests[0].class, Class::Journal);
    assert_eq!(requests[1].class, Class::Unknown);
    assert!(counts.unterminated && counts.warnings().len() == 1);
    let (requests, _) = read_plain("time_us,op,lba,len\n5,R,7,1\n").unwrap();
    assert_eq!(requests, [request(0, Op::Read, 7, 1)]);
}

const BLKPARSE: &str = "\
Input file sda.blktrace.0 added
  8,0    1        1     0.000000000   700  Q  WS 1000 + 16 [db]
  8,0    1        2     0.000001000   700  G  WS 1000 + 16 [db]
  8,0    1        3     0.000002000   700  D  WS 1000 + 16 [db]
  8,0    1        4     0.000500000     0  C  WS 1000 + 16 [0]
  8,0    1        5     0.000600000   701  Q FWFSM 2000 + 8 [jbd2/sda-8]
  8,0    1        6     0.000601000   701  D  FN [kworker/1:1H]
  8,0    1        7     0.000700000   701  D WFSM 2000 + 8 [jbd2/sda-8]
  8,0    1        8     0.000800000   702  D   R 36 (12 00 00 00 24 00) [smartd]
  8,0    1        9     0.000900000   703  D   D 4096 + 2048 [fstrim]
  8,0    1       10     0.001000000   703  m   N cfq 703 insert_request
  8,0    1       11     0.001100000   704  D ZRA 0 + 0 [zbd]
  8,0    1       12     0.001200000   705  D  WZ 8192 + 64 [mkfs]
CPU1 (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,       12KiB
 IO unplugs:             1        \t Timer unplugs:           0

Total (8,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,       12KiB

Throughput (R/W): 0KiB/s / 12KiB/s
Events (8,0): 12 entries
Skips: 0 forward (0 -   0.0%)
";

#[test]
fn blkparse_takes_the_action_asked_for() {
    let (issued, counts) = read_plain(BLKPARSE).unwrap();
    let fua = Request { fua: true, ..request(698_000, Op::Write, 2000, 8) };
    let expected = [
        request(0, Op::Write, 1000, 16),
        request(599_000, Op::Flush, 0, 0),
        fua,
        request(898_000, Op::Trim, 4096, 2048),
        request(1_198_000, Op::WriteZeroes, 8192, 64),
    ];
    assert_eq!(issued, expected);
    assert_eq!(counts.skipped_passthrough, 1);
    assert_eq!(counts.skipped_zone_ops, 1);
    assert_eq!(counts.skipped_actions, 5);

    let action = |blkparse_action| OpenOptions { blkparse_action, ..OpenOptions::default() };
    let (queued, counts) = read(BLKPARSE.as_bytes(), &action(BlkAction::Queue)).unwrap();
    assert_eq!(queued.len(), 3);
    assert_eq!(counts.split_preflush, 1);
    let (completed, _) = read(BLKPARSE.as_bytes(), &action(BlkAction::Complete)).unwrap();
    assert_eq!(completed, [request(0, Op::Write, 1000, 16)]);
}

#[test]
fn fio_version_2_waits_and_version_3_stamps() {
    let expected = [
        request(0, Op::Write, 0, 8),
        request(100_000, Op::Read, 8, 8),
        request(100_000, Op::Flush, 0, 0),
        request(350_000, Op::Trim, 16, 16),
    ];
    let (requests, counts) = read_plain(
        "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 0 4096\n\
         /dev/sda wait 100 0\n/dev/sda read 4096 4096\n/dev/sda sync 0 0\n/dev/sda wait 250\n\
         /dev/sda trim 8192 8192\n/dev/sda close\n",
    )
    .unwrap();
    assert_eq!(requests, expected);
    assert_eq!(counts.skipped_file_actions, 3);
    let (requests, _) = read_plain(
        "fio version 3 iolog\n0 f add\n2 f open\n7 f write 0 4096\n107 f read 4096 4096\n\
         107 f datasync\n357 f trim 8192 8192\n400 f close\n",
    )
    .unwrap();
    assert_eq!(requests, expected);
}

#[test]
fn msr_ticks_are_100_ns_and_bytes_are_widened() {
    let (requests, counts) = read_plain(
        "128166372003061629,web,0,Write,1024,4096,613\n\
         128166372003061630,web,0,Read,1000,100,0\n\
         128166372003061631,web,0,Read,0,0,0\n",
    )
    .unwrap();
    let expected = [request(0, Op::Write, 2, 8), request(100, Op::Read, 1, 2)];
    assert_eq!(requests, expected);
    assert_eq!((counts.widened, counts.skipped_zero_length), (1, 1));
}

#[test]
fn systor_has_decimal_seconds_and_blank_types() {
    let (requests, counts) = read_plain(
        "Timestamp,Response,IOType,LUN,Offset,Size\n\
         1456135200.013118000,0.001,W,0,4096,4096\n\
         1456135200.013119000,,,0,4096,4096\n\
         1456135201.013118000,0.002,R,0,0,512\n",
    )
    .unwrap();
    assert_eq!(requests, [request(0, Op::Write, 8, 8), request(1_000_000_000, Op::Read, 0, 1)]);
    assert_eq!(counts.skipped_no_type, 1);
}

#[test]
fn disksim_zero_is_a_write() {
    let (requests, _) = read_plain("500 3 16 8 0\n700 3 32 16 1\n").unwrap();
    assert_eq!(requests, [request(0, Op::Write, 16, 8), request(200, Op::Read, 32, 16)]);
}

#[test]
fn several_devices_need_a_rule() {
    let text = "0 0 16 8 0\n100 1 16 8 0\n200 0 32 8 1\n";
    let with = |devices| {
        let options = OpenOptions { devices, ..OpenOptions::default() };
        read(text.as_bytes(), &options)
    };
    let error = with(Devices::One).unwrap_err();
    assert_eq!(error.place(), Place::Line(2));
    assert!(error.to_string().contains("second device, `1` after `0`"), "{error}");
    let (only, counts) = with(Devices::Only("1".to_owned())).unwrap();
    assert_eq!((only, counts.skipped_devices), (vec![request(0, Op::Write, 16, 8)], 2));
    assert_eq!(with(Devices::Overlay).unwrap().0.len(), 3);
    let stacked = with(Devices::Stack { stride_sectors: 40 }).unwrap().0;
    let lbas: Vec<u64> = stacked.iter().map(|request| request.lba.0).collect();
    assert_eq!(lbas, [16, 56, 32]);
    let error = with(Devices::Stack { stride_sectors: 30 }).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BeyondStride { .. }));
}

#[test]
fn late_records_are_sorted_within_the_window() {
    // Pairs that are swapped, over more records than several windows.
    let pairs = (0..20_000u64).map(|pair| {
        let (early, late) = (2 * pair, 2 * pair + 1);
        format!("{late},W,{late},1\n{early},R,{early},1\n")
    });
    let text = format!("time_us,op,lba,len\n{}", pairs.collect::<String>());
    let unsorted = |unsorted| OpenOptions { unsorted, ..OpenOptions::default() };
    for window in [1, 2, 3, 1000, 64 << 10] {
        let options = unsorted(Unsorted::Sort { window });
        let (requests, counts) = read(text.as_bytes(), &options).unwrap();
        assert_eq!(counts.reordered, 20_000);
        assert!(requests.iter().zip(0..).all(|(request, lba)| request.lba == Lba(lba)));
    }
    let error = read(text.as_bytes(), &unsorted(Unsorted::Refuse)).unwrap_err();
    assert_eq!(error.place(), Place::Line(3));
    assert!(error.to_string().contains("Sort the trace by time"), "{error}");
}

#[test]
fn records_of_one_time_keep_their_order() {
    let text = "time_us,op,lba,len\n1,W,1,1\n0,W,2,1\n1,W,3,1\n0,W,4,1\n1,W,5,1\n";
    let (requests, _) = read_plain(text).unwrap();
    let lbas: Vec<u64> = requests.iter().map(|request| request.lba.0).collect();
    assert_eq!(lbas, [2, 4, 1, 3, 5]);
}

#[test]
fn the_reader_tells_its_clock_and_its_progress() {
    let text = "time_us,op,lba,len\n7,W,1,1\n";
    let bytes = Box::new(Cursor::new(text.as_bytes()));
    let mut reader = Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap();
    let position = reader.position();
    assert!(reader.next().unwrap().is_ok());
    assert_eq!(reader.base(), Some(Time::from_ns(7_000)));
    assert_eq!(position.bytes(), text.len() as u64);
    assert_eq!(reader.format(), Format::Csv);
}

#[test]
fn a_flush_may_be_of_a_file() {
    let (requests, _) = read_plain("time_us,op,lba,len\n0,F,64,16\n1,F,64,0\n").unwrap();
    assert_eq!(requests, [request(0, Op::Flush, 64, 16), request(1_000, Op::Flush, 0, 0)]);
    let (flagged, _) = read_plain("time_us,op,lba,len,flags\n0,F,64,16,FF\n").unwrap();
    assert_eq!(flagged, requests[..1]);
    let beyond = read_plain("time_us,op,lba,len\n0,F,18446744073709551615,16\n").unwrap_err();
    assert!(matches!(beyond.kind(), ErrorKind::Range), "{beyond}");
    // fio's files lie apart with `stack` alone.
    let log = "fio version 2 iolog\n/a add\n/a open\n/b open\n/a write 0 4096\n/b write 0 4096\n/b sync\n";
    let with = |devices| {
        let options = OpenOptions { devices, ..OpenOptions::default() };
        read(log.as_bytes(), &options).unwrap().0
    };
    let stacked = with(Devices::Stack { stride_sectors: 100 });
    assert_eq!(stacked[2], request(0, Op::Flush, 100, 100));
    assert_eq!(with(Devices::Overlay)[2], request(0, Op::Flush, 0, 0));
}

#[test]
fn a_file_stays_a_file_when_it_is_packed() {
    let all = [
        request(0, Op::Write, 800, 8),
        request(0, Op::Write, 816, 8),
        request(0, Op::Write, 1_600, 8),
        request(0, Op::Flush, 800, 800),
        request(0, Op::Flush, 2_000, 800),
        request(0, Op::Flush, 0, 0),
    ];
    let packing = std::sync::Arc::new(Packing::of(all.into_iter().map(Ok)).unwrap());
    let packed: Vec<_> = packing.apply(all.into_iter().map(Ok)).map(Result::unwrap).collect();
    assert_eq!(packed[3], request(0, Op::Flush, 0, 16));
    assert_eq!((packing.sectors(), packed[4].sectors, packed[5].sectors), (24, 1, 0));
}

//! The text formats, as they shouldn't be: each is an error that says where and what.

use std::io::Write as _;

use super::*;

/// The error of reading `text` (as `format`, if given) stands at `place` and says `says`.
#[track_caller]
fn refused(format: Option<Format>, text: &[u8], place: Place, says: &str) {
    let options = OpenOptions { format, ..OpenOptions::default() };
    let error = read(text, &options).unwrap_err();
    assert_eq!(error.place(), place, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(error.path(), Path::new("test"));
}

#[test]
fn our_csv() {
    let line = |line: &str| format!("time_us,op,lba,len,flags,class\n0,W,8,8,W,-\n{line}\n");
    let cases = [
        ("1,W,8,8,W", "5 columns where"),
        ("1,W,8,8,W,-,x", "7 columns where"),
        ("-1,W,8,8,W,-", "`time_us` isn't"),
        ("nan,W,8,8,W,-", "`time_us` isn't"),
        ("1e3,W,8,8,W,-", "`time_us` isn't"),
        ("1.0001,W,8,8,W,-", "`time_us` isn't"),
        ("99999999999999999999,W,8,8,W,-", "`time_us` is too large"),
        ("18446744073709551,W,8,8,W,-,", "7 columns"),
        ("18446744073709552,W,8,8,W,-", "`time_us` is too large"),
        ("1,w,8,8,W,-", "`op` isn't one of"),
        ("1,8,W,8,W,-", "`lba` isn't"),
        ("1,W,-8,8,W,-", "`lba` isn't"),
        ("1,W,18446744073709551616,8,W,-", "`lba` is too large"),
        ("1,W,18446744073709551615,8,W,-", "beyond 2^64"),
        ("1,W,36028797018963968,1,W,-", "beyond 2^64"),
        ("1,W,8,4294967296,W,-", "`len` is too large"),
        ("1,W,8,8,R,-", "`flags` isn't of the operation"),
        ("1,W,8,8,w,-", "`flags` isn't RWBS"),
        ("1,W,8,8,W,a heap", "`class` isn't a name of"),
        ("1,W,8,8,W,h\u{f6}lle", "`class` isn't a name of"),
        ("1,W,8,8,W,a-name-that-has-more-characters-than-it-may", "`class` isn't a name of"),
        ("1,H,8,8,-,<heap>", "`class` isn't a name of"),
        ("1,H,x,8,-,heap", "`lba` isn't"),
        ("1,H,8,8,heap,-", "`flags` isn't RWBS"),
        ("time_us,op,lba,len,flags,class", "`time_us` isn't"),
        ("11413000 0 657728 16 1", "1 columns"),
        ("\u{1f980},W,8,8,W,-", "found `\\xf0\\x9f\\xa6\\x80,W,8,8,W,-`"),
    ];
    for (bad, says) in cases {
        refused(None, line(bad).as_bytes(), Place::Line(3), says);
    }
    refused(None, b"time_us,op,lba,len\n", Place::File, "no request in it");
    refused(None, b"time_us,lba,op,len\n1,1,W,1\n", Place::File, "first line isn't");
    refused(Some(Format::Csv), b"0,W,8,8\n", Place::Line(1), "first line isn't");
    refused(None, b"", Place::File, "no request in it");
    refused(None, b"\n\n", Place::File, "no request in it");
    refused(None, b"\x00\x01\x02\x03", Place::File, "beginning is of no known format");
    refused(None, "t\0i\0m\0e\0".as_bytes(), Place::File, "beginning is of no known format");
    let zero = b"time_us,op,lba,len\n0,H,8,0\n";
    refused(None, zero, Place::File, "1 records were skipped");
}

/// A line that cannot be read because a compressed file is damaged is not the line's fault.
#[test]
fn damage_to_a_compressed_file_is_told_from_a_bad_line() {
    let stored = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    };
    let text = [&b"time_us,op,lba,len\n0,W,8,8\n"[..], &b"7,W,8,8\n".repeat(200_000)].concat();
    let mut file = stored(&text);
    let at = file.windows(8).position(|piece| piece == b"7,W,8,8\n").unwrap();
    file[at] = b'!';
    refused(None, &file, Place::Line(3), "it can't be read: corrupt gzip stream");
    let bad = String::from_utf8(text).unwrap().replacen("7,", "!,", 1);
    refused(None, &stored(bad.as_bytes()), Place::Line(3), "isn't microseconds");
}

#[test]
fn endless_lines() {
    let mut text = b"time_us,op,lba,len\n1,W,".to_vec();
    text.resize(1 << 20, b'1');
    refused(None, &text, Place::Line(2), "longer than 65536 bytes");
    refused(Some(Format::Msr), &b"1".repeat(1 << 17), Place::Line(1), "longer than 65536 bytes");
}

#[test]
fn blkparse() {
    let good = "8,0 1 1 0.000000000 700 D WS 1000 + 16 [db]\n";
    let cases = [
        ("8,0 1 2 0.1", "4 columns where"),
        ("8 1 2 0.1 7 D W 0 + 8 [x]", "`device` isn't major,minor"),
        ("8,0 x 2 0.1 7 D W 0 + 8 [x]", "`cpu` isn't a number"),
        ("8,0 1 2 x 7 D W 0 + 8 [x]", "`time` isn't seconds"),
        ("8,0 1 2 0.1 7 D w 0 + 8 [x]", "`flags` isn't RWBS"),
        ("8,0 1 2 0.1 7 D W -1 + 8 [x]", "`sector` isn't"),
        ("8,0 1 2 0.1 7 D W 0 + x [x]", "`sectors` isn't"),
        ("8,0 1 2 0.1 7 D W 0 +", "`sectors` isn't"),
        ("8,0 1 2 0.1 7 D W 0 8 [x]", "`sectors` isn't `+ sectors`"),
        ("8,16 1 2 0.1 7 D W 0 + 8 [x]", "a second device, `8,16` after `8,0`"),
        ("hello", "1 columns where"),
        ("time_us,op,lba,len", "1 columns where"),
    ];
    for (bad, says) in cases {
        refused(None, format!("{good}{bad}\n").as_bytes(), Place::Line(2), says);
    }
    let other = b"8,0 1 1 0.000000000 700 Q WS 1000 + 16 [db]\n";
    refused(None, other, Place::File, "Check the action that was asked for");
}

#[test]
fn fio() {
    let cases = [
        ("f", "1 columns where"),
        ("f write 0 4096 1 2", "6 columns where"),
        ("f write 0", "3 columns where"),
        ("f write x 4096", "`offset` isn't a number of bytes"),
        ("f write 0 -1", "`length` isn't a number of bytes"),
        ("f erase 0 4096", "`action` isn't one of"),
        ("f wait", "2 columns where"),
        ("f wait 18446744073709551615\nf write 0 512", "`timestamp` is too large"),
        ("f write 0 18446744073709551615", "`size` is too large"),
        ("f write 18446744073709551615 2", "beyond 2^64"),
        ("g write 0 512", "a second device, `g` after `f`"),
    ];
    for (bad, says) in cases {
        let text = format!("fio version 2 iolog\nf write 0 512\n{bad}\n");
        let line = 2 + bad.lines().count() as u64;
        refused(None, text.as_bytes(), Place::Line(line), says);
    }
    let v3 = "fio version 3 iolog\n0 f write 0 512\n";
    refused(None, format!("{v3}5 f wait 10\n").as_bytes(), Place::Line(3), "`action` isn't known");
    refused(None, format!("{v3}f write 0 512\n").as_bytes(), Place::Line(3), "`timestamp` isn't");
    refused(None, b"fio version 1 iolog\n", Place::File, "a version that isn't known");
}

#[test]
fn msr() {
    let cases = [
        ("1,web,0,Write,0,512", "6 columns where"),
        ("1,web,0,Write,0,512,1,1", "8 columns where"),
        ("x,web,0,Write,0,512,1", "`Timestamp` isn't"),
        ("184467440737095517,web,0,Write,0,512,1", "`Timestamp` is too large"),
        ("2,web,x,Write,0,512,1", "`DiskNumber` isn't"),
        ("2,web,0,Erase,0,512,1", "`Type` isn't one of Read (read), Write (write)"),
        ("2,web,0,Write,-512,512,1", "`Offset` isn't"),
        ("2,web,0,Write,0,NaN,1", "`Size` isn't"),
        ("2,web,0,Write,0,512,fast", "`ResponseTime` isn't"),
        ("2,web,0,Write,0,9999999999999,1", "`Size` is too large"),
        ("2,web,1,Write,0,512,1", "a second device, `web,1` after `web,0`"),
        ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", "`Timestamp` isn't"),
    ];
    for (bad, says) in cases {
        let text = format!("1,web,0,Write,0,512,1\n{bad}\n");
        refused(None, text.as_bytes(), Place::Line(2), says);
    }
    refused(None, b"1,w\xff,0,Read,0,512,1\n", Place::Line(1), "`device` isn't text (UTF-8)");
}

#[test]
fn systor_and_disksim() {
    let cases = [
        ("1.5,0.1,R,0,0", "5 columns where"),
        ("x,0.1,R,0,0,512", "`Timestamp` isn't"),
        ("1.5,x,R,0,0,512", "`Response` isn't"),
        ("1.5,0.1,X,0,0,512", "`IOType` isn't"),
        ("1.5,0.1,R,a,0,512", "`LUN` isn't"),
        ("1.5,0.1,R,0,-1,512", "`Offset` isn't"),
        ("1.5,0.1,R,0,0,inf", "`Size` isn't"),
    ];
    for (bad, says) in cases {
        let text = format!("Timestamp,Response,IOType,LUN,Offset,Size\n{bad}\n");
        refused(None, text.as_bytes(), Place::Line(2), says);
    }
    let cases = [
        ("1 0 0 8", "4 columns where"),
        ("1 0 0 8 1 1", "6 columns where"),
        ("1.5 0 0 8 1", "`arrival_ns` isn't whole nanoseconds"),
        ("1 x 0 8 1", "`device` isn't"),
        ("1 0 x 8 1", "`lba` isn't"),
        ("1 0 0 4294967296 1", "`sectors` is too large"),
        ("1 0 0 8 2", "`type` isn't one of 1 (read), 0 (write)"),
    ];
    for (bad, says) in cases {
        refused(None, format!("0 0 0 8 1\n{bad}\n").as_bytes(), Place::Line(2), says);
    }
}

#[test]
fn requests_before_an_error_are_handed_out() {
    let text = "time_us,op,lba,len\n5,W,1,1\n3,W,2,1\nx\n4,W,3,1\n";
    let bytes = Box::new(Cursor::new(text));
    let mut reader = Reader::new(Path::new("test"), bytes, &OpenOptions::default()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().lba, Lba(2));
    assert_eq!(reader.next().unwrap().unwrap().lba, Lba(1));
    assert_eq!(reader.next().unwrap().unwrap_err().place(), Place::Line(4));
    assert!(reader.next().is_none());
}

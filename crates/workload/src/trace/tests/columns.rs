//! Columns that a user describes, and text of tools that trace requests.

use super::*;

fn described(columns: &str) -> OpenOptions {
    OpenOptions { columns: Some(columns.parse().unwrap()), ..OpenOptions::default() }
}

fn requests_of(columns: &str, text: &str) -> Vec<Request> {
    read(text.as_bytes(), &described(columns)).unwrap().0
}

/// Traces of other simulators and collections.
#[test]
fn traces_of_others_are_read_with_their_own_units() {
    // SimpleSSD: nanoseconds, sector, sectors, operation.
    let simplessd = requests_of("time:ns lba len op:R/W", "1 0 48 W\n200 80 8 W\n15000 80 8 R\n");
    let expected = [
        request(0, Op::Write, 0, 48),
        request(199, Op::Write, 80, 8),
        request(14_999, Op::Read, 80, 8),
    ];
    assert_eq!(simplessd, expected);
    // libCacheSim's samples of CloudPhysics: SCSI commands in hexadecimal digits, and a header.
    let text = "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33898,28,4096,42932746\n\
                2,33899,2A,6656,40409911\n2,33899,00,0,0\n";
    let (requests, counts) =
        read(text.as_bytes(), &described("-,time:s,op:28/2a/!*,len:1,lba")).unwrap();
    let expected = [
        request(0, Op::Write, 42_932_745, 1),
        request(0, Op::Read, 42_932_746, 8),
        request(1_000_000_000, Op::Write, 40_409_911, 13),
    ];
    assert_eq!((requests.as_slice(), counts.skipped_no_type), (&expected[..], 1));
    // MQSim, with times in seconds.
    let text = "242.504709548 0 1024 8 0\n242.504909548 0 2048 8 1\n242.505709548 0 4096 16 0\n";
    let expected = [
        request(0, Op::Write, 1024, 8),
        request(200_000, Op::Read, 2048, 8),
        request(1_000_000, Op::Write, 4096, 16),
    ];
    assert_eq!(requests_of("time:s device lba len op:1/0", text), expected);
    // LBAs of 4,096 bytes, as NVMe namespaces have them.
    let text = "# ns, slba and nlb in 4096-byte LBAs\n0 w 0 1\n10000 w 1 4\n20000 r 1 4\n";
    let expected = [
        request(0, Op::Write, 0, 8),
        request(10_000, Op::Write, 8, 32),
        request(20_000, Op::Read, 8, 32),
    ];
    assert_eq!(requests_of("time:ns op:r/w lba:4096 len:4096", text), expected);
}

#[test]
fn exporters_may_write_numbers_as_they_do() {
    let text = "0.00012345678901;\"R\" ; 8.0;\t4096\n1.0;W;9;1\n";
    let (requests, counts) =
        read(text.as_bytes(), &described("time:s;op:r/w;lba:4096;len:1")).unwrap();
    let expected = [request(0, Op::Read, 64, 8), request(999_876_544, Op::Write, 72, 1)];
    assert_eq!((requests.as_slice(), counts.widened), (&expected[..], 1));
    let tabs = "5\tsync\t0\t0\tx y\n6\tD\t8\t8\t\n";
    let expected = [request(0, Op::Flush, 0, 0), request(1_000_000, Op::Trim, 8, 8)];
    assert_eq!(requests_of("time:ms\top:r+read/w+write/f+sync/d\tlba\tlen\t-", tabs), expected);
    let options = OpenOptions { skip_lines: 2, ..described("time:us,op:R/W,lba,len,..") };
    let preamble = b"a capture of\n1,2,3\n7,R,0,8,and,more\n";
    assert_eq!(read(preamble, &options).unwrap().0, [request(0, Op::Read, 0, 8)]);
    // Also where the format is told.
    let options = OpenOptions { skip_lines: 1, ..OpenOptions::default() };
    let (requests, _) = read(b"a note\n500 3 16 8 0\n", &options).unwrap();
    assert_eq!(requests, [request(0, Op::Write, 16, 8)]);
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let error = |columns: &str, text: &str| {
        read(text.as_bytes(), &described(columns)).unwrap_err().to_string()
    };
    let columns = "time:us,op:R/W,lba:4096,len:4096";
    for (text, says) in [
        (
            "1,R,0,8\n2,X,0,8\n",
            "test:2: column `op` isn't one of R (read), W (write); found `2,X,0,8`",
        ),
        ("1,R,0,8\nx,R,0,8\n", "test:2: column `time` isn't decimal microseconds"),
        ("1,R,0,8\n2,R,1.5,8\n", "column `lba` isn't a number of 4096-byte blocks"),
        ("1,R,0\n", "3 columns where `time:us,op:R/W,lba:4096,len:4096` belongs"),
        ("1,R,0,8,9\n", "5 columns where"),
        ("1,R,0,18446744073709551615\n", "column `len` is too large"),
        ("1,R,18446744073709551615,8\n", "beyond 2^64"),
        ("1,R,-1,8\n", "column `lba` isn't"),
    ] {
        let found = error(columns, text);
        assert!(found.contains(says), "{text}: {found}");
    }
    let missing = OpenOptions { format: Some(Format::Columns), ..OpenOptions::default() };
    let found = read(b"1,R,0,8\n", &missing).unwrap_err().to_string();
    assert!(found.contains("without its columns") && found.contains("--columns"), "{found}");
    for (columns, says) in [
        ("time:ns lba op:R/W", "no column is `len`"),
        ("time:ns lba len len op:R/W", "more than one column is `len`"),
        ("time lba len op:R/W", "no unit"),
        ("time:h lba len op:R/W", "no unit"),
        ("time:s lba:0 len op:R/W", "how many bytes"),
        ("time:s lba:x len op:R/W", "how many bytes"),
        ("time:s lba len op", "what a read and a write are called"),
        ("time:s lba len op:/", "neither reads nor writes"),
        ("time:s lba len op:a/b/c/d/e/f", "more than five"),
        ("time:s lba len op:R/W size", "`size` is no column"),
        ("time:s .. lba len op:R/W", "stands behind"),
        ("", "no column is `time`"),
    ] {
        let found = columns.parse::<super::super::Columns>().unwrap_err().to_string();
        assert!(found.contains(says) && found.contains("such as"), "{columns}: {found}");
    }
}

/// biosnoop prints when a request ended: it was issued before.
#[test]
fn biosnoop_is_read_as_issued() {
    let text = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n\
                0.000004    supervise      1950   xvda1   W 13092560   4096       0.74\n\
                0.000178    Web Content    1950   xvda1   R 13092432   8192       0.61\n";
    let expected = [
        request(0, Op::Write, 13_092_560, 8),
        request(304_000, Op::Read, 13_092_432, 16), // (178 us - 610 us) - (4 us - 740 us)
    ];
    let (requests, counts) = read_plain(text).unwrap();
    assert_eq!((requests.as_slice(), counts.reordered), (&expected[..], 0));
    let ended = OpenOptions { blkparse_action: BlkAction::Complete, ..OpenOptions::default() };
    assert_eq!(read(text.as_bytes(), &ended).unwrap().0[1].at, Time::from_ns(174_000));
    // With times in the queue, a pattern that may be blank, and RWBS letters.
    let text = "TIME(s) COMM PID DISK T SECTOR BYTES P QUE(ms) LAT(ms)\n\
                1.000000    kworker/u72:1  13379  nvme1n1 WFS 1142400 4096 S 0.01 0.5\n\
                1.000000    sync           22177  nvme1n1 FF -1       0      0.10 0.4\n";
    let queued = OpenOptions { blkparse_action: BlkAction::Queue, ..OpenOptions::default() };
    let (requests, _) = read(text.as_bytes(), &queued).unwrap();
    let fua = Request { fua: true, ..request(0, Op::Write, 1_142_400, 8) };
    // 510 us before the end, and 500 us before it.
    assert_eq!(requests, [fua, request(10_000, Op::Flush, 0, 0)]);
    let bpftrace = "TIME(ms)     DISK             COMM             PID     LAT(ms)\n";
    let error = read_plain(bpftrace).unwrap_err().to_string();
    assert!(error.contains("prints no addresses"), "{error}");
    let named = OpenOptions { format: Some(Format::Biosnoop), ..OpenOptions::default() };
    let error = read(b"0.1 x 1 sda W 8 512 0.5\n", &named).unwrap_err().to_string();
    assert!(error.contains("first line isn't `TIME(s)"), "{error}");
}

#[test]
fn tracepoints_are_read_from_perf_and_ftrace() {
    let perf = " kworker/0:1H   163 [000]  2041.716043: block:block_rq_issue: 8,0 WFS 4096 () 268435 + 8 [kworker/0:1H]\n\
          fio  2113 [002]  2041.716100:  block:block_bio_queue: 8,0 R 5000 + 16 [fio]\n\
          fio  2113 [002]  2041.716108: block:block_rq_issue: 8,0 R 8192 () 5000 + 16 none,0,0 [fio]\n\
      swapper     0 [002]  2041.716900: block:block_rq_complete: 8,0 R () 5000 + 16 [0]\n\
          fio  2113 [002]  2041.717001: block:block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [fio]\n";
    let (requests, counts) = read_plain(perf).unwrap();
    let expected = [
        Request { fua: true, ..request(0, Op::Write, 268_435, 8) },
        request(65_000, Op::Read, 5000, 16),
        request(958_000, Op::Flush, 0, 0),
    ];
    assert_eq!((requests.as_slice(), counts.skipped_actions), (&expected[..], 2));
    for action in [BlkAction::Queue, BlkAction::Complete] {
        let options = OpenOptions { blkparse_action: action, ..OpenOptions::default() };
        assert_eq!(read(perf.as_bytes(), &options).unwrap().0, [request(0, Op::Read, 5000, 16)]);
    }
    let ftrace = "# tracer: nop\n#\n   fio-2113    [002] d..1.  2041.716108: block_rq_issue: 8,0 WS 8192 () 5000 + 16 be,0,4 [fio]\n";
    assert_eq!(read_plain(ftrace).unwrap().0, [request(0, Op::Write, 5000, 16)]);
    for head in ["version = 6\ncpus=2\n", "cpus=2\n"] {
        let report = format!(
            "{head}      fio-2113  [002]  2041.716108: block_rq_issue: 8,0 WS 8192 () 5000 + 16 [fio]\n"
        );
        let (requests, counts) = read_plain(&report).unwrap();
        assert_eq!(
            (requests.as_slice(), counts.skipped_actions),
            (&[request(0, Op::Write, 5000, 16)][..], 0)
        );
    }
    for (bad, says) in [
        ("x 1 [0] 1.5: block_rq_issue: 8 W 4096 () 8 + 8 [x]", "`device` isn't major,minor"),
        ("x 1 [0] 1.5: block_rq_issue: 8,0 W () 8 + 8 [x]", "`bytes` isn't"),
        ("x 1 [0] 1.5: block_rq_issue: 8,0 W 4096 () 8 8 [x]", "columns where"),
        ("x 1 [0] y: block_rq_issue: 8,0 W 4096 () 8 + 8 [x]", "`time` isn't"),
        ("x 1 [0] block_rq_issue: 8,0 W 4096 () 8 + 8 [x]", "columns where"),
    ] {
        let options = OpenOptions { format: Some(Format::BlockRq), ..OpenOptions::default() };
        let error = read(format!("{bad}\n").as_bytes(), &options).unwrap_err().to_string();
        assert!(error.contains(says), "{bad}: {error}");
    }
}

#[test]
fn files_that_are_no_traces_are_called_what_they_are() {
    let refused = |bytes: &[u8]| read(bytes, &OpenOptions::default()).unwrap_err().to_string();
    let mut tar = b"srv_0.csv".to_vec();
    tar.resize(257, 0);
    tar.extend(b"ustar\x0000");
    tar.resize(1024, 0);
    let mut zip = b"PK\x03\x04".to_vec();
    zip.resize(26, 0);
    zip.extend([9, 0, 0, 0]);
    zip.extend(b"srv_0.csvPK");
    for (bytes, what, how) in [
        (&tar[..], "packed with tar", "`tar -xOf FILE 'srv_0.csv' | leyden trace info -`"),
        (&zip, "packed with zip", "`unzip -p FILE 'srv_0.csv' | leyden trace info -`"),
        (b"\xfd7zXZ\0\0", "packed with xz", "`xz -dk FILE`"),
        (b"BZh91AY&SY", "packed with bzip2", "`bzip2 -dk FILE`"),
        (b"\x04\x22\x4d\x18d", "packed with lz4", "`lz4 -dk FILE`"),
        (b"7z\xbc\xaf\x27\x1c\0", "packed with 7-Zip", "`7z x FILE`"),
        (b"100, 1, 0, 4096\n", "a log of fio's latency, bandwidth or IOPS", "--write_iolog"),
        (b"100, 1, 0, 4096, 8192, 0\n", "with offsets", "time:ms,-,op:0/1//2,len:1,lba:1,.."),
        (b"\x7fELF\x02\x01\x01\0", "`\\x7fELF\\x02", "--from with csv, compact"),
        (
            b"time_us;op;lba;len\n1;W;0;8\n",
            "`time_us;op;lba;len`",
            "--columns 'time:us;op:R/W;lba:512;len:512'",
        ),
        (b"1 0 48 W\n", "`1 0 48 W`", "--columns 'time:us op:R/W lba:512 len:512'"),
    ] {
        let error = refused(bytes);
        assert!(error.contains(what) && error.contains(how), "{error}");
    }
    // A tar in a gzip is no trace of MSR's, though its first line has a comma.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &tar).unwrap();
    assert!(refused(&gzip.finish().unwrap()).contains("packed with tar"));
    // The offsets of fio's log are what its message says.
    let log = requests_of("time:ms,-,op:0/1//2,len:1,lba:1,..", "100, 1, 0, 4096, 8192, 0\n");
    assert_eq!(log, [request(0, Op::Read, 16, 8)]);
}

//! Traces of clouds and repositories, as they should be and as they should not.

use super::*;

fn only(device: &str) -> OpenOptions {
    OpenOptions { devices: Devices::Only(device.into()), ..OpenOptions::default() }
}

#[test]
fn columns_are_read_in_their_own_units() {
    let alibaba = "device_id,opcode,offset,length,timestamp\n\
                   7,R,4096,8192,1577808000000046\n7,w,513,10,1577808000000049\n8,R,0,512,1577808000000050\n";
    let (requests, counts) = read(alibaba.as_bytes(), &only("7")).unwrap();
    assert_eq!(requests, [request(0, Op::Read, 8, 16), request(3_000, Op::Write, 1, 1)]);
    assert_eq!((counts.widened, counts.skipped_devices), (1, 1));

    let tencent = "1538323200,12910952,128,0,1063\n1538323202,8,16,1,1063\n";
    let (requests, _) = read_plain(tencent).unwrap();
    let second = request(2_000_000_000, Op::Write, 8, 16);
    assert_eq!(requests, [request(0, Op::Read, 12_910_952, 128), second]);

    let spc = "0,20941264,8192,W,0.551706\n0,3,1000,r,0.551706001,extra,columns\n";
    let (requests, counts) = read_plain(spc).unwrap();
    assert_eq!(requests, [request(0, Op::Write, 20_941_264, 16), request(1, Op::Read, 3, 2)]);
    assert_eq!(counts.widened, 1);

    let fiu =
        "89966104033330 4096 syslogd 904265560 8 W 6 0 531e779\n89966104033331 1 x 8 8 R 6 0\n";
    let (requests, _) = read_plain(fiu).unwrap();
    assert_eq!(requests, [request(0, Op::Write, 904_265_560, 8), request(1, Op::Read, 8, 8)]);
}

#[test]
fn several_volumes_are_told_apart() {
    for (text, first, second) in [
        ("0,R,0,512,1\n1,R,0,512,2\n", "0", "1"),
        ("5,0,8,0,10\n5,0,8,0,11\n", "10", "11"),
        ("0,1,512,W,0.5\n1,1,512,W,0.6\n", "0", "1"),
        ("1 2 p 8 8 W 6 0 x\n2 2 p 8 8 W 8 16 x\n", "6,0", "8,16"),
    ] {
        let error = read_plain(text).unwrap_err();
        let ErrorKind::SecondDevice { first: one, second: other } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((one.as_str(), other.as_str()), (first, second));
        let stacked = Devices::Stack { stride_sectors: 64 };
        let options = OpenOptions { devices: stacked, ..OpenOptions::default() };
        let (requests, _) = read(text.as_bytes(), &options).unwrap();
        assert_eq!(requests[1].lba.0, requests[0].lba.0 + 64);
    }
}

#[test]
fn garbled_fields_are_named() {
    let cases = [
        ("0,R,x,512,1\n", Format::Alibaba, "offset"),
        ("0,R,0,512,99999999999999999999\n", Format::Alibaba, "timestamp"),
        ("5,0,8,2,10\n", Format::Tencent, "IOType"),
        ("5,0,4294967296,0,10\n", Format::Tencent, "Size"),
        ("0,1,512,W,1e3\n", Format::Spc, "Timestamp"),
        ("0,1,512,W\n", Format::Spc, "columns"),
        ("1 2 p 8 8 W 6\n", Format::Fiu, "columns"),
        ("1.5 2 p 8 8 W 6 0\n", Format::Fiu, "timestamp"),
    ];
    for (text, format, what) in cases {
        let options = OpenOptions { format: Some(format), ..OpenOptions::default() };
        let error = read(text.as_bytes(), &options).unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

fn v1(command: u16, bytes: u32, block: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for word in [1, bytes, 1] {
        record.extend(u32::to_le_bytes(word));
    }
    for half in [command, 0x0101] {
        record.extend(half.to_le_bytes());
    }
    for long in [block, time_us] {
        record.extend(long.to_le_bytes());
    }
    record
}

fn v2(command: u16, bytes: u32, block: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for half in [command, 0x0203] {
        record.extend(half.to_le_bytes());
    }
    for word in [1, bytes, 1] {
        record.extend(u32::to_le_bytes(word));
    }
    for long in [block, time_us, 7] {
        record.extend(long.to_le_bytes());
    }
    record
}

#[test]
fn both_versions_of_vscsi_say_the_same() {
    type Record = fn(u16, u32, u64, u64) -> Vec<u8>;
    let records: [Record; 2] = [v1, v2];
    for (record, length) in records.into_iter().zip([32, 40]) {
        let parts = [
            record(0x28, 4096, 2048, 1_000),
            record(0x12, 36, 0, 1_001), // INQUIRY
            record(0x8a, 8192, 4096, 1_500),
            record(0x35, 0, 0, 1_700),
        ];
        assert_eq!(parts[0].len(), length);
        let mut bytes = parts.concat();
        let (requests, counts) = read(&bytes, &OpenOptions::default()).unwrap();
        let expected = [
            request(0, Op::Read, 2048, 8),
            request(500_000, Op::Write, 4096, 16),
            request(700_000, Op::Flush, 0, 0),
        ];
        assert_eq!((requests.as_slice(), counts.skipped_passthrough), (&expected[..], 1));
        let (one, _) = read(&parts[0], &OpenOptions::default()).unwrap();
        assert_eq!(one.len(), 1, "a file of one record");
        bytes.truncate(bytes.len() - 5);
        let error = read(&bytes, &OpenOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated(_)), "{error}");
        let other = [parts[0].clone(), parts[2].clone(), vec![0; length]].concat();
        let error = read(&other, &OpenOptions::default()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt(_)), "{error}");
    }
}

//! Files that are no traces, told by how they begin, and what to do with them.
//!
//! **What lives here**: archives and compressors that aren't read, logs that are easily taken for traces, and
//! what is said of a file that nobody knows. **What doesn't**: the formats that are read.

use super::super::error::ErrorKind;
use super::super::num::decimal;
use super::Format;

/// The error for a file of a known foreign kind; `None` if its kind is not recognised.
pub(super) fn told(head: &[u8]) -> Option<ErrorKind> {
    let unpack = |what, how: &str| Some(ErrorKind::Packed { what, remedy: how.to_owned() });
    let pipe = "| leyden trace info -";
    match head {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            unpack("xz", &format!("Unpack it: `xz -dk FILE`, or `xz -dc FILE {pipe}`"))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
            unpack("bzip2", &format!("Unpack it: `bzip2 -dk FILE`, or `bzip2 -dc FILE {pipe}`"))
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => {
            unpack("lz4", &format!("Unpack it: `lz4 -dk FILE`, or `lz4 -dc FILE {pipe}`"))
        }
        [b'P', b'K', 3, 4, rest @ ..] => {
            let name = member(
                rest.get(26..).unwrap_or_default(),
                rest.get(22..24).map_or(0, |n| usize::from(n[0]) | usize::from(n[1]) << 8),
            );
            unpack(
                "zip",
                &format!(
                    "Unpack it: `unzip FILE`, or read a file in it: `unzip -p FILE '{name}' {pipe}`"
                ),
            )
        }
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => unpack("7-Zip", "Unpack it: `7z x FILE`"),
        _ if head.get(257..262) == Some(b"ustar") => {
            let name = member(head, 100);
            unpack(
                "tar",
                &format!(
                    "Unpack it: `tar -xf FILE`, or read a file in it: `tar -xOf FILE '{name}' {pipe}`"
                ),
            )
        }
        _ => None,
    }
}

/// The first member's name, which is at most `length` bytes.
fn member(bytes: &[u8], length: usize) -> String {
    let name = &bytes[..bytes.len().min(length)];
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() && !name.contains(['\'', '\n']) => name.to_owned(),
        _ => "NAME".to_owned(),
    }
}

/// The error for a text whose first line is easily taken for a trace's.
pub(super) fn told_line(line: &[u8]) -> Option<ErrorKind> {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    let is_log = (4..=8).contains(&columns.len())
        && line.windows(2).any(|two| two == b", ")
        && columns.iter().all(|column| decimal(column).is_ok())
        && matches!(columns[2], b"0" | b"1" | b"2");
    let (what, remedy) = match columns.len() {
        4 => (
            "a log of fio's latency, bandwidth or IOPS: it holds no addresses",
            "Let fio write an I/O log, and read that: `fio --write_iolog=FILE`",
        ),
        _ => (
            "a log of fio's latency with offsets (--log_offset=1)",
            "Say what its columns hold: --columns \"time:ms,-,op:0/1//2,len:1,lba:1,..\"; exact is an I/O log (`fio --write_iolog=FILE`)",
        ),
    };
    is_log.then_some(ErrorKind::Unsupported { what, remedy })
}

/// The error for a file that begins with `line`.
pub(super) fn unknown(line: &[u8]) -> ErrorKind {
    let names = Format::ALL.map(Format::name).join(", ");
    let is_text = std::str::from_utf8(&line[..line.len().min(16)])
        .is_ok_and(|text| !text.chars().any(|c| c.is_control() && c != '\t'));
    let remedy = if is_text {
        let count = |separator: u8| memchr::memchr_iter(separator, line).count();
        let found = [b',', b';', b'\t', b'|'].into_iter().max_by_key(|&separator| count(separator));
        let separator = match found {
            Some(separator) if count(separator) > 0 => char::from(separator),
            _ => ' ',
        };
        let columns = ["time:us", "op:R/W", "lba:512", "len:512"].join(&separator.to_string());
        format!(
            "Say what its columns hold, in their order, with - for those that are not used: --columns '{columns}', and how many lines stand above them: --skip-lines N; or name its format: --from with {names}. In a scenario, the keys `columns`, `skip_lines` and `format` of workload.trace"
        )
    } else {
        format!("Name its format: --from with {names}")
    };
    ErrorKind::UnknownFormat { begins: line.to_vec(), remedy }
}

//! The formats, their names, and how to tell them from their first bytes.
//!
//! **What lives here**: the list of formats and detection. **What doesn't**: their parsers
//! (`read`), their writers (`write`).
//!
//! **Invariants**: detection looks at content only, never at the file's name, and prefers no guess
//! to a doubtful one.

use std::fmt;
use std::str::FromStr;

use super::error::ErrorKind;
use super::num::{decimal, split, words};
use super::read::{blkparse, blktrace, compact, csv, fio, msr, systor};

/// Bytes of the beginning that detection looks at.
pub(crate) const SNIFF_BYTES: usize = 8 << 10;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// Our text: `time_us,op,lba,len,flags,class`.
    Csv,
    /// Our binary: blocks of delta-coded records, each with a CRC-32.
    Compact,
    /// The text that blkparse prints by default.
    Blkparse,
    /// What blktrace writes: `struct blk_io_trace`, little-endian.
    Blktrace,
    /// fio's I/O log, version 2: no timestamps, `wait` lines.
    FioV2,
    /// fio's I/O log, version 3: every line begins with a timestamp.
    FioV3,
    /// The CSV of the MSR Cambridge traces.
    Msr,
    /// The CSV of the SYSTOR '17 traces.
    Systor,
    /// DiskSim's ASCII columns with MQSim's units: `arrival_ns device lba sectors type`.
    DiskSim,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 9] = [
        Self::Csv,
        Self::Compact,
        Self::Blkparse,
        Self::Blktrace,
        Self::FioV2,
        Self::FioV3,
        Self::Msr,
        Self::Systor,
        Self::DiskSim,
    ];

    /// Its name on command lines and in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Compact => "compact",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::FioV2 => "fio-v2",
            Self::FioV3 => "fio-v3",
            Self::Msr => "msr",
            Self::Systor => "systor",
            Self::DiskSim => "disksim",
        }
    }

    /// One line about it, for lists.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Csv => "our text: time_us,op,lba,len,flags,class",
            Self::Compact => "our binary: delta-coded records in blocks with checksums",
            Self::Blkparse => "text of blkparse in its default output format",
            Self::Blktrace => "binary of blktrace, little-endian (blkparse -d, or one CPU's file)",
            Self::FioV2 => "fio iolog version 2",
            Self::FioV3 => "fio iolog version 3",
            Self::Msr => "MSR Cambridge CSV (SNIA IOTTA)",
            Self::Systor => "SYSTOR '17 CSV (SNIA IOTTA)",
            Self::DiskSim => "DiskSim ASCII in MQSim's units (ns; 0 = write)",
        }
    }

    /// Whether a trace can be written in this format.
    pub const fn can_write(self) -> bool {
        !matches!(self, Self::Blkparse | Self::Blktrace)
    }

    /// Tells the format from the first bytes of the decompressed file (as many as there are, up to
    /// 8 KiB).
    pub(crate) fn sniff(head: &[u8]) -> Result<Self, ErrorKind> {
        if head.starts_with(compact::MAGIC) {
            return Ok(Self::Compact);
        }
        if let Some(found) = blktrace::sniff(head) {
            return found.map(|()| Self::Blktrace);
        }
        let line =
            head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        match line {
            None if head.len() < SNIFF_BYTES => Err(ErrorKind::Empty { skipped: 0 }),
            None => Err(ErrorKind::UnknownFormat),
            Some(line) => sniff_line(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)),
        }
    }
}

fn sniff_line(line: &[u8]) -> Result<Format, ErrorKind> {
    if line == fio::HEADER_V2.as_bytes() {
        return Ok(Format::FioV2);
    }
    if line == fio::HEADER_V3.as_bytes() {
        return Ok(Format::FioV3);
    }
    if line.starts_with(b"fio version") {
        return Err(ErrorKind::Unsupported {
            what: "an iolog of a version that isn't known",
            remedy: "Write it with fio 2 or 3: versions 2 and 3 are read",
        });
    }
    if line.starts_with(b"time_us,") {
        return csv::Header::parse(line).map(|_| Format::Csv);
    }
    if line == systor::HEADER.as_bytes() {
        return Ok(Format::Systor);
    }
    if line == msr::HEADER.as_bytes() {
        return Ok(Format::Msr);
    }
    let mut columns = [&[][..]; 7];
    match split(line, b',', &mut columns) {
        7 if msr::op(columns[3]).is_some() => return Ok(Format::Msr),
        6 if matches!(columns[2], b"R" | b"W") => return Ok(Format::Systor),
        _ => {}
    }
    if blkparse::looks_like(line) {
        return Ok(Format::Blkparse);
    }
    let numbers = words(line).all(|word| decimal(word).is_ok());
    if numbers && words(line).count() == 5 {
        return Ok(Format::DiskSim);
    }
    Err(ErrorKind::UnknownFormat)
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no format's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no trace format is called `{0}`; there are csv, compact, blkparse, blktrace, fio-v2, fio-v3, msr, systor, disksim"
)]
pub struct UnknownFormatName(String);

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownFormatName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_listed() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert!(UnknownFormatName(String::new()).to_string().contains(format.name()));
        }
        assert!("csv2".parse::<Format>().is_err());
    }

    #[test]
    fn first_lines_tell_the_format() {
        let cases = [
            ("time_us,op,lba,len\n", Format::Csv),
            ("time_us,op,lba,len,flags,class\r\n0,W,1,1,W,data\r\n", Format::Csv),
            ("\n fio version 2 iolog\n", Format::FioV2),
            ("fio version 3 iolog", Format::FioV3),
            ("128166372003061629,web,0,Write,3154132992,4096,6\n", Format::Msr),
            ("Timestamp,Response,IOType,LUN,Offset,Size\n", Format::Systor),
            ("1456135145.1,0.0008,R,0,899056122368,131072\n", Format::Systor),
            ("  8,33  30 1 0.001368096  5025  D   R 540544 + 8 [x]\n", Format::Blkparse),
            ("11413000 0 657728 16 1\n", Format::DiskSim),
        ];
        for (text, format) in cases {
            assert_eq!(Format::sniff(text.as_bytes()).unwrap(), format, "{text}");
        }
        for text in [
            "hello",
            "1,2,3",
            "{\"a\": 1}",
            "1 2 3 4",
            "1 2 3 4 x",
            "fio version 9 iolog",
            "time_us,lba,op,len",
        ] {
            assert!(Format::sniff(text.as_bytes()).is_err(), "{text}");
        }
    }
}

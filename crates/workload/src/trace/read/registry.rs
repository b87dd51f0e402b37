//! The registry of trace formats: `formats!` lists them, and everything that goes by format follows from
//! that list.
//!
//! **What lives here**: the macro, and telling a format from a file's first bytes. **What doesn't**: the
//! list, which is in `read/mod.rs`; what each format looks like, which its reader knows.
//!
//! **Invariants**: detection looks at content only, never at the file's name, and prefers no guess
//! to a doubtful one.

use std::fmt;
use std::str::FromStr;

use super::super::context::NO_IO;
use super::super::error::ErrorKind;
use super::{Format, foreign};

/// Bytes of the beginning that detection looks at.
pub(crate) const SNIFF_BYTES: usize = 8 << 10;

/// Declares the formats: `Variant(Text<parser>) = "name", "one line about it";`, or `Binary` for `Text`.
macro_rules! formats {
    ($( $variant:ident($source:ty) = $name:literal, $description:literal; )+) => {
        /// A trace format.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Format {
            $( #[doc = $description] $variant, )+
        }

        impl Format {
            /// Every format.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name on command lines and in configurations.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// One line about it, for lists.
            pub const fn description(self) -> &'static str {
                match self { $( Self::$variant => $description, )+ }
            }

            /// False if it is text: lines that people can read.
            pub const fn is_binary(self) -> bool {
                match self { $( Self::$variant => <$source as Open>::IS_BINARY, )+ }
            }

            /// Whether a file that begins with `beginning` is in this format: an error if it is, in a
            /// version that can't be read. A text format is shown the first line that is not blank, a
            /// binary one the first bytes.
            fn claims(self, beginning: &[u8]) -> Result<bool, ErrorKind> {
                match self { $( Self::$variant => <$source as Open>::sniff(beginning), )+ }
            }

            /// Reads a file in this format.
            pub(crate) fn open(
                self,
                options: &OpenOptions,
                input: Input,
            ) -> Result<Box<dyn Source + Send>, ErrorKind> {
                Ok(match self {
                    $( Self::$variant => Box::new(<$source as Open>::open(options, input)?), )+
                })
            }
        }
    };
}
pub(super) use formats;

impl Format {
    /// Tells the format from the first bytes of the decompressed file (as many as there are, up to
    /// 8 KiB).
    ///
    /// The first `skip_lines` lines of a text are not looked at.
    pub(crate) fn sniff(head: &[u8], skip_lines: u32) -> Result<Self, ErrorKind> {
        if let Some(format) = Self::first_of(true, head)? {
            return Ok(format);
        }
        if let Some(foreign) = foreign::told(head) {
            return Err(foreign);
        }
        let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.skip(skip_lines as usize);
        let Some(line) = lines.find(|line| !line.is_empty()) else {
            let is_whole = head.len() < SNIFF_BYTES;
            return Err(if is_whole {
                ErrorKind::Empty { skipped: 0, remedy: NO_IO.into() }
            } else {
                foreign::unknown(&head[..head.len().min(16)])
            });
        };
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        Self::first_of(false, line)?
            .ok_or_else(|| foreign::told_line(line).unwrap_or_else(|| foreign::unknown(line)))
    }

    /// The first binary (or text) format that claims a file. At most one should.
    fn first_of(binary: bool, beginning: &[u8]) -> Result<Option<Self>, ErrorKind> {
        for format in Self::ALL.into_iter().filter(|format| format.is_binary() == binary) {
            if format.claims(beginning)? {
                return Ok(Some(format));
            }
        }
        Ok(None)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no format's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no trace format is called `{0}`; there are {known}", known = Format::ALL.map(Format::name).join(", "))]
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
            ("0,R,126703661056,4096,1577808000000046\n", Format::Alibaba),
            ("device_id,opcode,offset,length,timestamp\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            ("0,20941264,8192,W,0.551706\n", Format::Spc),
            (
                "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n",
                Format::Biosnoop,
            ),
            (
                "fio 900 [003]  7.5: block:block_rq_issue: 8,0 W 4096 () 8 + 8 [fio]\n",
                Format::BlockRq,
            ),
            ("# tracer: nop\n", Format::BlockRq),
            ("89966104033330 4096 syslogd 904265560 8 W 6 0 531e779\n", Format::Fiu),
        ];
        let told = |format: &Format| !format.is_binary() && *format != Format::Columns;
        for format in Format::ALL.into_iter().filter(told) {
            assert!(cases.iter().any(|&(_, found)| found == format), "no first line of {format}");
        }
        for (text, format) in cases {
            assert_eq!(Format::sniff(text.as_bytes(), 0).unwrap(), format, "{text}");
            let line = text.lines().find(|line| !line.is_empty()).unwrap().trim().as_bytes();
            let claims = |other: &Format| other.claims(line).unwrap_or(false);
            let claimed: Vec<Format> = Format::ALL.into_iter().filter(claims).collect();
            assert_eq!(claimed, [format], "{text}");
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
            assert!(Format::sniff(text.as_bytes(), 0).is_err(), "{text}");
        }
    }
}

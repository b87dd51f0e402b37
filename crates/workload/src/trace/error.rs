//! Errors in traces, worded so that the trace's owner can correct it.
//!
//! **What lives here**: the error type of readers and writers: which file, where in it, what was
//! found there, what was expected, and what to do. **What doesn't**: oddities that are counted and
//! read past (see [`ReadCounts`](super::ReadCounts)).
//!
//! **Invariants**: an excerpt of a file is escaped and cut short before it is shown.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Longest excerpt of a file that an error shows, in bytes before escaping.
const EXCERPT_BYTES: usize = 80;

/// Why a trace can't be read or written, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{details}")]
pub struct TraceError {
    details: Box<Details>,
}

/// Where in the (decompressed) file an error lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the file as a whole.
    File,
    /// In this line, counted from 1.
    Line(u64),
    /// At this byte, counted from 0.
    Byte(u64),
}

#[derive(Debug)]
struct Details {
    path: PathBuf,
    place: Place,
    kind: ErrorKind,
    found: Option<String>,
}

/// The problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system, or the decompressor, failed a read.
    #[error("it can't be read: {0}")]
    Read(io::Error),
    /// The operating system failed a write.
    #[error("it can't be written: {0}")]
    Write(io::Error),
    /// The file ends too early.
    #[error("it ends in the middle of {0}")]
    Truncated(&'static str),
    /// A checksum, or a promise of the format, doesn't hold.
    #[error("it is damaged: {0}")]
    Corrupt(&'static str),
    /// Nothing to replay.
    #[error("there is no request in it ({skipped} records were skipped)")]
    Empty {
        /// Records that are not requests to be replayed.
        skipped: u64,
        /// The remedy, which depends on the skipped records.
        remedy: Cow<'static, str>,
    },
    /// The first bytes are of no format we know.
    #[error("its beginning is of no known format: `{}`", excerpt(begins))]
    UnknownFormat {
        /// Its first line, or its first bytes.
        begins: Vec<u8>,
        /// The remedy.
        remedy: String,
    },
    /// An archive, or compressed in a way that isn't read.
    #[error("it is packed with {what}, which isn't read")]
    Packed {
        /// How it is packed.
        what: &'static str,
        /// How to unpack it.
        remedy: String,
    },
    /// Something follows the end of a compressed stream.
    #[error("other data follows its compressed data")]
    Trailing,
    /// It is what it is, but not something we read.
    #[error("{what}")]
    Unsupported {
        /// The format.
        what: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// The first line isn't the format's.
    #[error("its first line isn't `{want}`")]
    Header {
        /// The format's first line.
        want: &'static str,
    },
    /// A line has too few or too many columns.
    #[error("{got} columns where `{want}` belongs")]
    Columns {
        /// How many there are.
        got: usize,
        /// The columns that belong there.
        want: Cow<'static, str>,
    },
    /// A column doesn't hold what belongs there.
    #[error("column `{column}` isn't {want}")]
    Field {
        /// Which column.
        column: &'static str,
        /// The contents that belong there.
        want: Cow<'static, str>,
    },
    /// There is no room for another name of a class.
    #[error("a class beyond the {most} that a trace may name")]
    TooManyClasses {
        /// How many there may be.
        most: usize,
    },
    /// A number is larger than any we can hold.
    #[error("column `{column}` is too large")]
    Overflow {
        /// Which column.
        column: &'static str,
    },
    /// The request ends beyond the largest address.
    #[error("the request ends beyond 2^64 bytes")]
    Range,
    /// A request other than a flush covers nothing (writers; readers count and skip these).
    #[error("a request of zero sectors")]
    ZeroLength,
    /// A line of text is longer than any trace format's.
    #[error("the line is longer than {limit_bytes} bytes")]
    LineTooLong {
        /// The longest line we take.
        limit_bytes: usize,
    },
    /// Time runs backwards further than we sort.
    #[error("time runs back by {behind_ns} ns, and only {window} records are kept to be sorted")]
    Unsorted {
        /// How far it lies behind what was handed out already (or, when nothing is sorted, behind
        /// the record before it), in ns.
        behind_ns: u64,
        /// The window in force, in records.
        window: usize,
    },
    /// Requests to several devices in one file, and no rule for them was given.
    #[error("requests to a second device, `{second}` after `{first}`")]
    SecondDevice {
        /// The first one.
        first: String,
        /// The other one.
        second: String,
    },
    /// Devices are to be stacked, and one is larger than its share.
    #[error("the request ends beyond the {stride_sectors} sectors that each device was given")]
    BeyondStride {
        /// Sectors for each device.
        stride_sectors: u64,
    },
    /// A file of hints holds something else.
    #[error("record {number} is a command, and no hint")]
    NotAHint {
        /// Which record, in order of time, counted from 1.
        number: u64,
    },
    /// The file is there already.
    #[error("it exists")]
    Exists,
    /// Nothing writes this format.
    #[error("the format `{0}` is only read")]
    ReadOnly(&'static str),
    /// The caller asked to stop.
    #[error("cancelled; nothing was left behind")]
    Cancelled,
}

impl ErrorKind {
    /// True if the file could not be read, whatever stands in it.
    pub(crate) fn is_of_stream(&self) -> bool {
        matches!(self, Self::Read(_) | Self::Truncated(_) | Self::Trailing)
    }

    /// The remedy, if there is one.
    pub fn remedy(&self) -> Option<Cow<'static, str>> {
        let text = match self {
            Self::Truncated(_) | Self::Corrupt(_) => "Get the file again, or capture it again",
            Self::UnknownFormat { remedy, .. } | Self::Packed { remedy, .. } => {
                return Some(remedy.clone().into());
            }
            Self::Trailing => {
                "Write the unpacked data, without the tail, to a file of its own: `gzip -dcq FILE >TRACE`"
            }
            Self::Empty { remedy, .. } => return Some(remedy.clone()),
            Self::Unsupported { remedy, .. } => remedy,
            Self::Header { .. } => "Name another format, or add the header",
            Self::Columns { .. } | Self::Field { .. } | Self::LineTooLong { .. } => {
                "Mend the line, or name another format if this one was guessed wrongly"
            }
            Self::TooManyClasses { .. } => {
                "Give several classes one name, or none: `-` in the column `class`"
            }
            Self::Overflow { .. } | Self::Range => {
                "Mend the record: no device is that large, and no capture that long"
            }
            Self::Unsorted { window: 0, .. } => {
                "Sort the trace by time, or allow a window in which records are sorted (--window)"
            }
            Self::Unsorted { .. } => "Sort the trace by time, or allow a larger window (--window)",
            Self::SecondDevice { second, .. } => {
                return Some(Cow::Owned(format!(
                    "Choose one (--device '{second}'), give each some room (--stack 1TiB), or take all as one \
                     (--overlay); in a scenario, the keys of these names below workload.trace"
                )));
            }
            Self::BeyondStride { .. } => "Give each device more room (--stack)",
            Self::NotAHint { .. } => {
                "Name a file of hints (op H) only; a trace that holds its own needs no second file"
            }
            Self::Exists => "Choose another name, or replace it (--force)",
            Self::ReadOnly(_) => "Choose a format that can be written",
            Self::Read(error) => match error.kind() {
                io::ErrorKind::NotFound => "Check the path",
                io::ErrorKind::IsADirectory => "Name a file in it",
                io::ErrorKind::PermissionDenied => "Ask for leave to read it",
                _ => "Get the file again, or capture it again",
            },
            Self::Write(_) => "Choose another place, or make room; no partial file was left",
            Self::ZeroLength | Self::Cancelled => return None,
        };
        Some(Cow::Borrowed(text))
    }
}

impl TraceError {
    /// An error that concerns the whole of `path`.
    pub(crate) fn file(path: &Path, kind: ErrorKind) -> Self {
        Self::new(kind, Place::File, None).in_file(path)
    }

    /// An error at a place of a file that the reader will name.
    pub(crate) fn new(kind: ErrorKind, place: Place, found: Option<&[u8]>) -> Self {
        let details = Details { path: PathBuf::new(), place, kind, found: found.map(excerpt) };
        Self { details: Box::new(details) }
    }

    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.details.path);
        self
    }

    /// True if there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self.kind(), ErrorKind::Read(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// The kind of the problem.
    pub fn kind(&self) -> &ErrorKind {
        &self.details.kind
    }

    /// Which file.
    pub fn path(&self) -> &Path {
        &self.details.path
    }

    /// Where in it.
    pub fn place(&self) -> Place {
        self.details.place
    }

    /// The text found there, escaped and cut short.
    pub fn found(&self) -> Option<&str> {
        self.details.found.as_deref()
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.place {
            Place::File => write!(f, ": ")?,
            Place::Line(line) => write!(f, ":{line}: ")?,
            Place::Byte(byte) => write!(f, ": at byte {byte}: ")?,
        }
        write!(f, "{}", self.kind)?;
        if let Some(found) = &self.found {
            write!(f, "; found `{found}`")?;
        }
        if let Some(remedy) = self.kind.remedy() {
            write!(f, ". {remedy}.")?;
        }
        Ok(())
    }
}

fn excerpt(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    let mut text = shown.escape_ascii().to_string();
    if shown.len() < bytes.len() {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_line_finding_and_remedy() {
        let kind = ErrorKind::Field { column: "lba", want: "a number of sectors".into() };
        let error = TraceError::new(kind, Place::Line(17), Some(b"1,W,x\xff,8"))
            .in_file(Path::new("db.csv"));
        let text = error.to_string();
        assert!(text.starts_with(
            "db.csv:17: column `lba` isn't a number of sectors; found `1,W,x\\xff,8`."
        ));
        assert!(text.ends_with("guessed wrongly."));
    }

    #[test]
    fn excerpts_are_cut_short() {
        let long = [b'x'; 500];
        assert_eq!(excerpt(&long).len(), EXCERPT_BYTES + 3);
    }
}

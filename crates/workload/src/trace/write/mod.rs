//! Writing traces: one encoder per format, and a file that appears whole or not at all.
//!
//! **What lives here**: [`Writer`], [`convert`], what is lost on the way. **What doesn't**: reading.
//!
//! **Invariants**
//! - The file appears under its name only when it is complete and on disk; until then, and for ever
//!   after an error, a cancellation or a drop, only a temporary file existed beside it.
//! - What a format can't carry is counted, never silently dropped.

pub(crate) mod compact;
pub(crate) mod sink;
pub(crate) mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use leyden_device::Op;
use leyden_sim::Time;
use serde::Serialize;

use crate::{Class, ClassNames, Request};

use super::context::{END_SECTOR, NO_IO};
use super::error::{ErrorKind, TraceError};
use super::read::Format;
use super::read::rwbs::zone_letter;
use sink::Sink;

/// Bytes that are encoded before they are handed to the sink.
const FLUSH_BYTES: usize = 64 << 10;
/// Requests between two looks at the cancel flag.
const CANCEL_EVERY: u64 = 4096;

/// How the file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, level 6.
    Gzip,
    /// zstd, level 3.
    Zstd,
}

/// How to write a trace.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// In which format.
    pub format: Format,
    /// How compressed.
    pub compression: Compression,
    /// Whether a file of that name may be replaced.
    pub overwrite: bool,
    /// The file's name in fio's logs; no blanks.
    pub fio_file: String,
    /// The names of the classes, from the reader of what is to be written.
    pub classes: ClassNames,
}

impl WriteOptions {
    /// Uncompressed, replacing nothing.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            compression: Compression::None,
            overwrite: false,
            fio_file: "trace".to_owned(),
            classes: ClassNames::default(),
        }
    }
}

/// Records and fields that the written format can't carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Lost {
    /// Flushes left out.
    pub flushes: u64,
    /// Discards left out.
    pub trims: u64,
    /// Commands to write zeroes left out.
    pub write_zeroes: u64,
    /// Hints left out.
    pub hints: u64,
    /// Appends to zones, and what else is done to them, left out.
    #[serde(skip_serializing_if = "is_none_lost")]
    pub zone_operations: u64,
    /// Requests written without their forced unit access.
    pub fua: u64,
    /// Requests written without their class.
    pub classes: u64,
    /// Flushes of a file that were written as flushes of everything.
    #[serde(skip_serializing_if = "is_none_lost")]
    pub files: u64,
    /// Requests whose time was rounded down to the format's resolution.
    pub rounded_times: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_none_lost(count: &u64) -> bool {
    *count == 0
}

impl Lost {
    /// Whether the file written says all that was to be said.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The losses, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        [
            (self.flushes, "flushes were left out"),
            (self.trims, "discards were left out"),
            (self.write_zeroes, "commands to write zeroes were left out"),
            (self.hints, "hints were left out"),
            (self.zone_operations, "zone operations were left out"),
            (self.fua, "requests lost their FUA flag"),
            (self.classes, "requests lost their class"),
            (self.files, "flushes lost their file"),
            (self.rounded_times, "times were rounded down"),
        ]
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// The totals of a written file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Written {
    /// Requests in the file, hints included.
    pub requests: u64,
    /// Of those, hints.
    pub hints: u64,
    /// Size of the file, in bytes, compressed if it is.
    pub file_bytes: u64,
    /// Parts that the format could not carry.
    pub lost: Lost,
}

/// An encoder of one format.
pub(crate) trait Encode: Send {
    /// Appends what comes before the first request.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Appends a request; only of an operation that the format [`carries`](Self::carries).
    fn request(&mut self, request: &Request, out: &mut Vec<u8>);

    /// Appends what comes after the last request.
    fn end(&mut self, out: &mut Vec<u8>);

    /// The final header, to replace the file's first bytes now that all is known.
    fn final_header(&self) -> Option<Vec<u8>> {
        None
    }

    /// The records and fields that the format can carry.
    fn carries(&self) -> Carries;
}

/// Parts that a format can carry beside reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carries {
    pub(crate) flushes: bool,
    pub(crate) trims: bool,
    pub(crate) write_zeroes: bool,
    pub(crate) hints: bool,
    pub(crate) fua: bool,
    pub(crate) classes: bool,
    /// The file that a flush is for.
    pub(crate) files: bool,
    /// Zone Append, and reset, finish, open and close of a zone.
    pub(crate) zones: bool,
    pub(crate) resolution_ns: u64,
}

impl Carries {
    /// Reads, writes and whole nanoseconds.
    pub(crate) const PLAIN: Self = Self {
        flushes: false,
        trims: false,
        write_zeroes: false,
        hints: false,
        fua: false,
        classes: false,
        files: false,
        zones: false,
        resolution_ns: 1,
    };
    /// Everything.
    pub(crate) const ALL: Self = Self {
        flushes: true,
        trims: true,
        write_zeroes: true,
        hints: true,
        fua: true,
        classes: true,
        files: true,
        zones: true,
        resolution_ns: 1,
    };

    /// Counts what is lost of `request`; false if it is lost whole.
    fn count(self, request: &Request, lost: &mut Lost) -> bool {
        let whole = match request.op {
            Op::Read | Op::Write => None,
            Op::Flush => (!self.flushes).then_some(&mut lost.flushes),
            Op::Trim => (!self.trims).then_some(&mut lost.trims),
            Op::WriteZeroes => (!self.write_zeroes).then_some(&mut lost.write_zeroes),
            Op::WritePrepare => (!self.hints).then_some(&mut lost.hints),
            Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {
                let is_carried = self.zones && zone_letter(request.op).is_some();
                (!is_carried).then_some(&mut lost.zone_operations)
            }
        };
        if let Some(count) = whole {
            *count += 1;
            return false;
        }
        let flush = request.op == Op::Flush;
        lost.fua += u64::from(request.fua && !self.fua && !flush);
        lost.classes += u64::from(request.class != Class::Unknown && !self.classes);
        lost.files += u64::from(flush && request.sectors > 0 && !self.files);
        lost.rounded_times += u64::from(!request.at.as_ns().is_multiple_of(self.resolution_ns));
        true
    }
}

/// A trace being written.
pub struct Writer {
    path: PathBuf,
    encoder: Box<dyn Encode>,
    sink: Sink,
    buffer: Vec<u8>,
    last: Time,
    written: Written,
    classes: ClassNames,
}

impl Writer {
    /// Begins a file that will appear at `path` when [`finish`](Self::finish)ed.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self, TraceError> {
        let begin = || {
            let encoder = encoder(options)?;
            let sink = Sink::file(path, options)?;
            Ok(Self::begin(path, encoder, sink, options))
        };
        begin().map_err(|kind| TraceError::file(path, kind))
    }

    /// Begins a trace in memory.
    pub fn in_memory(options: &WriteOptions) -> Result<Self, TraceError> {
        let path = Path::new("(memory)");
        let begin = || {
            let encoder = encoder(options)?;
            let sink = Sink::memory(options)?;
            Ok(Self::begin(path, encoder, sink, options))
        };
        begin().map_err(|kind| TraceError::file(path, kind))
    }

    fn begin(
        path: &Path,
        mut encoder: Box<dyn Encode>,
        sink: Sink,
        options: &WriteOptions,
    ) -> Self {
        let mut buffer = Vec::with_capacity(2 * FLUSH_BYTES);
        encoder.begin(&mut buffer);
        Self {
            path: path.to_owned(),
            encoder,
            sink,
            buffer,
            last: Time::ZERO,
            written: Written::default(),
            classes: options.classes.clone(),
        }
    }

    /// Appends a request. Times must not run backwards.
    pub fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        self.check(request).map_err(|kind| TraceError::file(&self.path, kind))?;
        self.last = request.at;
        if !self.encoder.carries().count(request, &mut self.written.lost) {
            return Ok(());
        }
        if self.classes.name(request.class).is_some() {
            self.encoder.request(request, &mut self.buffer);
        } else {
            // Named by a table that the options don't have.
            self.written.lost.classes += u64::from(self.encoder.carries().classes);
            let unnamed = Request { class: Class::Unknown, ..*request };
            self.encoder.request(&unnamed, &mut self.buffer);
        }
        self.written.requests += 1;
        self.written.hints += u64::from(request.op == Op::WritePrepare);
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn check(&self, request: &Request) -> Result<(), ErrorKind> {
        if request.at < self.last {
            return Err(ErrorKind::Unsorted {
                behind_ns: (self.last - request.at).as_ns(),
                window: 0,
            });
        }
        if request.op == Op::Flush {
            return Ok(());
        }
        if request.sectors == 0 && !matches!(request.op, Op::Zone(_)) {
            return Err(ErrorKind::ZeroLength);
        }
        match request.lba.0.checked_add(u64::from(request.sectors)) {
            Some(end) if end <= END_SECTOR => Ok(()),
            _ => Err(ErrorKind::Range),
        }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        self.sink.write(&self.buffer).map_err(|kind| TraceError::file(&self.path, kind))?;
        self.buffer.clear();
        Ok(())
    }

    fn complete(&mut self) -> Result<(), TraceError> {
        if self.written.requests == 0 {
            return Err(TraceError::file(
                &self.path,
                ErrorKind::Empty { skipped: 0, remedy: NO_IO.into() },
            ));
        }
        self.encoder.end(&mut self.buffer);
        self.flush()
    }

    /// Completes the file, makes it durable and gives it its name.
    pub fn finish(mut self) -> Result<Written, TraceError> {
        self.complete()?;
        let header = self.encoder.final_header();
        self.written.file_bytes = self
            .sink
            .finish(header.as_deref())
            .map_err(|kind| TraceError::file(&self.path, kind))?;
        Ok(self.written)
    }

    /// Completes a trace in memory, and hands it out.
    pub fn into_bytes(mut self) -> Result<(Vec<u8>, Written), TraceError> {
        self.complete()?;
        let header = self.encoder.final_header();
        let bytes = self
            .sink
            .into_bytes(header.as_deref())
            .map_err(|kind| TraceError::file(&self.path, kind))?;
        self.written.file_bytes = bytes.len() as u64;
        Ok((bytes, self.written))
    }
}

impl Format {
    /// Whether a trace can be written in this format.
    pub fn can_write(self) -> bool {
        !matches!(encoder(&WriteOptions::new(self)), Err(ErrorKind::ReadOnly(_)))
    }
}

pub(crate) fn encoder(options: &WriteOptions) -> Result<Box<dyn Encode>, ErrorKind> {
    Ok(match options.format {
        Format::Csv => Box::new(text::Csv { classes: options.classes.clone() }),
        Format::Compact => Box::new(compact::Compact::new(options.classes.clone())),
        Format::FioV2 | Format::FioV3 => {
            let name = options.fio_file.as_bytes();
            if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
                return Err(ErrorKind::Field {
                    column: "fio_file",
                    want: "a name without blanks".into(),
                });
            }
            let stamped = options.format == Format::FioV3;
            Box::new(text::Fio::new(name, stamped))
        }
        Format::Msr => Box::new(text::Msr),
        Format::Systor => Box::new(text::Systor),
        Format::DiskSim => Box::new(text::DiskSim),
        format => return Err(ErrorKind::ReadOnly(format.name())),
    })
}

/// Writes all of `requests`. `progress` is told now and then how many were taken; `cancel` is
/// looked at as often, and stops the work with [`ErrorKind::Cancelled`].
pub fn convert(
    requests: impl Iterator<Item = Result<Request, TraceError>>,
    mut writer: Writer,
    progress: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<Written, TraceError> {
    let mut taken = 0u64;
    for request in requests {
        writer.write(&request?)?;
        taken += 1;
        if taken.is_multiple_of(CANCEL_EVERY) {
            if cancel.load(Ordering::Relaxed) {
                return Err(TraceError::file(&writer.path, ErrorKind::Cancelled));
            }
            progress(taken);
        }
    }
    progress(taken);
    writer.finish()
}

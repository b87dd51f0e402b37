//! One parser per format, and the list of formats.
//!
//! **What lives here**: from bytes or lines to requests with absolute times; what tells each format
//! from others. **What doesn't**: order, ranges, devices (`context`), files and compression (`input`).
//!
//! **Invariants**: a parser takes every byte of its file: as a request, as something it counts, or
//! as an error at a line (text) or byte (binary).

pub(crate) mod action;
pub(crate) mod biosnoop;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod block_rq;
pub(crate) mod columns;
pub(crate) mod compact;
pub(crate) mod csv;
pub(crate) mod fio;
mod foreign;
pub(crate) mod known;
pub(crate) mod options;
pub(crate) mod registry;
pub(crate) mod rwbs;
pub(crate) mod vscsi;

use crate::Request;

use super::context::Context;
use super::error::{ErrorKind, Place, TraceError};
use super::input::{Input, Lines};
use columns::InColumns;
use compact::Declared;
use options::OpenOptions;

registry::formats! {
    Csv(Text<csv::Csv>) = "csv", "our text: time_us,op,lba,len,flags,class";
    Compact(Binary<compact::Compact>) = "compact", "our binary: delta-coded records in blocks with checksums";
    Blkparse(Text<blkparse::Blkparse>) = "blkparse", "text of blkparse in its default output format";
    Blktrace(Binary<blktrace::Blktrace>) = "blktrace", "binary of blktrace, little-endian (blkparse -d, or one CPU's file)";
    FioV2(Text<fio::Fio<2>>) = "fio-v2", "fio iolog version 2";
    FioV3(Text<fio::Fio<3>>) = "fio-v3", "fio iolog version 3";
    Msr(Text<InColumns<known::Msr>>) = "msr", "MSR Cambridge CSV (SNIA IOTTA)";
    Systor(Text<InColumns<known::Systor>>) = "systor", "SYSTOR '17 CSV (SNIA IOTTA)";
    DiskSim(Text<InColumns<known::DiskSim>>) = "disksim", "DiskSim ASCII in MQSim's units (ns; 0 = write)";
    Alibaba(Text<InColumns<known::Alibaba>>) = "alibaba", "Alibaba's block traces: device_id,opcode,offset,length,timestamp";
    Tencent(Text<InColumns<known::Tencent>>) = "tencent", "Tencent's block traces: Timestamp,Offset,Size,IOType,VolumeID";
    Spc(Text<InColumns<known::Spc>>) = "spc", "SPC, as in the UMass repository: ASU,LBA,Size,Opcode,Timestamp";
    Fiu(Text<InColumns<known::Fiu>>) = "fiu", "FIU (SNIA IOTTA): timestamp pid process lba size op major minor md5";
    Vscsi(Binary<vscsi::Vscsi>) = "vscsi", "binary of VMware's vscsi traces (CloudPhysics), versions 1 and 2";
    Biosnoop(Text<biosnoop::Biosnoop>) = "biosnoop", "text of biosnoop, of bcc or libbpf-tools";
    BlockRq(Text<block_rq::BlockRq>) = "block_rq", "block tracepoints as text: perf script, trace-cmd report, ftrace (block_rq_issue)";
    Columns(Text<InColumns<columns::Described>>) = "columns", "text in columns that you describe (--columns)";
}

/// A parser of one line of a text format.
pub(crate) trait LineParser: Default {
    /// Takes what the format asks for: the choice of events, where it records several for a request, or columns.
    fn choose(&mut self, _options: &OpenOptions) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// Whether a file whose first line is `line` is in this format: an error if it is, in a version that
    /// can't be read. Neither blanks nor a byte order mark are around the line.
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind>;

    /// Takes a line that isn't blank, without its line end and trailing blanks.
    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind>;
}

/// A parser of a piece of a binary format: a record, or a block of them.
pub(crate) trait BinaryParser: Default {
    /// The format has no late records: there is nothing to sort.
    const IS_SORTED: bool = false;

    /// Takes what the format asks for: the choice of events, where it records several for a request, or columns.
    fn choose(&mut self, _options: &OpenOptions) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// Whether a file that begins with `head` is in this format: an error if it is, in a version that
    /// can't be read.
    fn sniff(head: &[u8]) -> Result<bool, ErrorKind>;

    /// Takes what comes before the first piece.
    fn header(&mut self, _input: &mut Input) -> Result<(), ErrorKind> {
        Ok(())
    }

    /// The header's declaration of the whole file.
    fn declared(&self) -> Option<Declared> {
        None
    }

    /// Takes a piece; false at the end of the file.
    fn piece(
        &mut self,
        input: &mut Input,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<bool, ErrorKind>;
}

/// How a format's files are opened.
trait Open: Source + Sized {
    const IS_BINARY: bool;

    fn sniff(beginning: &[u8]) -> Result<bool, ErrorKind>;

    fn open(options: &OpenOptions, input: Input) -> Result<Self, ErrorKind>;
}

/// A file being parsed.
pub(crate) trait Source {
    /// Whether records come in the order of their times.
    fn is_sorted(&self) -> bool {
        false
    }

    /// Reads what comes before the first record.
    fn header(&mut self) -> Result<(), TraceError> {
        Ok(())
    }

    /// The header's declaration of the whole file.
    fn declared(&self) -> Option<Declared> {
        None
    }

    /// Parses until `out` holds `limit` requests or more; false at the end of the file. On an error
    /// `out` holds what came before it.
    fn fill(
        &mut self,
        context: &mut Context,
        out: &mut Vec<Request>,
        limit: usize,
    ) -> Result<bool, TraceError>;
}

/// A file of lines.
struct Text<P> {
    lines: Lines,
    parser: P,
}

impl<P: LineParser> Open for Text<P> {
    const IS_BINARY: bool = false;

    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        P::sniff(line)
    }

    fn open(options: &OpenOptions, input: Input) -> Result<Self, ErrorKind> {
        let mut parser = P::default();
        parser.choose(options)?;
        let mut lines = Lines::new(input)?;
        for _ in 0..options.skip_lines {
            lines.next()?;
        }
        Ok(Self { lines, parser })
    }
}

impl<P: LineParser> Source for Text<P> {
    fn fill(
        &mut self,
        context: &mut Context,
        out: &mut Vec<Request>,
        limit: usize,
    ) -> Result<bool, TraceError> {
        let Self { lines, parser } = self;
        while out.len() < limit {
            match lines.next() {
                Ok(Some(line)) => {
                    let line = line.trim_ascii_end();
                    if line.is_empty() {
                        continue;
                    }
                    if let Err(kind) = parser.line(line, context, out) {
                        let line = line.to_owned();
                        let (place, kind) = (Place::Line(lines.number()), lines.cause(kind));
                        // Lines of a damaged stream are not quoted: their bytes may be wrong.
                        let found = (!kind.is_of_stream()).then_some(&line[..]);
                        return Err(TraceError::new(kind, place, found));
                    }
                }
                Ok(None) => {
                    context.counts.unterminated = lines.unterminated();
                    return Ok(false);
                }
                Err(kind) => {
                    return Err(TraceError::new(kind, Place::Line(lines.number()), None));
                }
            }
        }
        Ok(true)
    }
}

/// A binary file.
struct Binary<P> {
    input: Input,
    parser: P,
}

impl<P: BinaryParser> Open for Binary<P> {
    const IS_BINARY: bool = true;

    fn sniff(head: &[u8]) -> Result<bool, ErrorKind> {
        P::sniff(head)
    }

    fn open(options: &OpenOptions, input: Input) -> Result<Self, ErrorKind> {
        let mut parser = P::default();
        parser.choose(options)?;
        Ok(Self { input, parser })
    }
}

impl<P: BinaryParser> Binary<P> {
    fn error(&mut self, kind: ErrorKind) -> TraceError {
        let place = Place::Byte(self.input.offset());
        TraceError::new(self.input.cause(kind), place, None)
    }
}

impl<P: BinaryParser> Source for Binary<P> {
    fn is_sorted(&self) -> bool {
        P::IS_SORTED
    }

    fn header(&mut self) -> Result<(), TraceError> {
        self.parser.header(&mut self.input).map_err(|kind| self.error(kind))
    }

    fn declared(&self) -> Option<Declared> {
        self.parser.declared()
    }

    fn fill(
        &mut self,
        context: &mut Context,
        out: &mut Vec<Request>,
        limit: usize,
    ) -> Result<bool, TraceError> {
        while out.len() < limit {
            match self.parser.piece(&mut self.input, context, out) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(kind) => return Err(self.error(kind)),
            }
        }
        Ok(true)
    }
}

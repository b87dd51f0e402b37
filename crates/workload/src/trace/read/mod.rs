//! One parser per format.
//!
//! **What lives here**: from bytes or lines to requests with absolute times. **What doesn't**:
//! order, ranges, devices (`context`), files and compression (`input`).
//!
//! **Invariants**: a parser takes every byte of its file: as a request, as something it counts, or
//! as an error at a line (text) or byte (binary).

pub(crate) mod action;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod compact;
pub(crate) mod csv;
pub(crate) mod disksim;
pub(crate) mod fio;
pub(crate) mod msr;
pub(crate) mod rwbs;
pub(crate) mod systor;

use crate::Request;

use super::context::Context;
use super::error::{ErrorKind, Place, TraceError};
use super::format::Format;
use super::input::{Input, Lines};
use action::BlkAction;

/// What reads one line of a text format.
pub(crate) trait LineParser {
    /// Takes a line that isn't blank, without its line end and trailing blanks.
    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind>;
}

/// A file being parsed.
pub(crate) enum Source {
    Csv(Lines, csv::Csv),
    Blkparse(Lines, blkparse::Blkparse),
    Fio(Lines, fio::Fio),
    Msr(Lines, msr::Msr),
    Systor(Lines, systor::Systor),
    DiskSim(Lines, disksim::DiskSim),
    Blktrace(Input, blktrace::Blktrace),
    Compact(Input, compact::Compact),
}

impl Source {
    pub(crate) fn new(format: Format, action: BlkAction, input: Input) -> Result<Self, ErrorKind> {
        Ok(match format {
            Format::Csv => Self::Csv(Lines::new(input)?, csv::Csv::default()),
            Format::Blkparse => Self::Blkparse(Lines::new(input)?, blkparse::Blkparse::new(action)),
            Format::FioV2 => Self::Fio(Lines::new(input)?, fio::Fio::new(fio::Version::V2)),
            Format::FioV3 => Self::Fio(Lines::new(input)?, fio::Fio::new(fio::Version::V3)),
            Format::Msr => Self::Msr(Lines::new(input)?, msr::Msr::default()),
            Format::Systor => Self::Systor(Lines::new(input)?, systor::Systor::default()),
            Format::DiskSim => Self::DiskSim(Lines::new(input)?, disksim::DiskSim),
            Format::Blktrace => Self::Blktrace(input, blktrace::Blktrace::new(action)),
            Format::Compact => Self::Compact(input, compact::Compact::default()),
        })
    }

    /// Parses until `out` holds `limit` requests or more; false at the end of the file. On an error
    /// `out` holds what came before it.
    pub(crate) fn fill(
        &mut self,
        context: &mut Context,
        out: &mut Vec<Request>,
        limit: usize,
    ) -> Result<bool, TraceError> {
        match self {
            Self::Csv(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::Blkparse(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::Fio(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::Msr(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::Systor(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::DiskSim(lines, parser) => fill_lines(lines, parser, context, out, limit),
            Self::Blktrace(input, parser) => {
                fill_binary(input, context, out, limit, |input, context, out| {
                    parser.record(input, context, out)
                })
            }
            Self::Compact(input, parser) => {
                fill_binary(input, context, out, limit, |input, context, out| {
                    parser.block(input, context, out)
                })
            }
        }
    }
}

fn fill_lines<P: LineParser>(
    lines: &mut Lines,
    parser: &mut P,
    context: &mut Context,
    out: &mut Vec<Request>,
    limit: usize,
) -> Result<bool, TraceError> {
    while out.len() < limit {
        match lines.next() {
            Ok(Some(line)) => {
                let line = line.trim_ascii_end();
                if line.is_empty() {
                    continue;
                }
                if let Err(kind) = parser.line(line, context, out) {
                    let line = line.to_owned();
                    return Err(TraceError::new(kind, Place::Line(lines.number()), Some(&line)));
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

fn fill_binary(
    input: &mut Input,
    context: &mut Context,
    out: &mut Vec<Request>,
    limit: usize,
    mut step: impl FnMut(&mut Input, &mut Context, &mut Vec<Request>) -> Result<bool, ErrorKind>,
) -> Result<bool, TraceError> {
    while out.len() < limit {
        match step(input, context, out) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(kind) => return Err(TraceError::new(kind, Place::Byte(input.offset()), None)),
        }
    }
    Ok(true)
}

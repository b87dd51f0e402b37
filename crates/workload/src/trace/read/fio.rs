//! fio's I/O logs, versions 2 and 3 (fio's HOWTO, "Trace file format").
//!
//! **What lives here**: their parser. **What doesn't**: their writer.
//!
//! Version 2 is `file action [offset length]`, without times but for `wait` actions: microseconds,
//! relative to the wait before. Version 3 puts a timestamp in microseconds before each action and
//! knows no `wait`. Offsets and lengths are bytes.
//!
//! **Invariants**: a file's name is a device to the rule for several devices.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{decimal, words};
use super::LineParser;

pub(crate) const HEADER_V2: &str = "fio version 2 iolog";
pub(crate) const HEADER_V3: &str = "fio version 3 iolog";
const WANT_V2: &str = "file action [offset length]";
const WANT_V3: &str = "timestamp file action [offset length]";

/// Of version 2 or 3.
#[derive(Default)]
pub(crate) struct Fio<const VERSION: u8> {
    headed: bool,
    /// Version 2: the sum of the waits so far.
    now_us: u64,
}

impl<const VERSION: u8> Fio<VERSION> {
    const HEADER: &str = if VERSION == 2 { HEADER_V2 } else { HEADER_V3 };

    fn header(&mut self, line: &[u8]) -> Result<(), ErrorKind> {
        let want = Self::HEADER;
        if line.trim_ascii_start() != want.as_bytes() {
            return Err(ErrorKind::Header { want });
        }
        self.headed = true;
        Ok(())
    }

    fn wait(&mut self, us: Option<u64>, got: usize) -> Result<(), ErrorKind> {
        if VERSION == 3 {
            return Err(ErrorKind::Field {
                column: "action",
                want: "known to version 3, which has timestamps instead of `wait`".into(),
            });
        }
        let us = us.ok_or(ErrorKind::Columns { got, want: WANT_V2.into() })?;
        self.now_us =
            self.now_us.checked_add(us).ok_or(ErrorKind::Overflow { column: "offset" })?;
        Ok(())
    }
}

/// The columns of a line behind its timestamp.
struct Columns<'a> {
    file: &'a [u8],
    action: &'a [u8],
    offset: Option<u64>,
    length: Option<u64>,
    /// How many columns the line has, for errors.
    got: usize,
}

impl Columns<'_> {
    fn op(&self) -> Result<Op, ErrorKind> {
        Ok(match self.action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" => Op::Flush,
            _ => {
                return Err(ErrorKind::Field {
                    column: "action",
                    want: "one of read, write, trim, sync, datasync, wait, add, open, close".into(),
                });
            }
        })
    }
}

impl<const VERSION: u8> Fio<VERSION> {
    fn columns<'a>(&mut self, line: &'a [u8]) -> Result<Columns<'a>, ErrorKind> {
        let (timed, want) = if VERSION == 2 { (0, WANT_V2) } else { (1, WANT_V3) };
        let got = words(line).count();
        if !(timed + 2..=timed + 4).contains(&got) {
            return Err(ErrorKind::Columns { got, want: want.into() });
        }
        let mut words = words(line);
        if timed == 1 {
            let time = words.next().unwrap_or_default();
            self.now_us = decimal(time).map_err(|e| e.of("timestamp", "microseconds"))?;
        }
        let (file, action) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut number = |column| {
            let number = words.next().map(decimal).transpose();
            number.map_err(|e| e.of(column, "a number of bytes"))
        };
        Ok(Columns { file, action, offset: number("offset")?, length: number("length")?, got })
    }
}

impl<const VERSION: u8> LineParser for Fio<VERSION> {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let is_known = [HEADER_V2, HEADER_V3].map(str::as_bytes).contains(&line);
        if line.starts_with(b"fio version") && !is_known {
            return Err(ErrorKind::Unsupported {
                what: "an iolog of a version that isn't known",
                remedy: "Write it with fio 2 or 3: versions 2 and 3 are read",
            });
        }
        Ok(line == Self::HEADER.as_bytes())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        if !self.headed {
            return self.header(line);
        }
        let columns = self.columns(line)?;
        match columns.action {
            b"wait" => return self.wait(columns.offset, columns.got),
            b"add" | b"open" | b"close" | b"unlink" | b"sync_file_range" => {
                context.counts.skipped_file_actions += 1;
                return Ok(());
            }
            _ => {}
        }
        let op = columns.op()?;
        let range = match (op, columns.offset, columns.length) {
            (Op::Flush, ..) => (0, 0),
            (_, Some(offset), Some(length)) => (offset, length),
            _ => {
                let want = "offset and length of a read, write or trim";
                return Err(ErrorKind::Columns { got: columns.got, want: want.into() });
            }
        };
        let ns = self.now_us.checked_mul(1_000);
        let ns = ns.ok_or(ErrorKind::Overflow { column: "timestamp" })?;
        let Some(base) = context.device(columns.file)? else {
            return Ok(());
        };
        let (lba, sectors) = context.widen(range.0, range.1)?;
        let request = Request {
            at: Time::from_ns(ns),
            op,
            lba: Lba(lba),
            sectors,
            fua: false,
            class: Class::Unknown,
        };
        match context.stride_sectors() {
            // Only here files lie apart, so that a flush can be told to be one's.
            Some(stride_sectors) if op == Op::Flush => {
                let sectors = stride_sectors.min(u32::MAX.into()) as u32;
                context.emit_sync(out, base, Request { sectors, ..request })
            }
            _ => context.emit(out, base, request),
        }
    }
}

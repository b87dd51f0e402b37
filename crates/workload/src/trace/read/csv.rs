//! Our own text: `time_us,op,lba,len[,flags[,class|,is_journal]]`.
//!
//! **What lives here**: its parser. **What doesn't**: its writer (`write::text`).
//!
//! A line with op `H` is a hint: the host holds newer data for the range, and will write it.
//!
//! **Invariants**: the header is required and says which of the optional columns follow; every line
//! has exactly those columns.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{US_DIGITS, decimal, decimal_ns, split};
use super::LineParser;
use super::rwbs::{Kind, Rwbs, named_zone_op};

const WANT: &str = "time_us,op,lba,len[,flags[,class|,is_journal]]";

/// Which columns follow the first four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    columns: usize,
    is_journal: bool,
}

impl Header {
    fn parse(line: &[u8]) -> Result<Self, ErrorKind> {
        let (columns, is_journal) = match line {
            b"time_us,op,lba,len" => (4, false),
            b"time_us,op,lba,len,flags" => (5, false),
            b"time_us,op,lba,len,flags,class" => (6, false),
            b"time_us,op,lba,len,flags,is_journal" => (6, true),
            _ => return Err(ErrorKind::Header { want: WANT }),
        };
        Ok(Self { columns, is_journal })
    }
}

#[derive(Default)]
pub(crate) struct Csv {
    header: Option<Header>,
}

impl LineParser for Csv {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        if line.starts_with(b"time_us,") { Header::parse(line).map(|_| true) } else { Ok(false) }
    }

    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let Some(header) = self.header else {
            self.header = Some(Header::parse(line)?);
            return Ok(());
        };
        let mut columns = [&[][..]; 6];
        let got = split(line, b',', &mut columns);
        if got != header.columns {
            return Err(ErrorKind::Columns { got, want: WANT.into() });
        }
        let [time_us, op, lba, len, flags, class] = columns;
        let ns = decimal_ns(time_us, US_DIGITS).map_err(|e| {
            e.of("time_us", "microseconds since the start, with at most three decimals")
        })?;
        let lba = decimal(lba).map_err(|e| e.of("lba", "a number of 512-byte sectors"))?;
        let sectors = decimal(len).map_err(|e| e.of("len", "a number of 512-byte sectors"))?;
        let sectors = u32::try_from(sectors).map_err(|_| ErrorKind::Overflow { column: "len" })?;
        let op = op_of(op)?;
        if matches!(op, Op::Zone(_)) && sectors > 0 {
            let want = "0, as zone management names a zone by its first sector";
            return Err(ErrorKind::Field { column: "len", want: want.into() });
        }
        let request = Request {
            at: Time::from_ns(ns),
            op,
            lba: Lba(lba),
            sectors,
            fua: false,
            class: class_of(header, class, context)?,
        };
        if header.columns > 4 && !matches!(flags, b"-" | b"") {
            return with_flags(flags, request, context, out);
        }
        emit(context, out, request)
    }
}

#[inline]
fn op_of(op: &[u8]) -> Result<Op, ErrorKind> {
    Ok(match op {
        b"R" => Op::Read,
        b"W" => Op::Write,
        b"F" => Op::Flush,
        b"D" => Op::Trim,
        b"Z" => Op::WriteZeroes,
        b"H" => Op::WritePrepare,
        name => named_zone_op(name).ok_or(ErrorKind::Field {
            column: "op",
            want: "one of R, W, F, D, Z, H, ZA, ZR, ZF, ZO, ZC".into(),
        })?,
    })
}

/// Others than the known ones are a trace's own: a database's kinds of relations (`heap`, `index`,
/// `catalog/other`), the levels of a tree.
#[inline]
fn class_of(header: Header, class: &[u8], context: &mut Context) -> Result<Class, ErrorKind> {
    if header.columns < 6 {
        return Ok(Class::Unknown);
    }
    if header.is_journal {
        return match class {
            b"0" => Ok(Class::Unknown),
            b"1" => Ok(Class::Journal),
            _ => Err(ErrorKind::Field { column: "is_journal", want: "0 or 1".into() }),
        };
    }
    Ok(match class {
        b"data" => Class::Data,
        b"wal" => Class::Wal,
        b"journal" => Class::Journal,
        b"fs-meta" => Class::FsMeta,
        b"-" | b"other" | b"" => Class::Unknown,
        name => return context.classes.class(name),
    })
}

#[inline]
fn with_flags(
    flags: &[u8],
    mut request: Request,
    context: &mut Context,
    out: &mut Vec<Request>,
) -> Result<(), ErrorKind> {
    let rwbs = Rwbs::parse(flags)?;
    let agree = match request.op {
        Op::Read => rwbs.kind == Kind::Read,
        Op::Write => rwbs.kind == Kind::Write,
        Op::Trim => rwbs.kind == Kind::Trim,
        Op::ZoneAppend | Op::Zone(_) => rwbs.kind == Kind::Zone(request.op),
        // A flush is an empty write to some layers; writing zeroes had no letters for long.
        Op::Flush | Op::WriteZeroes | Op::WritePrepare | Op::Copy | Op::ZoneReport => true,
    };
    if !agree {
        return Err(ErrorKind::Field {
            column: "flags",
            want: "of the operation in column `op`".into(),
        });
    }
    context.counts.unknown_flags += u64::from(rwbs.unknown);
    request.fua = rwbs.fua;
    if rwbs.preflush && request.op == Op::Write {
        return context.emit_with_preflush(out, 0, request);
    }
    emit(context, out, request)
}

#[inline]
fn emit(context: &mut Context, out: &mut Vec<Request>, request: Request) -> Result<(), ErrorKind> {
    match request.op {
        Op::Flush => context.emit_sync(out, 0, request),
        _ => context.emit(out, 0, request),
    }
}

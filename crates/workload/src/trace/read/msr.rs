//! The CSV of the MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,
//! ResponseTime`, times in Windows filetime (100 ns ticks), offset and size in bytes (their
//! README at SNIA IOTTA, block-io/388).
//!
//! **What lives here**: its parser. **What doesn't**: its writer.
//!
//! **Invariants**: `host,disk` is the device; the response time is checked and not used, as it is
//! the original device's.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{decimal, split};
use super::LineParser;

const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const TICK_NS: u64 = 100;

#[derive(Default)]
pub(crate) struct Msr {
    /// Whether a line was read: a header can only be the first.
    begun: bool,
}

/// What the column `Type` says.
fn op(column: &[u8]) -> Option<Op> {
    if column.eq_ignore_ascii_case(b"read") {
        Some(Op::Read)
    } else if column.eq_ignore_ascii_case(b"write") {
        Some(Op::Write)
    } else {
        None
    }
}

impl LineParser for Msr {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let mut columns = [&[][..]; 7];
        let got = split(line, b',', &mut columns);
        Ok(line == HEADER.as_bytes() || got == columns.len() && op(columns[3]).is_some())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let first = !std::mem::replace(&mut self.begun, true);
        if first && line == HEADER.as_bytes() {
            return Ok(());
        }
        let mut columns = [&[][..]; 7];
        let got = split(line, b',', &mut columns);
        if got != columns.len() {
            return Err(ErrorKind::Columns { got, want: HEADER });
        }
        let [ticks, host, disk, kind, offset, size, response] = columns;
        let ns = decimal(ticks)
            .map_err(|e| e.of("Timestamp", "a filetime in ticks of 100 ns"))?
            .checked_mul(TICK_NS)
            .ok_or(ErrorKind::Overflow { column: "Timestamp" })?;
        decimal(disk).map_err(|e| e.of("DiskNumber", "a number"))?;
        let op = op(kind).ok_or(ErrorKind::Field { column: "Type", want: "Read or Write" })?;
        let offset = decimal(offset).map_err(|e| e.of("Offset", "a number of bytes"))?;
        let size = decimal(size).map_err(|e| e.of("Size", "a number of bytes"))?;
        let response = response.strip_prefix(b"-").unwrap_or(response);
        decimal(response).map_err(|e| e.of("ResponseTime", "a number of ticks"))?;
        let device = &line[ticks.len() + 1..][..host.len() + 1 + disk.len()];
        let Some(base) = context.device(device)? else {
            return Ok(());
        };
        let (lba, sectors) = context.widen(offset, size)?;
        let request = Request {
            at: Time::from_ns(ns),
            op,
            lba: Lba(lba),
            sectors,
            fua: false,
            class: Class::Unknown,
        };
        context.emit(out, base, request)
    }
}

//! The text of the UMass repository's traces, in the Storage Performance Council's format: `ASU,LBA,Size,
//! Opcode,Timestamp`, the address in blocks of 512 bytes, the size in bytes, opcodes `R` and `W` in either
//! case, times in decimal seconds (SPC Trace File Format Specification, revision 1.0.1).
//!
//! **What lives here**: its parser. **Invariants**: the application-specific unit (ASU) is the device. What
//! follows the fifth column is the record's own business, and read past.

use leyden_device::SECTOR_BYTES;

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{S_DIGITS, decimal, decimal_ns, split};
use super::LineParser;
use super::columns::{op_of, plain};
use crate::Request;

const WANT: &str = "ASU,LBA,Size,Opcode,Timestamp";

#[derive(Default)]
pub(crate) struct Spc;

/// The five columns, and how many there are in all.
fn five(line: &[u8]) -> ([&[u8]; 5], usize) {
    let mut columns = [&[][..]; 5];
    let got = split(line, b',', &mut columns);
    (columns, got)
}

impl LineParser for Spc {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let (columns, got) = five(line);
        let numbers = columns[..3].iter().all(|column| decimal(column).is_ok());
        let is_time = decimal_ns(columns[4], S_DIGITS).is_ok();
        Ok(got == 5 && numbers && is_time && op_of(columns[3], b'R', b'W').is_some())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let ([asu, lba, size, op, time], got) = five(line);
        if got < 5 {
            return Err(ErrorKind::Columns { got, want: WANT });
        }
        decimal(asu).map_err(|e| e.of("ASU", "a number"))?;
        let lba = decimal(lba).map_err(|e| e.of("LBA", "a number of 512-byte blocks"))?;
        let size = decimal(size).map_err(|e| e.of("Size", "a number of bytes"))?;
        let op =
            op_of(op, b'R', b'W').ok_or(ErrorKind::Field { column: "Opcode", want: "R or W" })?;
        let ns = decimal_ns(time, S_DIGITS).map_err(|e| e.of("Timestamp", "decimal seconds"))?;
        let Some(base) = context.device(asu)? else { return Ok(()) };
        let offset = lba.checked_mul(SECTOR_BYTES).ok_or(ErrorKind::Range)?;
        let (lba, sectors) = context.widen(offset, size)?;
        context.emit(out, base, plain(ns, op, lba, sectors))
    }
}

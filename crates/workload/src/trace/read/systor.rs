//! The CSV of the SYSTOR '17 traces: `Timestamp,Response,IOType,LUN,Offset,Size`, times in decimal
//! seconds since 1970, offset and size in bytes, `IOType` `R`, `W` or blank (their README at SNIA
//! IOTTA, block-io/4928).
//!
//! **What lives here**: its parser. **What doesn't**: its writer.
//!
//! **Invariants**: a record with a blank type is counted and skipped; the LUN is the device.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{S_DIGITS, decimal, decimal_ns, split};
use super::LineParser;

pub(crate) const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

#[derive(Default)]
pub(crate) struct Systor {
    /// Whether a line was read: a header can only be the first.
    begun: bool,
}

impl LineParser for Systor {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let mut columns = [&[][..]; 6];
        let got = split(line, b',', &mut columns);
        let is_record = got == columns.len() && matches!(columns[2], b"R" | b"W");
        Ok(line == HEADER.as_bytes() || is_record)
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
        let mut columns = [&[][..]; 6];
        let got = split(line, b',', &mut columns);
        if got != columns.len() {
            return Err(ErrorKind::Columns { got, want: HEADER });
        }
        let [time, response, kind, lun, offset, size] = columns;
        let ns = decimal_ns(time, S_DIGITS)
            .map_err(|e| e.of("Timestamp", "decimal seconds since 1970"))?;
        if !response.is_empty() {
            decimal_ns(response, S_DIGITS).map_err(|e| e.of("Response", "decimal seconds"))?;
        }
        let op = match kind {
            b"R" => Op::Read,
            b"W" => Op::Write,
            b"" => {
                context.counts.skipped_no_type += 1;
                return Ok(());
            }
            _ => {
                return Err(ErrorKind::Field { column: "IOType", want: "R, W or blank" });
            }
        };
        decimal(lun).map_err(|e| e.of("LUN", "a number"))?;
        let offset = decimal(offset).map_err(|e| e.of("Offset", "a number of bytes"))?;
        let size = decimal(size).map_err(|e| e.of("Size", "a number of bytes"))?;
        let Some(base) = context.device(lun)? else {
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

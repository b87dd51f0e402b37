//! The CSV of Alibaba's block traces: `device_id,opcode,offset,length,timestamp`, opcodes `R` and `W`, offset
//! and length in bytes, times in microseconds since 1970 (the README of github.com/alibaba/block-traces).
//!
//! **What lives here**: its parser. **Invariants**: `device_id` is the device.

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::decimal;
use super::LineParser;
use super::columns::{columns, op_of, plain};
use crate::Request;

const HEADER: &str = "device_id,opcode,offset,length,timestamp";
const US_NS: u64 = 1_000;

#[derive(Default)]
pub(crate) struct Alibaba {
    /// Whether a line was read: a header can only be the first.
    begun: bool,
}

impl LineParser for Alibaba {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let found = columns::<5>(line, HEADER);
        let is_record = found.is_ok_and(|found| op_of(found[1], b'R', b'W').is_some());
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
        let [device, op, offset, length, time] = columns(line, HEADER)?;
        decimal(device).map_err(|e| e.of("device_id", "a number"))?;
        let op =
            op_of(op, b'R', b'W').ok_or(ErrorKind::Field { column: "opcode", want: "R or W" })?;
        let offset = decimal(offset).map_err(|e| e.of("offset", "a number of bytes"))?;
        let length = decimal(length).map_err(|e| e.of("length", "a number of bytes"))?;
        let ns = decimal(time)
            .map_err(|e| e.of("timestamp", "whole microseconds"))?
            .checked_mul(US_NS)
            .ok_or(ErrorKind::Overflow { column: "timestamp" })?;
        let Some(base) = context.device(device)? else { return Ok(()) };
        let (lba, sectors) = context.widen(offset, length)?;
        context.emit(out, base, plain(ns, op, lba, sectors))
    }
}

//! The CSV of Tencent's block traces: `Timestamp,Offset,Size,IOType,VolumeID`, times in whole seconds since
//! 1970, offset and size in sectors, `IOType` 0 for a read and 1 for a write (Zhang et al., "OSCA: An
//! Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems", USENIX ATC 2020; SNIA IOTTA,
//! block-io/27917).
//!
//! **What lives here**: its parser. **Invariants**: the volume is the device. Requests of one second have
//! one time.

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::decimal;
use super::LineParser;
use super::columns::{columns, op_of, plain};
use crate::Request;

const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";
const S_NS: u64 = 1_000_000_000;

#[derive(Default)]
pub(crate) struct Tencent {
    /// Whether a line was read: a header can only be the first.
    begun: bool,
}

impl LineParser for Tencent {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let is_record = columns::<5>(line, HEADER).is_ok_and(|found| {
            found.iter().all(|column| decimal(column).is_ok())
                && op_of(found[3], b'0', b'1').is_some()
        });
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
        let [time, offset, size, op, volume] = columns(line, HEADER)?;
        let ns = decimal(time)
            .map_err(|e| e.of("Timestamp", "whole seconds"))?
            .checked_mul(S_NS)
            .ok_or(ErrorKind::Overflow { column: "Timestamp" })?;
        let lba = decimal(offset).map_err(|e| e.of("Offset", "a number of 512-byte sectors"))?;
        let size = decimal(size).map_err(|e| e.of("Size", "a number of sectors"))?;
        let sectors = u32::try_from(size).map_err(|_| ErrorKind::Overflow { column: "Size" })?;
        let want = "0 (read) or 1 (write)";
        let op = op_of(op, b'0', b'1').ok_or(ErrorKind::Field { column: "IOType", want })?;
        decimal(volume).map_err(|e| e.of("VolumeID", "a number"))?;
        let Some(base) = context.device(volume)? else { return Ok(()) };
        context.emit(out, base, plain(ns, op, lba, sectors))
    }
}

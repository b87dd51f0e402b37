//! The text of the FIU traces: `timestamp pid process lba size op major minor md5`, separated by blanks; times
//! in nanoseconds, address and size in sectors of 512 bytes, `W` or `R` (their README at SNIA IOTTA,
//! block-io/390: Koller and Rangaswami, "I/O Deduplication", FAST 2010).
//!
//! **What lives here**: its parser. **Invariants**: `major,minor` is the device. The checksum of the content
//! is not used, and may be missing.

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{decimal, words};
use super::LineParser;
use super::columns::{op_of, plain};
use crate::Request;

const WANT: &str = "timestamp pid process lba size op major minor md5";

#[derive(Default)]
pub(crate) struct Fiu;

/// The first eight columns, and how many there are in all.
fn eight(line: &[u8]) -> ([&[u8]; 8], usize) {
    let mut columns = [&[][..]; 8];
    let mut got = 0;
    for word in words(line) {
        if let Some(column) = columns.get_mut(got) {
            *column = word;
        }
        got += 1;
    }
    (columns, got)
}

impl LineParser for Fiu {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let (columns, got) = eight(line);
        let numbers = [0, 1, 3, 4, 6, 7].into_iter().all(|at| decimal(columns[at]).is_ok());
        Ok((8..=9).contains(&got) && numbers && op_of(columns[5], b'R', b'W').is_some())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let ([time, pid, _, lba, size, op, major, minor], got) = eight(line);
        if !(8..=9).contains(&got) {
            return Err(ErrorKind::Columns { got, want: WANT });
        }
        let ns = decimal(time).map_err(|e| e.of("timestamp", "whole nanoseconds"))?;
        decimal(pid).map_err(|e| e.of("pid", "a number"))?;
        let lba = decimal(lba).map_err(|e| e.of("lba", "a number of 512-byte sectors"))?;
        let size = decimal(size).map_err(|e| e.of("size", "a number of sectors"))?;
        let sectors = u32::try_from(size).map_err(|_| ErrorKind::Overflow { column: "size" })?;
        let op = op_of(op, b'R', b'W').ok_or(ErrorKind::Field { column: "op", want: "R or W" })?;
        decimal(major).map_err(|e| e.of("major", "a number"))?;
        decimal(minor).map_err(|e| e.of("minor", "a number"))?;
        let device = [major, minor].join(&b',');
        let Some(base) = context.device(&device)? else { return Ok(()) };
        context.emit(out, base, plain(ns, op, lba, sectors))
    }
}

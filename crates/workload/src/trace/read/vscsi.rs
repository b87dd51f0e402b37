//! CloudPhysics' binary of VMware's vscsi traces, versions 1 and 2: records of 32 and 40 bytes, little-endian,
//! without a header (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015; the records
//! as its readers declare them).
//!
//! | version 1 | version 2 | what |
//! |---|---|---|
//! | 12..14 | 0..2 | SCSI command |
//! | 14..16 | 2..4 | the version, in the upper byte |
//! | 4..8 | 8..12 | bytes |
//! | 16..24 | 16..24 | first block of 512 bytes |
//! | 24..32 | 24..32 | time, microseconds |
//!
//! **What lives here**: its parser. **Invariants**: all records of a file have one version. Commands that are
//! no block I/O are counted and skipped.

use leyden_device::{Op, SECTOR_BYTES};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::input::Input;
use super::BinaryParser;
use super::columns::plain;
use crate::Request;

const V1_BYTES: usize = 32;
const V2_BYTES: usize = 40;
const US_NS: u64 = 1_000;

/// Which of the two layouts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    const fn bytes(self) -> usize {
        match self {
            Self::One => V1_BYTES,
            Self::Two => V2_BYTES,
        }
    }

    /// Where command, version and length stand.
    const fn places(self) -> (usize, usize, usize) {
        match self {
            Self::One => (12, 14, 4),
            Self::Two => (0, 2, 8),
        }
    }

    /// Whether a record of this version begins `bytes`.
    fn begins(self, bytes: &[u8]) -> bool {
        let (command, version, _) = self.places();
        let number = if self == Self::One { 1 } else { 2 };
        bytes.len() >= self.bytes()
            && u16_at(bytes, version) >> 8 == number
            && u16_at(bytes, command) <= 0xff
    }

    /// The version of a file: of its first two records, if it has two.
    fn of(head: &[u8]) -> Option<Self> {
        [Self::One, Self::Two].into_iter().find(|version| {
            let second = head.get(version.bytes()..).unwrap_or_default();
            version.begins(head) && (second.len() < version.bytes() || version.begins(second))
        })
    }
}

#[derive(Default)]
pub(crate) struct Vscsi {
    version: Option<Version>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let low = bytes[at..at + 8].iter().rev();
    low.fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The operation of a SCSI command; none if it moves no blocks (SBC-4, table 29).
fn op_of(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

impl BinaryParser for Vscsi {
    fn sniff(head: &[u8]) -> Result<bool, ErrorKind> {
        Ok(Version::of(head).is_some())
    }

    /// A record.
    fn piece(
        &mut self,
        input: &mut Input,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<bool, ErrorKind> {
        if self.version.is_none() {
            input.hold(2 * V2_BYTES)?; // fewer, at the end of a file of one record
            self.version = Version::of(input.window());
        }
        let version = self.version.ok_or(ErrorKind::Corrupt("no record begins here"))?;
        if !input.hold(version.bytes())? {
            return if input.window().is_empty() {
                Ok(false)
            } else {
                Err(ErrorKind::Truncated("a record"))
            };
        }
        let record = &input.window()[..version.bytes()];
        if !version.begins(record) {
            return Err(ErrorKind::Corrupt("no record of the file's version begins here"));
        }
        let (command, _, length) = version.places();
        let op = op_of(u16_at(record, command));
        let bytes = u64_at(record, length) & u64::from(u32::MAX);
        let (block, time_us) = (u64_at(record, 16), u64_at(record, 24));
        input.consume(version.bytes());
        let Some(op) = op else {
            context.counts.skipped_passthrough += 1;
            return Ok(true);
        };
        let ns = time_us.checked_mul(US_NS).ok_or(ErrorKind::Overflow { column: "time" })?;
        let offset = block.checked_mul(SECTOR_BYTES).ok_or(ErrorKind::Range)?;
        let (lba, sectors) = context.widen(offset, bytes)?;
        context.emit(out, 0, plain(ns, op, lba, sectors))?;
        Ok(true)
    }
}

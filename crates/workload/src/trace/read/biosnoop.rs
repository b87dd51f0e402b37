//! The text of biosnoop, of bcc and of libbpf-tools: `TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)`.
//!
//! **What lives here**: its parser. **What doesn't**: the letters of column `T`, which are RWBS letters in
//! libbpf-tools (`rwbs`).
//!
//! **Invariants**
//! - `TIME(s)` is when a request ended: the request was issued `LAT(ms)` before, and queued `QUE(ms)` before that.
//! - The command's name may hold blanks: columns behind it are counted from the right.

use leyden_sim::Time;

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{S_DIGITS, decimal, decimal_ns, words};
use super::LineParser;
use super::action::BlkAction;
use super::blkparse::Event;
use super::options::OpenOptions;
use super::rwbs::Rwbs;
use crate::Request;

const WANT: &str = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)";
/// Nanoseconds of a millisecond as a power of ten.
const MS_DIGITS: usize = 6;
/// Added to all times, so that the first request's issue is not before zero.
const EPOCH_NS: u64 = 1 << 50;

#[derive(Default)]
pub(crate) struct Biosnoop {
    action: BlkAction,
    header: Option<Header>,
}

/// Which of the optional columns there are.
#[derive(Clone, Copy)]
struct Header {
    has_pattern: bool,
    has_queue: bool,
}

impl Header {
    /// Parses a line, if it is a header.
    fn of(line: &[u8]) -> Result<Option<Self>, ErrorKind> {
        let has = |name: &[u8]| words(line).any(|word| word == name);
        if !words(line).next().is_some_and(|word| word == b"TIME(s)" || word == b"TIME(ms)") {
            return Ok(None);
        }
        if !(has(b"TIME(s)") && has(b"SECTOR") && has(b"BYTES") && has(b"LAT(ms)")) {
            return Err(ErrorKind::Unsupported {
                what: "the output of a biosnoop that prints no addresses",
                remedy: "Capture with bcc's or libbpf-tools' biosnoop, or with blktrace",
            });
        }
        Ok(Some(Self { has_pattern: has(b"P"), has_queue: has(b"QUE(ms)") }))
    }
}

impl LineParser for Biosnoop {
    fn choose(&mut self, options: &OpenOptions) -> Result<(), ErrorKind> {
        self.action = options.blkparse_action;
        Ok(())
    }

    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        Header::of(line).map(|header| header.is_some())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        if let Some(header) = Header::of(line)? {
            self.header = Some(header); // again where two captures were joined
            return Ok(());
        }
        let header = self.header.ok_or(ErrorKind::Header { want: WANT })?;
        let got = words(line).count();
        let columns = || ErrorKind::Columns { got, want: WANT.into() };
        let mut behind = line.rsplit(|&b| b == b' ' || b == b'\t').filter(|word| !word.is_empty());
        let mut next = || behind.next().ok_or_else(columns);
        let latency = next()?;
        let queued = if header.has_queue { next()? } else { b"0" };
        let mut bytes = next()?;
        // The pattern may be blank.
        if header.has_pattern && !bytes.first().is_some_and(u8::is_ascii_digit) {
            bytes = next()?;
        }
        let (sector, kind, disk, _pid) = (next()?, next()?, next()?, next()?);
        let time = words(line).next().ok_or_else(columns)?;
        if got < 8 {
            return Err(columns());
        }
        let ns = decimal_ns(time, S_DIGITS).map_err(|e| e.of("TIME(s)", "decimal seconds"))?;
        let ms = |value, column| {
            decimal_ns(value, MS_DIGITS).map_err(|e| e.of(column, "decimal milliseconds"))
        };
        let (latency_ns, queued_ns) = (ms(latency, "LAT(ms)")?, ms(queued, "QUE(ms)")?);
        let before_ns = match self.action {
            BlkAction::Queue => latency_ns.saturating_add(queued_ns),
            BlkAction::Issue => latency_ns,
            BlkAction::Complete => 0,
        };
        let ns = ns.checked_add(EPOCH_NS).ok_or(ErrorKind::Overflow { column: "TIME(s)" })?;
        let ns = ns.checked_sub(before_ns).ok_or(ErrorKind::Overflow { column: "LAT(ms)" })?;
        let rwbs = Rwbs::parse(kind)?;
        let bytes = decimal(bytes).map_err(|e| e.of("BYTES", "a number of bytes"))?;
        let sector = match sector {
            // A flush has no address: -1, with or without its sign.
            b"-1" | b"18446744073709551615" if bytes == 0 => 0,
            sector => decimal(sector).map_err(|e| e.of("SECTOR", "a number of sectors"))?,
        };
        let Some(base) = context.device(disk)? else { return Ok(()) };
        let offset = sector.checked_mul(leyden_device::SECTOR_BYTES).ok_or(ErrorKind::Range)?;
        let (lba, sectors) = context.widen(offset, bytes)?;
        Event { at: Time::from_ns(ns), rwbs, lba, sectors }.emit(base, context, out)
    }
}

//! The text that blkparse prints in its default output format, which is
//! `major,minor cpu sequence seconds.nanoseconds pid action rwbs` and then, for a request,
//! `sector + sectors [process]` (blkparse(1), "Default output").
//!
//! **What lives here**: its parser. **What doesn't**: the RWBS letters (`rwbs`).
//!
//! **Invariants**: only one action's lines become requests, so that none is counted twice; the
//! statistics at the end are known by their first word and read past.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{S_DIGITS, decimal, decimal_ns, words};
use super::LineParser;
use super::action::BlkAction;
use super::options::OpenOptions;
use super::rwbs::{Kind, Rwbs};

const WANT: &str = "major,minor cpu sequence time pid action rwbs [sector + sectors]";

/// How the lines begin that are not events.
const STATISTICS: [&str; 16] = [
    "CPU",
    "Total",
    "Reads ",
    "Read ",
    "Writes ",
    "Write ",
    "PC ",
    "IO unplugs",
    "Timer unplugs",
    "Throughput",
    "Events",
    "Skips",
    "Input file",
    "Allocation wait",
    "Dispatch wait",
    "Completion wait",
];

#[derive(Default)]
pub(crate) struct Blkparse {
    action: BlkAction,
}

pub(super) fn is_device(word: &[u8]) -> bool {
    let mut numbers = word.split(|&byte| byte == b',');
    let two = numbers.by_ref().take(2).filter(|part| decimal(part).is_ok()).count() == 2;
    two && numbers.next().is_none()
}

impl LineParser for Blkparse {
    fn choose(&mut self, options: &OpenOptions) -> Result<(), ErrorKind> {
        self.action = options.blkparse_action;
        Ok(())
    }

    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        let mut words = words(line);
        let device = words.next().is_some_and(is_device);
        let numbers = words.next().is_some_and(|word| decimal(word).is_ok())
            && words.next().is_some_and(|word| decimal(word).is_ok());
        let time = words.next().is_some_and(|word| decimal_ns(word, S_DIGITS).is_ok());
        Ok((device && numbers && time) || line.starts_with(b"Input file "))
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let line = line.trim_ascii_start();
        if !line.first().is_some_and(u8::is_ascii_digit) {
            let known = STATISTICS.iter().any(|word| line.starts_with(word.as_bytes()));
            return if known { Ok(()) } else { Err(columns(line)) };
        }
        let mut words = words(line);
        let mut word = || words.next().ok_or_else(|| columns(line));
        let device = word()?;
        let (cpu, sequence, time, pid, action) = (word()?, word()?, word()?, word()?, word()?);
        if !is_device(device) {
            return Err(ErrorKind::Field { column: "device", want: "major,minor".into() });
        }
        for (column, number) in [("cpu", cpu), ("sequence", sequence), ("pid", pid)] {
            decimal(number).map_err(|e| e.of(column, "a number"))?;
        }
        let ns = decimal_ns(time, S_DIGITS).map_err(|e| e.of("time", "seconds.nanoseconds"))?;
        if action != self.action.letter().as_bytes() {
            context.counts.skipped_actions += 1;
            return Ok(());
        }
        let rwbs = Rwbs::parse(word()?)?;
        let (lba, sectors) = match range(&mut words)? {
            Range::Sectors(lba, sectors) => (lba, sectors),
            Range::Empty => (0, 0),
            Range::Passthrough => {
                context.counts.skipped_passthrough += 1;
                return Ok(());
            }
        };
        let Some(base) = context.device(device)? else {
            return Ok(());
        };
        let event = Event { at: Time::from_ns(ns), rwbs, lba, sectors };
        event.emit(base, context, out)
    }
}

fn columns(line: &[u8]) -> ErrorKind {
    ErrorKind::Columns { got: words(line).count(), want: WANT.into() }
}

/// The fields behind the RWBS letters.
enum Range {
    /// `sector + sectors`.
    Sectors(u64, u32),
    /// Nothing, or a sector without a length: a flush, or an empty request.
    Empty,
    /// A length and the command block in parentheses.
    Passthrough,
}

fn range<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Result<Range, ErrorKind> {
    let Some(first) = words.next() else {
        return Ok(Range::Empty);
    };
    if first.starts_with(b"[") {
        return Ok(Range::Empty);
    }
    if first.starts_with(b"(") {
        return Ok(Range::Passthrough);
    }
    let sector = decimal(first).map_err(|e| e.of("sector", "a number of 512-byte sectors"))?;
    match words.next() {
        Some(b"+") => {
            let sectors = words.next().unwrap_or_default();
            let sectors = decimal(sectors).map_err(|e| e.of("sectors", "a number of sectors"))?;
            u32::try_from(sectors)
                .map(|sectors| Range::Sectors(sector, sectors))
                .map_err(|_| ErrorKind::Overflow { column: "sectors" })
        }
        Some(word) if word.starts_with(b"(") => Ok(Range::Passthrough),
        Some(word) if word.starts_with(b"[") => Ok(Range::Empty),
        None => Ok(Range::Empty),
        Some(_) => Err(ErrorKind::Field { column: "sectors", want: "`+ sectors`".into() }),
    }
}

/// An event of the block layer, from text or binary.
pub(super) struct Event {
    pub(super) at: Time,
    pub(super) rwbs: Rwbs,
    pub(super) lba: u64,
    pub(super) sectors: u32,
}

impl Event {
    /// Makes the request (or requests) that the event stands for.
    pub(super) fn emit(
        &self,
        base: u64,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let op = match self.rwbs.kind {
            Kind::Read => Op::Read,
            Kind::Write => Op::Write,
            Kind::WriteZeroes => Op::WriteZeroes,
            Kind::Trim => Op::Trim,
            Kind::Flush => Op::Flush,
            Kind::None if self.rwbs.preflush && self.sectors == 0 => Op::Flush,
            Kind::None => {
                context.counts.skipped_no_type += 1;
                return Ok(());
            }
            Kind::Zone(op) => op,
            Kind::OtherZone => {
                context.counts.skipped_zone_ops += 1;
                return Ok(());
            }
        };
        context.counts.unknown_flags += u64::from(self.rwbs.unknown);
        let request = Request {
            at: self.at,
            op,
            lba: Lba(self.lba),
            sectors: self.sectors,
            fua: self.rwbs.fua,
            class: Class::Unknown,
        };
        if self.rwbs.preflush {
            context.emit_with_preflush(out, base, request)
        } else {
            context.emit(out, base, request)
        }
    }
}

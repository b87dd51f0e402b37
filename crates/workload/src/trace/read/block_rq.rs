//! The block layer's tracepoints as text: of `perf script`, `trace-cmd report` and ftrace's `trace` file.
//!
//! A line ends in `SECONDS: [block:]block_rq_issue: MAJOR,MINOR RWBS BYTES (COMMAND) SECTOR + SECTORS [PRIORITY] [COMM]`;
//! `block_bio_queue` and `block_rq_complete` are alike but for the bytes (Linux, `include/trace/events/block.h`).
//!
//! **What lives here**: its parser. **What doesn't**: the RWBS letters (`rwbs`), what they become (`blkparse`).
//!
//! **Invariants**: as for blkparse's text: only one event's lines become requests; other lines are counted.

use leyden_sim::Time;

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{S_DIGITS, decimal, decimal_ns, words};
use super::LineParser;
use super::action::BlkAction;
use super::blkparse::{Event, is_device};
use super::options::OpenOptions;
use super::rwbs::Rwbs;
use crate::Request;

const WANT: &str = "time: block_rq_issue: major,minor rwbs [bytes] [(command)] sector + sectors";

/// The tracepoints, by what they stand for.
const EVENTS: [(&[u8], BlkAction); 3] = [
    (b"block_bio_queue:", BlkAction::Queue),
    (b"block_rq_issue:", BlkAction::Issue),
    (b"block_rq_complete:", BlkAction::Complete),
];

#[derive(Default)]
pub(crate) struct BlockRq {
    action: BlkAction,
}

/// A line's time, the name of its event, and what follows.
fn event(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut at = 0;
    let mut time: &[u8] = &[];
    for word in words(line) {
        let begin = word.as_ptr() as usize - line.as_ptr() as usize;
        at = at.max(begin);
        let name = word.strip_prefix(b"block:").unwrap_or(word);
        if name.starts_with(b"block_") && name.ends_with(b":") && time.ends_with(b":") {
            return Some((&time[..time.len() - 1], name, &line[at + word.len()..]));
        }
        time = word;
    }
    None
}

/// A line at the head of trace-cmd's report: `version = 6`, `cpus=4`.
fn is_of_a_report(line: &[u8]) -> bool {
    line.starts_with(b"cpus=") || line.starts_with(b"version = ")
}

impl LineParser for BlockRq {
    fn choose(&mut self, options: &OpenOptions) -> Result<(), ErrorKind> {
        self.action = options.blkparse_action;
        Ok(())
    }

    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        Ok(line.starts_with(b"# tracer:") || is_of_a_report(line) || event(line).is_some())
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let columns = || ErrorKind::Columns { got: words(line).count(), want: WANT.into() };
        // Comments, the head of a report, and events of others than the block layer.
        let Some((time, name, rest)) = event(line) else {
            let is_note = line.starts_with(b"#") || is_of_a_report(line);
            let names_event = words(line).any(|word| word.starts_with(b"block"));
            context.counts.skipped_actions += u64::from(!is_note);
            return if names_event { Err(columns()) } else { Ok(()) };
        };
        if !EVENTS.iter().any(|(known, action)| *known == name && *action == self.action) {
            context.counts.skipped_actions += 1;
            return Ok(());
        }
        let ns = decimal_ns(time, S_DIGITS).map_err(|e| e.of("time", "decimal seconds"))?;
        let mut words = words(rest).peekable();
        let device = words.next().ok_or_else(columns)?;
        if !is_device(device) {
            return Err(ErrorKind::Field { column: "device", want: "major,minor".into() });
        }
        let rwbs = Rwbs::parse(words.next().ok_or_else(columns)?)?;
        if name == b"block_rq_issue:" {
            let bytes = words.next().ok_or_else(columns)?;
            decimal(bytes).map_err(|e| e.of("bytes", "a number of bytes"))?;
        }
        if let Some(command) = words.next_if(|word| word.starts_with(b"("))
            && !command.ends_with(b")")
        {
            words.find(|word| word.ends_with(b")")).ok_or_else(columns)?;
        }
        let sector = words.next().ok_or_else(columns)?;
        let sector = decimal(sector).map_err(|e| e.of("sector", "a number of 512-byte sectors"))?;
        let (Some(b"+"), Some(sectors)) = (words.next(), words.next()) else {
            return Err(columns());
        };
        let sectors = decimal(sectors).map_err(|e| e.of("sectors", "a number of sectors"))?;
        let sectors =
            u32::try_from(sectors).map_err(|_| ErrorKind::Overflow { column: "sectors" })?;
        let Some(base) = context.device(device)? else { return Ok(()) };
        // A flush has the address -1.
        let lba = if sectors == 0 { 0 } else { sector };
        Event { at: Time::from_ns(ns), rwbs, lba, sectors }.emit(base, context, out)
    }
}

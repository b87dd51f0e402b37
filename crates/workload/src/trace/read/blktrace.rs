//! The format of blktrace: `struct blk_io_trace` and, from Linux 6.19 on, `struct blk_io_trace2`
//! (`include/uapi/linux/blktrace_api.h`), little-endian, each followed by `pdu_len` bytes.
//!
//! **What lives here**: its parser. **What doesn't**: merging the files of several CPUs (that is
//! `blkparse -d`).
//!
//! **Invariants**: as for blkparse's text, and the magic number is checked on every record, so that
//! a lost byte is noticed at the next one.

use leyden_device::{Op, ZoneAction};
use leyden_sim::Time;

use crate::Request;

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::input::Input;
use super::BinaryParser;
use super::action::BlkAction;
use super::blkparse::Event;
use super::options::OpenOptions;
use super::rwbs::{Kind, Rwbs};

/// `BLK_IO_TRACE_MAGIC | version`.
const MAGIC_V1: u32 = 0x6561_7407;
const MAGIC_V2: u32 = 0x6561_7408;
const V1_BYTES: usize = 48;
const V2_BYTES: usize = 64;

/// Trace categories, `BLK_TC_*`: bits of the action from bit 16 up.
mod category {
    const SHIFT: u32 = 16;
    pub(super) const WRITE: u64 = 1 << (SHIFT + 1);
    pub(super) const FLUSH: u64 = 1 << (SHIFT + 2);
    pub(super) const PASSTHROUGH: u64 = 1 << (SHIFT + 9);
    pub(super) const NOTIFY: u64 = 1 << (SHIFT + 10);
    pub(super) const DISCARD: u64 = 1 << (SHIFT + 13);
    pub(super) const FUA: u64 = 1 << (SHIFT + 15);
    /// Version 2 only: zone append, reset, reset all, finish, open, close are bits 16 to 21.
    pub(super) const ZONE: u64 = 0x3f << (SHIFT + 16);
    pub(super) const ZONE_APPEND: u64 = 1 << (SHIFT + 16);
    pub(super) const ZONE_RESET: u64 = 1 << (SHIFT + 17);
    pub(super) const ZONE_FINISH: u64 = 1 << (SHIFT + 19);
    pub(super) const ZONE_OPEN: u64 = 1 << (SHIFT + 20);
    pub(super) const ZONE_CLOSE: u64 = 1 << (SHIFT + 21);
    /// Version 2 only.
    pub(super) const WRITE_ZEROES: u64 = 1 << (SHIFT + 22);
}

/// The lowest byte of the action is `enum blktrace_act`; bit 8 says that a cgroup id follows.
const ACTION_MASK: u64 = 0xff;

fn big_endian() -> ErrorKind {
    ErrorKind::Unsupported {
        what: "a blktrace of a big-endian machine",
        remedy: "Print it with blkparse, and read the text",
    }
}

fn unknown_version() -> ErrorKind {
    ErrorKind::Unsupported {
        what: "a blktrace of a version that isn't known (7 and 8 are)",
        remedy: "Print it with its own blkparse, and read the text",
    }
}

#[derive(Default)]
pub(crate) struct Blktrace {
    action: BlkAction,
    /// The device of the last record, and its name.
    device: Option<(u32, String)>,
}

/// The fields we use, of either version.
struct Record {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    device: u32,
}

impl BinaryParser for Blktrace {
    fn choose(&mut self, options: &OpenOptions) -> Result<(), ErrorKind> {
        self.action = options.blkparse_action;
        Ok(())
    }

    fn sniff(head: &[u8]) -> Result<bool, ErrorKind> {
        match head.first_chunk::<4>() {
            Some(&[0x07 | 0x08, 0x74, 0x61, 0x65]) => Ok(true),
            Some([0x65, 0x61, 0x74, 0x07 | 0x08]) => Err(big_endian()),
            Some([_, 0x74, 0x61, 0x65]) => Err(unknown_version()),
            _ => Ok(false),
        }
    }

    /// A record.
    fn piece(
        &mut self,
        input: &mut Input,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<bool, ErrorKind> {
        if !input.hold(4)? {
            return if input.window().is_empty() {
                Ok(false)
            } else {
                Err(ErrorKind::Truncated("a record"))
            };
        }
        let length = match u32_at(input.window(), 0) {
            MAGIC_V1 => V1_BYTES,
            MAGIC_V2 => V2_BYTES,
            magic if matches!(magic.swap_bytes(), MAGIC_V1 | MAGIC_V2) => {
                return Err(big_endian());
            }
            magic if magic >> 8 == MAGIC_V1 >> 8 => return Err(unknown_version()),
            _ => return Err(ErrorKind::Corrupt("no record begins here")),
        };
        if !input.hold(length)? {
            return Err(ErrorKind::Truncated("a record"));
        }
        let window = input.window();
        let (event, pdu_bytes) = if length == V1_BYTES { v1(window) } else { v2(window) };
        if !input.hold(length + pdu_bytes)? {
            return Err(ErrorKind::Truncated("the data behind a record"));
        }
        self.event(&event, context, out)?;
        input.consume(length + pdu_bytes);
        Ok(true)
    }
}

impl Blktrace {
    fn event(
        &mut self,
        event: &Record,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let notify = event.action & category::NOTIFY != 0;
        if notify || event.action & ACTION_MASK != self.action.number() {
            context.counts.skipped_actions += 1;
            return Ok(());
        }
        if event.action & category::PASSTHROUGH != 0 {
            context.counts.skipped_passthrough += 1;
            return Ok(());
        }
        if !matches!(&self.device, Some((last, _)) if *last == event.device) {
            // The kernel's internal dev_t: 12 bits of major, 20 of minor.
            let name = format!("{},{}", event.device >> 20, event.device & 0xf_ffff);
            self.device = Some((event.device, name));
        }
        let name = self.device.as_ref().map_or("", |(_, name)| name);
        let Some(base) = context.device(name.as_bytes())? else {
            return Ok(());
        };
        let bytes = u64::from(event.bytes);
        if !bytes.is_multiple_of(leyden_device::SECTOR_BYTES) {
            context.counts.widened += 1;
        }
        let sectors = bytes.div_ceil(leyden_device::SECTOR_BYTES) as u32;
        let event = Event {
            at: Time::from_ns(event.time_ns),
            rwbs: rwbs(event),
            lba: event.sector,
            sectors,
        };
        event.emit(base, context, out)
    }
}

/// The letters that blkparse would print for the event.
fn rwbs(event: &Record) -> Rwbs {
    let has = |bits: u64| event.action & bits != 0;
    let kind = if has(category::DISCARD) {
        Kind::Trim
    } else if has(category::ZONE) {
        zone_kind(event.action & category::ZONE)
    } else if has(category::WRITE_ZEROES) {
        Kind::WriteZeroes
    } else if has(category::WRITE) {
        Kind::Write
    } else if event.bytes > 0 {
        Kind::Read
    } else {
        Kind::None
    };
    Rwbs { kind, preflush: has(category::FLUSH), fua: has(category::FUA), unknown: false }
}

/// The action on a zone; resets of all zones name none.
fn zone_kind(bits: u64) -> Kind {
    let op = match bits {
        category::ZONE_APPEND => Op::ZoneAppend,
        category::ZONE_RESET => Op::Zone(ZoneAction::Reset),
        category::ZONE_FINISH => Op::Zone(ZoneAction::Finish),
        category::ZONE_OPEN => Op::Zone(ZoneAction::Open),
        category::ZONE_CLOSE => Op::Zone(ZoneAction::Close),
        _ => return Kind::OtherZone,
    };
    Kind::Zone(op)
}

fn v1(record: &[u8]) -> (Record, usize) {
    let event = Record {
        time_ns: u64_at(record, 8),
        sector: u64_at(record, 16),
        bytes: u32_at(record, 24),
        action: u64::from(u32_at(record, 28)),
        device: u32_at(record, 36),
    };
    (event, usize::from(u16_at(record, 46)))
}

fn v2(record: &[u8]) -> (Record, usize) {
    let event = Record {
        time_ns: u64_at(record, 8),
        sector: u64_at(record, 16),
        bytes: u32_at(record, 24),
        action: u64_at(record, 32),
        device: u32_at(record, 40),
    };
    (event, usize::from(u16_at(record, 50)))
}

fn chunk<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(chunk(record, at))
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(chunk(record, at))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(chunk(record, at))
}

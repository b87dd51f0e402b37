//! State common to all parsers: the receiver of requests, their order, and counts of skipped records.
//!
//! **What lives here**: the checks that no format may skip (ranges, lengths, time order), the rule
//! for several devices in one file, the counters. **What doesn't**: any format.
//!
//! **Invariants**
//! - A request that leaves here covers at least one sector (but a flush: none) and ends at or below
//!   2^64 bytes.
//! - Nothing is dropped without being counted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use leyden_device::{Lba, Op};
use leyden_sim::Time;
use serde::Serialize;

use crate::{Class, ClassNames, Request};

use super::classes::Classes;
use super::error::ErrorKind;

/// First sector that has no byte address below 2^64.
pub(crate) const END_SECTOR: u64 = 1 << 55;

/// Counts of a reader beside its requests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReadCounts {
    /// Requests handed out.
    pub requests: u64,
    /// Hints (`H`) among what was read.
    pub hints: u64,
    /// blktrace events of another action than the one asked for.
    pub skipped_actions: u64,
    /// Commands passed through to the device (SCSI or NVMe passthrough), which are no block I/O.
    pub skipped_passthrough: u64,
    /// Zone commands other than append, reset, finish, open and close of one zone.
    pub skipped_zone_ops: u64,
    /// Reads, writes and discards of zero bytes.
    pub skipped_zero_length: u64,
    /// Records that don't say whether they read or write (SYSTOR '17 has such).
    pub skipped_no_type: u64,
    /// fio's notes of files being added, opened and closed, and `sync_file_range`.
    pub skipped_file_actions: u64,
    /// Requests to another device than the one asked for.
    pub skipped_devices: u64,
    /// Requests of classes that were to be left out.
    pub skipped_classes: u64,
    /// Byte ranges widened to whole sectors.
    pub widened: u64,
    /// Writes that asked for a flush first: the flush became a request of its own.
    pub split_preflush: u64,
    /// Letters in RWBS flags that we don't know and read past.
    pub unknown_flags: u64,
    /// Records that came later in the file than in time, and were sorted.
    pub reordered: u64,
    /// Whether the last line of a text lacks its line feed: the file may have been cut there.
    pub unterminated: bool,
}

/// The remedy for a trace without requests.
pub(crate) const NO_IO: &str = "Check that the capture saw any I/O";
/// How many devices are named to who asked for one that is not there.
const NAMED_DEVICES: usize = 8;

impl ReadCounts {
    /// Everything that was read past.
    pub fn skipped(&self) -> u64 {
        self.skipped_actions
            + self.skipped_passthrough
            + self.skipped_zone_ops
            + self.skipped_zero_length
            + self.skipped_no_type
            + self.skipped_file_actions
            + self.skipped_devices
            + self.skipped_classes
    }

    /// Warnings to the owner of the trace, in sentences; empty if there are none.
    pub fn warnings(&self) -> Vec<String> {
        let counted = [
            (self.skipped_passthrough, "passthrough commands were skipped"),
            (self.skipped_zone_ops, "zone commands were skipped"),
            (self.skipped_zero_length, "requests of zero bytes were skipped"),
            (self.skipped_no_type, "records that neither read nor write were skipped"),
            (self.skipped_devices, "requests to other devices were skipped"),
            (self.skipped_classes, "requests of classes to be left out were skipped"),
            (self.widened, "byte ranges were widened to whole 512-byte sectors"),
            (self.unknown_flags, "unknown flag letters were read past"),
            (self.reordered, "records were out of order and have been sorted by time"),
        ];
        let mut all: Vec<String> = counted
            .into_iter()
            .filter(|&(count, _)| count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.unterminated {
            all.push("the last line lacks its line feed: was the file cut short?".to_owned());
        }
        all
    }
}

/// The meaning of requests to several devices in one file. MSR's host and disk, SYSTOR's LUN,
/// DiskSim's device number, blktrace's `major,minor` and fio's file name are devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Devices {
    /// There may be only one; a second is an error.
    #[default]
    One,
    /// Take this one's requests, skip and count all others. Named as in the file (MSR: `host,disk`).
    Only(String),
    /// Take all, as if their addresses were one device's.
    Overlay,
    /// Take all, one after another in order of first appearance.
    Stack {
        /// Sectors of address space for each.
        stride_sectors: u64,
    },
}

/// The treatment of records that come later in the file than in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsorted {
    /// They are an error.
    Refuse,
    /// They are sorted into place (stably) if they are late by no more than this many records, and
    /// an error otherwise.
    Sort {
        /// Records that are kept back to be sorted; 24 bytes each, twice.
        window: usize,
    },
}

impl Default for Unsorted {
    fn default() -> Self {
        Self::Sort { window: 64 << 10 }
    }
}

impl Unsorted {
    /// So many records are kept back; with 0 none may be late.
    pub const fn within(records: u32) -> Self {
        match records {
            0 => Self::Refuse,
            records => Self::Sort { window: records as usize },
        }
    }

    pub(crate) fn window(self) -> usize {
        match self {
            Self::Refuse => 0,
            Self::Sort { window } => window,
        }
    }
}

/// The state that parsers share.
pub(crate) struct Context {
    pub(crate) counts: ReadCounts,
    pub(crate) classes: Classes,
    devices: Devices,
    /// Whose requests are left out.
    without: Vec<Class>,
    /// Of those, the ones that no request has had yet.
    unmet: Vec<Class>,
    /// The device seen last and where its addresses begin, in sectors (`None`: not asked for).
    last_device: Option<(Vec<u8>, Option<u64>)>,
    stacked: BTreeMap<Vec<u8>, u64>,
    /// The first of those that were not asked for.
    others: BTreeSet<String>,
    window: usize,
    /// The latest time seen.
    newest: Time,
    /// The latest time handed out: nothing may come before it any more.
    pub(crate) floor: Time,
    /// Whether something since the last sorting came late.
    pub(crate) disordered: bool,
}

impl Context {
    /// With classes of `classes`, of which the ones named in `without` are left out.
    pub(crate) fn new(
        devices: Devices,
        window: usize,
        classes: ClassNames,
        without: &[String],
    ) -> Self {
        let without = without.iter().filter_map(|name| classes.class(name).ok());
        let without: Vec<Class> = without.collect();
        Self {
            counts: ReadCounts::default(),
            classes: Classes::new(classes),
            devices,
            unmet: without.clone(),
            without,
            last_device: None,
            stacked: BTreeMap::new(),
            others: BTreeSet::new(),
            window,
            newest: Time::ZERO,
            floor: Time::ZERO,
            disordered: false,
        }
    }

    /// The remedy for a trace without a request.
    pub(crate) fn remedy_if_empty(&self) -> Cow<'static, str> {
        let counts = &self.counts;
        let text = if counts.skipped() == 0 {
            NO_IO
        } else if counts.skipped_devices > 0 {
            let names: Vec<&str> = self.others.iter().map(String::as_str).collect();
            let more = if names.len() == NAMED_DEVICES { ", ..." } else { "" };
            let names = names.join("`, `");
            return format!("Name one of the devices that are in it: `{names}`{more}").into();
        } else if counts.skipped_classes > 0 {
            "Leave fewer classes out: every request is of one of them"
        } else if counts.skipped_actions > 0 {
            "Check the action that was asked for: queue (Q), issue (D) or complete (C)"
        } else if counts.skipped_zero_length == counts.skipped() {
            "All of them are of zero bytes: check the column of lengths"
        } else {
            "None of them reads, writes, trims or flushes: check that this is a trace of requests"
        };
        text.into()
    }

    /// Where the addresses of the device called `name` begin, in sectors; `None` if its requests
    /// are to be skipped (which is counted here).
    #[inline]
    pub(crate) fn device(&mut self, name: &[u8]) -> Result<Option<u64>, ErrorKind> {
        let base = match &self.last_device {
            Some((last, base)) if last == name => *base,
            _ => self.other_device(name)?,
        };
        self.counts.skipped_devices += u64::from(base.is_none());
        Ok(base)
    }

    #[cold]
    fn other_device(&mut self, name: &[u8]) -> Result<Option<u64>, ErrorKind> {
        let Ok(text) = std::str::from_utf8(name) else {
            return Err(ErrorKind::Field { column: "device", want: "text (UTF-8)".into() });
        };
        let base = match &self.devices {
            Devices::One => match &self.last_device {
                None => Some(0),
                Some((first, _)) => {
                    return Err(ErrorKind::SecondDevice {
                        first: String::from_utf8_lossy(first).into_owned(),
                        second: text.to_owned(),
                    });
                }
            },
            Devices::Only(only) if only == text => Some(0),
            Devices::Only(_) => {
                if self.others.len() < NAMED_DEVICES {
                    self.others.insert(text.to_owned());
                }
                None
            }
            Devices::Overlay => Some(0),
            Devices::Stack { stride_sectors } => {
                let next = (self.stacked.len() as u64).checked_mul(*stride_sectors);
                let next = next.ok_or(ErrorKind::Range)?;
                Some(*self.stacked.entry(name.to_owned()).or_insert(next))
            }
        };
        self.last_device = Some((name.to_owned(), base));
        Ok(base)
    }

    /// Takes a request whose addresses begin at `base` sectors.
    #[inline]
    pub(crate) fn emit(
        &mut self,
        out: &mut Vec<Request>,
        base: u64,
        mut request: Request,
    ) -> Result<(), ErrorKind> {
        if request.op == Op::Flush {
            request.lba = Lba(0);
            request.sectors = 0;
            request.fua = false;
        } else {
            if matches!(request.op, Op::Zone(_)) {
                request.sectors = 0; // it names a zone, and moves no data
            } else if request.sectors == 0 {
                self.counts.skipped_zero_length += 1;
                return Ok(());
            }
            request.lba = Lba(self.place(base, request.lba.0, request.sectors)?);
            if request.op == Op::WritePrepare {
                request.fua = false; // it announces a write, and writes nothing
                self.counts.hints += 1;
            }
        }
        self.push(out, request)
    }

    /// As [`Self::emit`], for a flush of the file that lies in the request's range.
    pub(crate) fn emit_sync(
        &mut self,
        out: &mut Vec<Request>,
        base: u64,
        request: Request,
    ) -> Result<(), ErrorKind> {
        if request.sectors == 0 {
            return self.emit(out, base, request);
        }
        let lba = Lba(self.place(base, request.lba.0, request.sectors)?);
        self.push(out, Request { lba, fua: false, ..request })
    }

    /// Warnings about the requests read so far, in sentences.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut all = self.counts.warnings();
        all.extend(self.unmet.iter().map(|class| {
            let name = self.classes.names().name(*class).unwrap_or_default();
            format!("no request is of the class `{name}`, which was to be left out")
        }));
        all
    }

    /// Whether requests of `class` are left out; counts one that is.
    #[inline]
    fn leaves_out(&mut self, class: Class) -> bool {
        !self.without.is_empty() && self.finds_left_out(class)
    }

    #[cold]
    fn finds_left_out(&mut self, class: Class) -> bool {
        let is_left_out = self.without.contains(&class);
        if is_left_out {
            self.unmet.retain(|unmet| *unmet != class);
            self.counts.skipped_classes += 1;
        }
        is_left_out
    }

    /// Takes a request as it is, in its turn.
    #[inline]
    fn push(&mut self, out: &mut Vec<Request>, request: Request) -> Result<(), ErrorKind> {
        // A flush of no class is of all that was written.
        let is_of_all = request.op == Op::Flush && request.class == Class::Unknown;
        if !is_of_all && self.leaves_out(request.class) {
            return Ok(());
        }
        if request.at < self.newest {
            self.late(request.at)?;
        } else {
            self.newest = request.at;
        }
        out.push(request);
        Ok(())
    }

    /// Sectors that each device has to itself, if several follow one another.
    pub(crate) const fn stride_sectors(&self) -> Option<u64> {
        match self.devices {
            Devices::Stack { stride_sectors } => Some(stride_sectors),
            _ => None,
        }
    }

    #[inline]
    fn place(&self, base: u64, lba: u64, sectors: u32) -> Result<u64, ErrorKind> {
        let end = lba.checked_add(u64::from(sectors)).ok_or(ErrorKind::Range)?;
        if let Devices::Stack { stride_sectors } = self.devices
            && end > stride_sectors
        {
            return Err(ErrorKind::BeyondStride { stride_sectors });
        }
        match base.checked_add(end) {
            Some(end) if end <= END_SECTOR => Ok(base + lba),
            _ => Err(ErrorKind::Range),
        }
    }

    #[cold]
    fn late(&mut self, at: Time) -> Result<(), ErrorKind> {
        let limit = if self.window == 0 { self.newest } else { self.floor };
        if at < limit {
            return Err(ErrorKind::Unsorted {
                behind_ns: limit.as_ns() - at.as_ns(),
                window: self.window,
            });
        }
        self.counts.reordered += 1;
        self.disordered = true;
        Ok(())
    }

    /// As [`Self::emit`], for what RWBS flags can say: a flush before the data, then the data.
    pub(crate) fn emit_with_preflush(
        &mut self,
        out: &mut Vec<Request>,
        base: u64,
        request: Request,
    ) -> Result<(), ErrorKind> {
        // With the write goes its flush.
        if request.op != Op::Flush && self.leaves_out(request.class) {
            return Ok(());
        }
        let flush = Request { op: Op::Flush, class: Class::Unknown, ..request };
        self.emit(out, base, flush)?;
        if request.sectors > 0 && request.op != Op::Flush {
            self.counts.split_preflush += 1;
            self.emit(out, base, request)?;
        }
        Ok(())
    }

    /// The sectors that a range of bytes touches: the first, and how many.
    #[inline]
    pub(crate) fn widen(&mut self, offset: u64, bytes: u64) -> Result<(u64, u32), ErrorKind> {
        const MASK: u64 = leyden_device::SECTOR_BYTES - 1;
        if bytes == 0 {
            return Ok((offset / leyden_device::SECTOR_BYTES, 0));
        }
        let end = offset.checked_add(bytes).ok_or(ErrorKind::Range)?;
        if (offset | bytes) & MASK != 0 {
            self.counts.widened += 1;
        }
        let first = offset / leyden_device::SECTOR_BYTES;
        let sectors = end.div_ceil(leyden_device::SECTOR_BYTES) - first;
        let sectors = u32::try_from(sectors).map_err(|_| ErrorKind::Overflow { column: "size" })?;
        Ok((first, sectors))
    }
}

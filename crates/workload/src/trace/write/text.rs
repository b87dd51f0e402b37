//! Encoders of the text formats.
//!
//! **What lives here**: our CSV, fio's iologs, MSR, SYSTOR and DiskSim columns. **What doesn't**:
//! counting what they can't carry (`write`), files (`sink`).
//!
//! **Invariants**: what is written is read back by the parser of the same format.

use leyden_device::{Op, SECTOR_BYTES};

use crate::{Class, ClassNames, Request};

use super::super::num::{S_DIGITS, US_DIGITS, push_decimal, push_decimal_ns};
use super::super::read::columns::Known;
use super::super::read::rwbs::zone_letter;
use super::super::read::{fio, known};
use super::{Carries, Encode};

/// The numbers of a line, separated by `separator`.
fn push_numbers(out: &mut Vec<u8>, separator: u8, numbers: &[u64]) {
    for (i, &number) in numbers.iter().enumerate() {
        if i > 0 {
            out.push(separator);
        }
        push_decimal(out, number);
    }
}

fn offset_bytes(request: &Request) -> u64 {
    request.lba.0 * SECTOR_BYTES
}

fn size_bytes(request: &Request) -> u64 {
    u64::from(request.sectors) * SECTOR_BYTES
}

/// Our own text, with all six columns. Times are written in whole microseconds where they are, and
/// with three decimals where they aren't.
pub(crate) struct Csv {
    pub(crate) classes: ClassNames,
}

impl Encode for Csv {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"time_us,op,lba,len,flags,class\n");
    }

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        let ns = request.at.as_ns();
        if ns.is_multiple_of(1_000) {
            push_decimal(out, ns / 1_000);
        } else {
            push_decimal_ns(out, ns, US_DIGITS);
        }
        let of_zone;
        let (op, letters): (&[u8], &[u8]) = match request.op {
            Op::Read => (b"R", b"R"),
            Op::Write => (b"W", b"W"),
            Op::Flush => (b"F", b"FF"),
            Op::Trim => (b"D", b"D"),
            Op::WriteZeroes => (b"Z", b"WZ"),
            Op::WritePrepare => (b"H", b"-"),
            Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {
                // Operations that the format can't carry don't come here.
                let Some(letter) = zone_letter(request.op) else { return };
                of_zone = [b'Z', letter];
                (&of_zone, &of_zone)
            }
        };
        out.push(b',');
        out.extend_from_slice(op);
        out.push(b',');
        match request.op {
            Op::Flush if request.sectors == 0 => push_numbers(out, b',', &[0, 0]),
            _ => push_numbers(out, b',', &[request.lba.0, u64::from(request.sectors)]),
        }
        out.push(b',');
        out.extend_from_slice(letters);
        if request.fua && !matches!(request.op, Op::Flush | Op::WritePrepare) {
            out.push(b'F');
        }
        out.push(b',');
        out.extend_from_slice(match request.class {
            Class::Unknown => b"-",
            class => self.classes.name(class).unwrap_or("-").as_bytes(),
        });
        out.push(b'\n');
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn carries(&self) -> Carries {
        Carries::ALL
    }
}

/// fio's I/O log. Version 2 has `wait` lines between requests, version 3 a timestamp on each.
pub(crate) struct Fio {
    file: Vec<u8>,
    stamped: bool,
    last_us: u64,
}

impl Fio {
    pub(crate) fn new(file: &[u8], stamped: bool) -> Self {
        Self { file: file.to_owned(), stamped, last_us: 0 }
    }

    fn action(&self, action: &[u8], numbers: &[u64], out: &mut Vec<u8>) {
        if self.stamped {
            push_decimal(out, self.last_us);
            out.push(b' ');
        }
        out.extend_from_slice(&self.file);
        out.push(b' ');
        out.extend_from_slice(action);
        if !numbers.is_empty() {
            out.push(b' ');
            push_numbers(out, b' ', numbers);
        }
        out.push(b'\n');
    }
}

impl Encode for Fio {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let header = if self.stamped { fio::HEADER_V3 } else { fio::HEADER_V2 };
        out.extend_from_slice(header.as_bytes());
        out.push(b'\n');
        self.action(b"add", &[], out);
        self.action(b"open", &[], out);
    }

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        let us = request.at.as_ns() / 1_000;
        if !self.stamped && us > self.last_us {
            self.action(b"wait", &[us - self.last_us, 0], out);
        }
        self.last_us = us;
        let range = [offset_bytes(request), size_bytes(request)];
        match request.op {
            Op::Read => self.action(b"read", &range, out),
            Op::Trim => self.action(b"trim", &range, out),
            Op::Flush => self.action(b"sync", &[0, 0], out),
            // Writing zeroes isn't carried, and doesn't come here.
            Op::Write | Op::WriteZeroes => self.action(b"write", &range, out),
            // Neither are hints, nor what is done to zones.
            Op::WritePrepare | Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {}
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.action(b"close", &[], out);
    }

    fn carries(&self) -> Carries {
        Carries { flushes: true, trims: true, resolution_ns: 1_000, ..Carries::PLAIN }
    }
}

/// MSR Cambridge CSV, for `leyden,0`. The filetime counts from the trace's start, not from 1601.
pub(crate) struct Msr;

impl Encode for Msr {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        push_decimal(out, request.at.as_ns() / 100);
        let kind: &[u8] = match request.op {
            Op::Read => b",leyden,0,Read,",
            _ => b",leyden,0,Write,",
        };
        out.extend_from_slice(kind);
        push_numbers(out, b',', &[offset_bytes(request), size_bytes(request), 0]);
        out.push(b'\n');
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn carries(&self) -> Carries {
        Carries { resolution_ns: 100, ..Carries::PLAIN }
    }
}

/// SYSTOR '17 CSV, for LUN 0. Times count from the trace's start, not from 1970.
pub(crate) struct Systor;

impl Encode for Systor {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(known::Systor::NAMES.as_bytes());
        out.push(b'\n');
    }

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        push_decimal_ns(out, request.at.as_ns(), S_DIGITS);
        let kind: &[u8] = match request.op {
            Op::Read => b",0.000000000,R,0,",
            _ => b",0.000000000,W,0,",
        };
        out.extend_from_slice(kind);
        push_numbers(out, b',', &[offset_bytes(request), size_bytes(request)]);
        out.push(b'\n');
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn carries(&self) -> Carries {
        Carries::PLAIN
    }
}

/// DiskSim's columns in MQSim's units, for device 0.
pub(crate) struct DiskSim;

impl Encode for DiskSim {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        let kind = u64::from(request.op == Op::Read);
        let sectors = u64::from(request.sectors);
        push_numbers(out, b' ', &[request.at.as_ns(), 0, request.lba.0, sectors, kind]);
        out.push(b'\n');
    }

    fn end(&mut self, _: &mut Vec<u8>) {}

    fn carries(&self) -> Carries {
        Carries::PLAIN
    }
}

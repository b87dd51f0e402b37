//! Our binary format's encoder, and with it the format's description.
//!
//! **What lives here**: the layout. **What doesn't**: its parser (`read::compact`).
//!
//! **Invariants**: what is written is read back exactly; a byte that is lost or changed is found.

use std::collections::BTreeMap;

use leyden_device::Op;
use leyden_sim::Time;

use crate::{Class, ClassNames, Request};

use super::super::read::compact::{
    BLOCK_HEADER_BYTES, BLOCK_RECORDS, HEADER_BYTES, MAGIC, MANAGEMENT, NAMED, OPS,
    TAG_CLASS_SHIFT, TAG_FUA, TAG_SAME_SECTORS, UNKNOWN, UNNAMED_VERSION, VERSION,
};
use super::super::read::rwbs::ZONE_OPS;
use super::{Carries, Encode};

/// Writes the compact format, version 1 or, with names of classes, 2. All numbers are little-endian.
///
/// **File header**, 40 bytes:
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | magic `89 4C 54 52 0D 0A 1A 0A` |
/// | 8..10 | version: 1 without names of classes, 2 with them or if it isn't known (a compressed stream) |
/// | 10..12 | length of this header, 40 |
/// | 12..16 | zero |
/// | 16..24 | requests in the file, or 2^64 - 1: not known (a compressed stream can't be gone back to) |
/// | 24..32 | first sector beyond the highest that a request touches, or 2^64 - 1: not known |
/// | 32..36 | zero |
/// | 36..40 | CRC-32 (IEEE) of bytes 0..36 |
///
/// **Blocks** of up to 4,096 requests follow, each readable on its own, but for the names before it:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | length of the payload |
/// | 4..8 | requests in it |
/// | 8..16 | time from which the first request's delta counts, ns since the trace's start |
/// | 16..20 | CRC-32 of bytes 0..16 and the payload |
/// | 20.. | payload |
///
/// **A block of names** has no requests, and a payload: each name is a byte, its length, and so many
/// characters. Its time field is the number of its first name; names count from 0. It comes before the
/// first block that uses one of its names.
///
/// **The end block** is a block of no requests and no payload; its time field holds the number of
/// requests in the file. Nothing follows it.
///
/// **A request** is a tag byte and then LEB128 numbers:
///
/// | tag bits | what |
/// |---|---|
/// | 0..3 | 0 read, 1 write, 2 flush, 3 trim, 4 write zeroes, 5 hint (write prepare), 6 zone append, 7 zone management |
/// | 3 | forced unit access; of a flush: it is for a file |
/// | 4..7 | class: 0 unknown, 1 data, 2 WAL, 3 journal, 4 file system metadata, 5 a name, whose number follows the tag as a byte |
/// | 7 | as many sectors as the request before in this block (flushes and zone management don't count) |
///
/// 1. time since the request before (since the block's time for the first), ns;
/// 2. unless it is a flush of everything: first sector minus the end of the request before (0 at the block's
///    start), zigzag-coded (0, -1, 1, -2 are 0, 1, 2, 3), so that 0 is a sequential request;
/// 3. of zone management: a byte, 1 reset, 2 finish, 3 open, 4 close;
///    else, unless it is a flush of everything or tag bit 7 is set: sectors. The next request counts from the end of the
///    one before a flush.
#[derive(Default)]
pub(crate) struct Compact {
    block: Vec<u8>,
    records: usize,
    block_time: Time,
    last: Time,
    end: u64,
    sectors: u32,
    requests: u64,
    end_sector: u64,
    classes: ClassNames,
    /// There are flushes of files.
    has_files: bool,
    /// By class: the number that its name has in the file.
    numbers: BTreeMap<Class, u8>,
    /// Of the names, those that are in blocks.
    named: usize,
    /// The payload of the next block of names.
    names: Vec<u8>,
}

impl Compact {
    pub(crate) fn new(classes: ClassNames) -> Self {
        Self { classes, ..Self::default() }
    }

    fn header(version: u16, requests: u64, end_sector: u64) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&version.to_le_bytes());
        header.extend_from_slice(&(HEADER_BYTES as u16).to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(&requests.to_le_bytes());
        header.extend_from_slice(&end_sector.to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        let crc = crc32fast::hash(&header);
        header.extend_from_slice(&crc.to_le_bytes());
        header
    }

    fn push_block(payload: &[u8], records: usize, time_or_count: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&(records as u32).to_le_bytes());
        out.extend_from_slice(&time_or_count.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&out[begin..]);
        hasher.update(payload);
        out.extend_from_slice(&hasher.finalize().to_le_bytes());
        debug_assert_eq!(out.len() - begin, BLOCK_HEADER_BYTES);
        out.extend_from_slice(payload);
    }

    /// The tag's bits for a class, and the byte that follows the tag if it has a name.
    #[inline]
    fn class(&mut self, class: Class) -> (u8, Option<u8>) {
        match class {
            Class::Named(_) => self.named(class).map_or((0, None), |it| (NAMED, Some(it))),
            known => (known.number(), None),
        }
    }

    /// The number of a class's name in the file; new ones are put down for the next block.
    fn named(&mut self, class: Class) -> Option<u8> {
        if let Some(&number) = self.numbers.get(&class) {
            return Some(number);
        }
        let name = self.classes.name(class)?;
        let number = self.numbers.len() as u8;
        self.names.push(name.len() as u8);
        self.names.extend_from_slice(name.as_bytes());
        self.numbers.insert(class, number);
        Some(number)
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        if !self.names.is_empty() {
            Self::push_block(&self.names, 0, self.named as u64, out);
            self.names.clear();
            self.named = self.numbers.len();
        }
        if self.records > 0 {
            Self::push_block(&self.block, self.records, self.block_time.as_ns(), out);
        }
        self.block.clear();
        (self.records, self.end, self.sectors) = (0, 0, 0);
    }
}

impl Encode for Compact {
    fn begin(&mut self, out: &mut Vec<u8>) {
        // A file that is written as it grows may yet get names; else the last word is
        // `final_header`'s.
        out.extend_from_slice(&Self::header(VERSION, UNKNOWN, UNKNOWN));
    }

    fn request(&mut self, request: &Request, out: &mut Vec<u8>) {
        if self.records == 0 {
            (self.block_time, self.last) = (request.at, request.at);
        }
        let flush = request.op == Op::Flush;
        let is_management = matches!(request.op, Op::Zone(_));
        let same = !flush && !is_management && request.sectors == self.sectors;
        let op = if is_management { MANAGEMENT } else { request.op };
        let op = OPS.iter().position(|&known| known == op).unwrap_or(0);
        let (class, number) = self.class(request.class);
        let mut tag = op as u8 | class << TAG_CLASS_SHIFT;
        if request.fua && !flush && request.op != Op::WritePrepare {
            tag |= TAG_FUA;
        }
        let of_file = flush && request.sectors > 0;
        if of_file {
            tag |= TAG_FUA;
            self.has_files = true;
        }
        if same {
            tag |= TAG_SAME_SECTORS;
        }
        self.block.push(tag);
        self.block.extend(number);
        push_varint(&mut self.block, (request.at - self.last).as_ns());
        self.last = request.at;
        if of_file {
            let step = request.lba.0.wrapping_sub(self.end) as i64;
            push_varint(&mut self.block, zigzag(step));
            push_varint(&mut self.block, u64::from(request.sectors));
        }
        if !flush {
            let step = request.lba.0.wrapping_sub(self.end) as i64;
            push_varint(&mut self.block, zigzag(step));
            if is_management {
                let which = ZONE_OPS.iter().position(|&(_, op)| op == request.op);
                self.block.push(which.unwrap_or(0) as u8);
            } else {
                if !same {
                    push_varint(&mut self.block, u64::from(request.sectors));
                }
                self.sectors = request.sectors;
            }
            self.end = request.lba.0 + u64::from(request.sectors);
            self.end_sector = self.end_sector.max(self.end);
        }
        self.records += 1;
        self.requests += 1;
        if self.records == BLOCK_RECORDS {
            self.close_block(out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.close_block(out);
        Self::push_block(&[], 0, self.requests, out);
    }

    fn final_header(&self) -> Option<Vec<u8>> {
        let is_plain = self.numbers.is_empty() && !self.has_files;
        let version = if is_plain { UNNAMED_VERSION } else { VERSION };
        Some(Self::header(version, self.requests, self.end_sector))
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }
}

/// Appends a LEB128 number.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

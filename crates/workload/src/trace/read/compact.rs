//! Our binary format's parser, and the constants it shares with its writer.
//!
//! **What lives here**: reading. **What doesn't**: the layout's description, which is with
//! [`Compact`](super::super::write::compact::Compact), the type that writes it.
//!
//! **Invariants**: nothing of a block is handed out before its checksum was found right; a file
//! that doesn't end with its end block, and there, is an error.

use leyden_device::{Lba, Op, ZoneAction};
use leyden_sim::Time;

use crate::{Class, ClassNames, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::input::Input;
use super::BinaryParser;
use super::rwbs::ZONE_OPS;

/// First bytes: not text, and spoilt by anything that "mends" line ends, as PNG's.
pub(crate) const MAGIC: &[u8; 8] = b"\x89LTR\r\n\x1a\n";
/// With blocks of names; none need be there.
pub(crate) const VERSION: u16 = 2;
/// Without names of classes.
pub(crate) const UNNAMED_VERSION: u16 = 1;
pub(crate) const HEADER_BYTES: usize = 40;
pub(crate) const BLOCK_HEADER_BYTES: usize = 20;
/// Records in a block, at most.
pub(crate) const BLOCK_RECORDS: usize = 4096;
/// Longest record: tag, class, time, address, sectors.
pub(crate) const MAX_RECORD_BYTES: usize = 1 + 1 + 10 + 10 + 5;
/// In a header: not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;
/// In a tag: forced unit access; as many sectors as the request before.
pub(crate) const TAG_FUA: u8 = 1 << 3;
/// See [`TAG_FUA`].
pub(crate) const TAG_SAME_SECTORS: u8 = 1 << 7;
/// In a tag: where the class begins.
pub(crate) const TAG_CLASS_SHIFT: u32 = 4;

/// By tag. The last stands for all zone management: which it is follows as a byte, its place in
/// [`ZONE_OPS`].
pub(crate) const OPS: [Op; 8] = [
    Op::Read,
    Op::Write,
    Op::Flush,
    Op::Trim,
    Op::WriteZeroes,
    Op::WritePrepare,
    Op::ZoneAppend,
    MANAGEMENT,
];
pub(crate) const MANAGEMENT: Op = Op::Zone(ZoneAction::Reset);
/// In a tag's class: it has a name, whose number follows as a byte.
pub(crate) const NAMED: u8 = Class::KNOWN.len() as u8;
/// Longest block of names: each with its length before it.
const MAX_NAMES_BYTES: usize = ClassNames::MOST * (1 + ClassNames::MOST_BYTES);

const DAMAGED: ErrorKind = ErrorKind::Corrupt("a block is inconsistent");

/// A header's description of the whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Requests in the file.
    pub requests: u64,
    /// First sector beyond the highest that a request touches.
    pub end_sector: u64,
}

#[derive(Default)]
pub(crate) struct Compact {
    headed: bool,
    declared: Option<Declared>,
    requests: u64,
    end_sector: u64,
    last: Time,
    version: u16,
    /// The classes that the file names, by their numbers in it.
    names: Vec<Class>,
}

impl BinaryParser for Compact {
    const IS_SORTED: bool = true;

    fn sniff(head: &[u8]) -> Result<bool, ErrorKind> {
        Ok(head.starts_with(MAGIC))
    }

    fn declared(&self) -> Option<Declared> {
        self.declared
    }

    /// The header, if it was not read yet.
    fn header(&mut self, input: &mut Input) -> Result<(), ErrorKind> {
        if self.headed {
            return Ok(());
        }
        if !input.hold(HEADER_BYTES)? {
            return Err(ErrorKind::Truncated("its header"));
        }
        let header = input.window();
        if !header.starts_with(MAGIC) {
            return Err(ErrorKind::Header { want: "that of a compact trace" });
        }
        self.version = u16::from_le_bytes([header[8], header[9]]);
        if !matches!(self.version, UNNAMED_VERSION | VERSION) {
            return Err(ErrorKind::Unsupported {
                what: "a compact trace of a version that isn't known",
                remedy: "Convert it with the release that wrote it",
            });
        }
        let fixed = usize::from(u16::from_le_bytes([header[10], header[11]])) == HEADER_BYTES
            && u32_at(header, 12) == 0
            && u32_at(header, 32) == 0;
        if !fixed || crc32fast::hash(&header[..36]) != u32_at(header, 36) {
            return Err(ErrorKind::Corrupt("its header's checksum is wrong"));
        }
        let (requests, end_sector) = (u64_at(header, 16), u64_at(header, 24));
        if requests != UNKNOWN {
            self.declared = Some(Declared { requests, end_sector });
        }
        input.consume(HEADER_BYTES);
        self.headed = true;
        Ok(())
    }

    /// A block; false after the end block.
    fn piece(
        &mut self,
        input: &mut Input,
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<bool, ErrorKind> {
        self.header(input)?;
        if !input.hold(BLOCK_HEADER_BYTES)? {
            return Err(ErrorKind::Truncated("a block, or before its end block"));
        }
        let header = input.window();
        let (bytes, records) = (u32_at(header, 0) as usize, u32_at(header, 4) as usize);
        let (first, crc) = (u64_at(header, 8), u32_at(header, 16));
        let is_names = self.version == VERSION && records == 0 && bytes > 0;
        let most = if is_names { MAX_NAMES_BYTES } else { records * MAX_RECORD_BYTES };
        if records > BLOCK_RECORDS || bytes > most || bytes < records {
            return Err(DAMAGED);
        }
        if !input.hold(BLOCK_HEADER_BYTES + bytes)? {
            return Err(ErrorKind::Truncated("a block"));
        }
        let (header, rest) = input.window().split_at(BLOCK_HEADER_BYTES);
        let payload = &rest[..bytes];
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..16]);
        hasher.update(payload);
        if hasher.finalize() != crc {
            return Err(ErrorKind::Corrupt("a block's checksum is wrong"));
        }
        if is_names {
            self.name(payload, first, context)?;
            input.consume(BLOCK_HEADER_BYTES + bytes);
            return Ok(true);
        }
        if records == 0 {
            input.consume(BLOCK_HEADER_BYTES);
            self.end(first, input)?;
            return Ok(false);
        }
        let base = Time::from_ns(first);
        if base < self.last {
            return Err(DAMAGED);
        }
        self.requests += records as u64;
        let block = Block { payload, records, base, names: &self.names };
        self.last = decode(block, &mut self.end_sector, context, out)?;
        input.consume(BLOCK_HEADER_BYTES + bytes);
        Ok(true)
    }
}

impl Compact {
    /// Takes a block of names, the first of them with number `first`.
    fn name(
        &mut self,
        mut payload: &[u8],
        first: u64,
        context: &mut Context,
    ) -> Result<(), ErrorKind> {
        if first != self.names.len() as u64 {
            return Err(DAMAGED);
        }
        while let Some((&length, rest)) = payload.split_first() {
            let (name, rest) = rest.split_at_checked(usize::from(length)).ok_or(DAMAGED)?;
            let class = match context.classes.class(name) {
                Err(ErrorKind::Field { .. }) => return Err(DAMAGED),
                other => other?,
            };
            // A known class has a tag of its own, and a name one number.
            if class.known_name().is_some() || self.names.contains(&class) {
                return Err(DAMAGED);
            }
            self.names.push(class);
            payload = rest;
        }
        Ok(())
    }

    fn end(&self, requests: u64, input: &mut Input) -> Result<(), ErrorKind> {
        let found = Declared { requests: self.requests, end_sector: self.end_sector };
        if requests != self.requests || self.declared.is_some_and(|declared| declared != found) {
            return Err(ErrorKind::Corrupt("its content differs from its header"));
        }
        if input.hold(1)? {
            return Err(ErrorKind::Corrupt("something follows its end block"));
        }
        Ok(())
    }
}

/// A block of requests.
#[derive(Clone, Copy)]
struct Block<'a> {
    payload: &'a [u8],
    records: usize,
    base: Time,
    names: &'a [Class],
}

/// Decodes a block's records and returns the time of the last.
fn decode(
    block: Block<'_>,
    end_sector: &mut u64,
    context: &mut Context,
    out: &mut Vec<Request>,
) -> Result<Time, ErrorKind> {
    let Block { payload, records, base, names } = block;
    out.reserve(records);
    let mut bytes = payload;
    let mut ns = base.as_ns();
    // Where the request before ended, and how long it was.
    let (mut end, mut sectors) = (0u64, 0u32);
    for _ in 0..records {
        let (&tag, rest) = bytes.split_first().ok_or(DAMAGED)?;
        bytes = rest;
        let op = *OPS.get(usize::from(tag & 7)).ok_or(DAMAGED)?;
        let class = tag >> TAG_CLASS_SHIFT & 7;
        let class = if class == NAMED {
            let (&number, rest) = bytes.split_first().ok_or(DAMAGED)?;
            bytes = rest;
            *names.get(usize::from(number)).ok_or(DAMAGED)?
        } else {
            *Class::KNOWN.get(usize::from(class)).ok_or(DAMAGED)?
        };
        ns = ns.checked_add(varint(&mut bytes)?).ok_or(DAMAGED)?;
        let mut request = Request {
            at: Time::from_ns(ns),
            op,
            lba: Lba(0),
            sectors: 0,
            fua: tag & TAG_FUA != 0,
            class,
        };
        if op == Op::Flush && request.fua {
            request.lba = Lba(end.wrapping_add_signed(unzigzag(varint(&mut bytes)?)));
            request.sectors = u32::try_from(varint(&mut bytes)?).map_err(|_| DAMAGED)?;
            if request.sectors == 0 {
                return Err(DAMAGED);
            }
            context.emit_sync(out, 0, request)?;
            continue;
        }
        if op != Op::Flush {
            let lba = end.wrapping_add_signed(unzigzag(varint(&mut bytes)?));
            if op == MANAGEMENT {
                let (&which, rest) = bytes.split_first().ok_or(DAMAGED)?;
                bytes = rest;
                request.op = ZONE_OPS.get(usize::from(which)).ok_or(DAMAGED)?.1;
                end = lba;
            } else {
                if tag & TAG_SAME_SECTORS == 0 {
                    sectors = u32::try_from(varint(&mut bytes)?).map_err(|_| DAMAGED)?;
                }
                if sectors == 0 {
                    return Err(DAMAGED);
                }
                end = lba.checked_add(u64::from(sectors)).ok_or(DAMAGED)?;
                request.sectors = sectors;
            }
            *end_sector = end.max(*end_sector);
            request.lba = Lba(lba);
        }
        context.emit(out, 0, request)?;
    }
    if bytes.is_empty() { Ok(Time::from_ns(ns)) } else { Err(DAMAGED) }
}

/// A LEB128 number: 7 bits a byte, the lowest first, the top bit set on all but the last.
#[inline]
fn varint(bytes: &mut &[u8]) -> Result<u64, ErrorKind> {
    if let Some(&[first, ..]) = bytes.first_chunk::<1>()
        && first < 0x80
    {
        *bytes = &bytes[1..];
        return Ok(u64::from(first));
    }
    if let Some(&word) = bytes.first_chunk::<8>() {
        let word = u64::from_le_bytes(word);
        let stops = !word & 0x8080_8080_8080_8080;
        if stops != 0 {
            // Keep the bytes up to the first without the top bit, then squeeze those bits out.
            let keep = stops ^ (stops - 1);
            *bytes = &bytes[(stops.trailing_zeros() as usize >> 3) + 1..];
            return Ok(squeeze(word & keep & 0x7f7f_7f7f_7f7f_7f7f));
        }
    }
    long_varint(bytes)
}

/// Joins eight groups of seven bits, each in a byte of its own.
#[inline]
const fn squeeze(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let quads = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (quads & 0x0fff_ffff) | (quads & 0x0fff_ffff_0000_0000) >> 4
}

#[cold]
fn long_varint(bytes: &mut &[u8]) -> Result<u64, ErrorKind> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(DAMAGED)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(DAMAGED);
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DAMAGED)
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write::compact::push_varint;

    #[test]
    fn varints_are_read_as_they_are_written() {
        let mut values = vec![0, u64::MAX];
        for bit in 0..64 {
            values.extend([1 << bit, (1 << bit) - 1, (1 << bit) + 1]);
        }
        for value in values {
            for padding in [0, 12] {
                let mut bytes = Vec::new();
                push_varint(&mut bytes, value);
                bytes.extend(std::iter::repeat_n(0xff, padding));
                let mut rest = &bytes[..];
                assert_eq!(varint(&mut rest).unwrap(), value);
                assert_eq!(rest.len(), padding);
            }
        }
        assert!(varint(&mut &[0x80; 4][..]).is_err());
        assert!(varint(&mut &[0xff; 16][..]).is_err());
    }
}

//! The format of recordings (docs/image.md has it as a table).
//!
//! A head of 16 bytes, then frames. A frame is its length, the checksum of its bytes, the length of what
//! they unpack to (all u32), and a Zstandard frame. Unpacked, it is a row of records, each a kind (u8) and
//! its fields. All numbers are little-endian.

use leyden_device::{Hint, Lba};
use leyden_sim::{Capacitance, Time};
use serde::{Deserialize, Serialize};

use crate::ImageConfig;
use crate::asked::{WriteFlags, ZoneAsk};
use crate::content::units_of;
use crate::layout::{seal, unseal};

/// Bumped with every change of the format. Version 1 has no records of zones, and of no flag but force unit access.
pub const FORMAT_VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"LEYDREC\0";
/// Magic, version, checksum.
pub(super) const HEAD_BYTES: usize = 16;
/// A mark is no longer than this.
pub const MARK_MOST: usize = 64 << 10;

/// A recording's description of its drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The drive.
    pub config: ImageConfig,
    /// Another capacitance than the configuration's, in nanofarads.
    pub capacitance_nf: Option<u64>,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Units that the state at rest may point to: their numbers are below this one.
    pub base_units: u32,
}

/// An event of a drive, from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A read of so many sectors.
    Read(Lba, u32),
    /// A write: where, how many sectors, its flags, and for each mapping unit that it touches the number of its bytes.
    Write(Lba, u32, WriteFlags, Vec<u32>),
    /// An append to the zone that begins there.
    Append(Lba, u32, WriteFlags, Vec<u32>),
    /// Zone Management Send.
    Zone(ZoneAsk),
    /// A report of so many zones at most, from the one of this block on.
    ZoneReport(Lba, u32),
    /// A flush.
    Flush,
    /// A trim.
    Trim(Lba, u32),
    /// An announcement of writes.
    WritePrepare(Vec<Hint>),
    /// Zeroes: where, how many sectors, and whether with force unit access.
    WriteZeroes(Lba, u32, bool),
    /// The power failed.
    Cut,
    /// The power returned; with another bank, if one is named.
    Restore(Option<Capacitance>),
    /// The host's own note, in order with its commands: what it has been promised by now.
    Mark(Vec<u8>),
    /// The drive's fingerprint when it had come to this time.
    Check(u64),
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    /// JSON of [`Head`]; the first record.
    Head(Vec<u8>),
    /// A piece of the drive's state at rest.
    Base(Vec<u8>),
    /// The next bytes: of one mapping unit.
    Content(Vec<u8>),
    /// The unit of this number at rest has these bytes.
    BaseUnit(u32, u32),
    /// Something happened.
    Step(Time, Step),
    /// Nothing follows: the drive was closed.
    End,
}

pub(super) fn head() -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(FORMAT_VERSION.to_le_bytes());
    seal(&mut head);
    head
}

/// The format version of a recording; `None` if it is none.
pub(super) fn version_of(head: &[u8; HEAD_BYTES]) -> Option<u32> {
    let version = unseal(head)?.strip_prefix(MAGIC)?;
    Some(u32::from_le_bytes(version.try_into().ok()?))
}

impl Record {
    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        let with_bytes = |to: &mut Vec<u8>, kind: u8, bytes: &[u8]| {
            to.push(kind);
            to.extend((bytes.len() as u32).to_le_bytes());
            to.extend(bytes);
        };
        match self {
            Self::Head(json) => with_bytes(to, 1, json),
            Self::Base(piece) => with_bytes(to, 2, piece),
            Self::Content(bytes) => with_bytes(to, 3, bytes),
            Self::BaseUnit(unit, content) => {
                to.push(4);
                to.extend(unit.to_le_bytes());
                to.extend(content.to_le_bytes());
            }
            Self::Step(time, step) => step.encode(*time, to),
            Self::End => to.push(5),
        }
    }

    /// The record that begins `bytes`, which it is taken from; `None` if none does.
    pub(super) fn decode(bytes: &mut &[u8], unit_bytes: u32) -> Option<Self> {
        let kind = number::<1>(bytes)? as u8;
        Some(match kind {
            1 => Self::Head(with_length(bytes)?.to_vec()),
            2 => Self::Base(with_length(bytes)?.to_vec()),
            3 => Self::Content(with_length(bytes)?.to_vec()),
            4 => Self::BaseUnit(number::<4>(bytes)? as u32, number::<4>(bytes)? as u32),
            5 => Self::End,
            _ => {
                let time = Time::from_ns(number::<8>(bytes)?);
                Self::Step(time, Step::decode(kind, bytes, unit_bytes)?)
            }
        })
    }
}

impl Step {
    fn encode(&self, time: Time, to: &mut Vec<u8>) {
        let mut begin = |kind: u8| {
            to.push(kind);
            to.extend(time.as_ns().to_le_bytes());
        };
        let range = |to: &mut Vec<u8>, lba: Lba, sectors: u32| {
            to.extend(lba.0.to_le_bytes());
            to.extend(sectors.to_le_bytes());
        };
        match self {
            Self::Read(lba, sectors) => {
                begin(10);
                range(to, *lba, *sectors);
            }
            Self::Write(lba, sectors, flags, contents) => {
                begin(match flags {
                    WriteFlags { fua: false, plp: false } => 11,
                    WriteFlags { fua: true, plp: false } => 12,
                    _ => 21,
                });
                if flags.plp {
                    to.push(flags.bits());
                }
                range(to, *lba, *sectors);
                to.extend(contents.iter().flat_map(|content| content.to_le_bytes()));
            }
            Self::Append(lba, sectors, flags, contents) => {
                begin(22);
                to.push(flags.bits());
                range(to, *lba, *sectors);
                to.extend(contents.iter().flat_map(|content| content.to_le_bytes()));
            }
            Self::Zone(ask) => {
                begin(23);
                to.extend([ask.code(), ask.bits()]);
                to.extend(ask.lba.0.to_le_bytes());
            }
            Self::ZoneReport(lba, most) => {
                begin(24);
                range(to, *lba, *most);
            }
            Self::Flush => begin(13),
            Self::Trim(lba, sectors) => {
                begin(14);
                range(to, *lba, *sectors);
            }
            Self::WritePrepare(ranges) => {
                begin(25);
                to.extend((ranges.len() as u16).to_le_bytes());
                for (first, units) in ranges.iter().map(|hint| hint.dwords()) {
                    to.extend(first.to_le_bytes());
                    to.push(units as u8);
                }
            }
            Self::WriteZeroes(lba, sectors, fua) => {
                begin(if *fua { 16 } else { 15 });
                range(to, *lba, *sectors);
            }
            Self::Cut => begin(17),
            Self::Restore(bank) => {
                begin(18);
                to.extend(bank.map_or(0, Capacitance::as_nf).to_le_bytes());
            }
            Self::Mark(text) => {
                begin(19);
                to.extend((text.len() as u32).to_le_bytes());
                to.extend(text);
            }
            Self::Check(digest) => {
                begin(20);
                to.extend(digest.to_le_bytes());
            }
        }
    }

    fn decode(kind: u8, bytes: &mut &[u8], unit_bytes: u32) -> Option<Self> {
        let range =
            |bytes: &mut &[u8]| Some((Lba(number::<8>(bytes)?), number::<4>(bytes)? as u32));
        Some(match kind {
            10 => {
                let (lba, sectors) = range(bytes)?;
                Self::Read(lba, sectors)
            }
            11 | 12 | 21 | 22 => {
                let flags = match kind {
                    11 | 12 => WriteFlags::fua(kind == 12),
                    _ => WriteFlags::from_bits(number::<1>(bytes)? as u8)?,
                };
                let (lba, sectors) = range(bytes)?;
                let count = usize::try_from(units_of(lba, sectors, unit_bytes)).ok()?;
                let (contents, rest) = bytes.split_at_checked(count.checked_mul(4)?)?;
                *bytes = rest;
                let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
                let contents = contents.chunks_exact(4).map(number).collect();
                match kind {
                    22 => Self::Append(lba, sectors, flags, contents),
                    _ => Self::Write(lba, sectors, flags, contents),
                }
            }
            23 => {
                let (code, bits) = (number::<1>(bytes)? as u8, number::<1>(bytes)? as u8);
                Self::Zone(ZoneAsk::from_code(code, Lba(number::<8>(bytes)?), bits)?)
            }
            24 => {
                let (lba, most) = range(bytes)?;
                Self::ZoneReport(lba, most)
            }
            13 => Self::Flush,
            14 => {
                let (lba, sectors) = range(bytes)?;
                Self::Trim(lba, sectors)
            }
            15 | 16 => {
                let (lba, sectors) = range(bytes)?;
                Self::WriteZeroes(lba, sectors, kind == 16)
            }
            25 => {
                let count = number::<2>(bytes)?;
                let mut hint = || {
                    let first = number::<4>(bytes)? as u32;
                    Hint::from_dwords(first, number::<1>(bytes)? as u32)
                };
                Self::WritePrepare((0..count).map(|_| hint()).collect::<Option<_>>()?)
            }
            17 => Self::Cut,
            18 => {
                let nf = number::<8>(bytes)?;
                Self::Restore((nf > 0).then(|| Capacitance::from_nf(nf)))
            }
            19 => Self::Mark(with_length(bytes)?.to_vec()),
            20 => Self::Check(number::<8>(bytes)?),
            _ => return None,
        })
    }
}

/// A number of `N` bytes, at most 8.
fn number<const N: usize>(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_at_checked(N)?;
    *bytes = rest;
    let mut number = [0; 8];
    number[..N].copy_from_slice(first);
    Some(u64::from_le_bytes(number))
}

fn with_length<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number::<4>(bytes)? as usize;
    let (first, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps() -> impl Strategy<Value = Step> {
        let lba = || any::<u64>().prop_map(|lba| Lba(lba >> 1));
        prop_oneof![
            (lba(), any::<u32>()).prop_map(|(lba, sectors)| Step::Read(lba, sectors)),
            (lba(), 0_u32..200, 0_u8..4, any::<u32>(), any::<bool>()).prop_map(
                |(lba, sectors, flags, first, is_append)| {
                    let count = units_of(lba, sectors, 4_096) as u32;
                    let contents = (0..count).map(|at| first.wrapping_add(at)).collect();
                    let flags = WriteFlags::from_bits(flags).unwrap();
                    if is_append {
                        Step::Append(lba, sectors, flags, contents)
                    } else {
                        Step::Write(lba, sectors, flags, contents)
                    }
                }
            ),
            crate::asked::tests::zone_asks().prop_map(Step::Zone),
            (lba(), any::<u32>()).prop_map(|(lba, most)| Step::ZoneReport(lba, most)),
            Just(Step::Flush),
            (lba(), any::<u32>()).prop_map(|(lba, sectors)| Step::Trim(lba, sectors)),
            (lba(), any::<u32>(), any::<bool>())
                .prop_map(|(lba, sectors, fua)| Step::WriteZeroes(lba, sectors, fua)),
            crate::asked::tests::hints().prop_map(Step::WritePrepare),
            Just(Step::Cut),
            Just(Step::Restore(None)),
            (1..u64::MAX).prop_map(|nf| Step::Restore(Some(Capacitance::from_nf(nf)))),
            any::<Vec<u8>>().prop_map(Step::Mark),
            any::<u64>().prop_map(Step::Check),
        ]
    }

    proptest! {
        #[test]
        fn records_read_back_one_after_the_other(
            all in prop::collection::vec((any::<u64>(), steps()), 1..20), content: Vec<u8>,
        ) {
            let mut records: Vec<_> =
                all.into_iter().map(|(ns, step)| Record::Step(Time::from_ns(ns), step)).collect();
            records.extend([Record::Content(content), Record::BaseUnit(1, 2), Record::End]);
            let mut bytes = Vec::new();
            for record in &records {
                record.encode(&mut bytes);
            }
            let mut rest = &bytes[..];
            for record in records {
                prop_assert_eq!(Record::decode(&mut rest, 4_096), Some(record));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_a_record_or_none(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while Record::decode(&mut rest, 512).is_some() {}
        }
    }
}

//! Commands of I/O queues: what their entries say, in sectors.
//!
//! **What lives here**: the NVM and ZNS command sets as values. **What doesn't**: what a command does; only what cannot be
//! said to a drive at all (a range beyond the namespace, a length that no queue carries) is refused here.

use leyden_device::{
    HINT_UNIT_BYTES, Hint, Lba, MOST_RANGES, SECTOR_BYTES, ZoneAction, ZoneFilter, ZoneState,
};
use zerocopy::FromBytes;

use crate::namespace::{COPY_RANGES_MOST, Namespace, TRANSFER_MOST};
use crate::status::Status;
use crate::wire::{CopyRange, DsmRange, Sqe, ZONE_BYTES};

/// The host's data that a command moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// Nothing.
    None,
    /// So many bytes to the host.
    ToHost(usize),
    /// So many bytes from the host.
    FromHost(usize),
    /// So many bytes from the host, or more, which mean nothing.
    AtLeast(usize),
}

/// A command of an I/O queue. Places and lengths are in sectors of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Io {
    /// 00h; of all namespaces, or of its own.
    Flush {
        /// Its namespace is FFFFFFFFh.
        all: bool,
    },
    /// 02h.
    Read(Lba, u32),
    /// 01h.
    Write {
        /// Where.
        lba: Lba,
        /// How much.
        sectors: u32,
        /// Force unit access.
        fua: bool,
        /// Selective-PLP's bit (section 4.2): CDW3, bit 0.
        plp: bool,
    },
    /// 08h.
    WriteZeroes {
        /// Where.
        lba: Lba,
        /// How much.
        sectors: u32,
        /// Force unit access.
        fua: bool,
    },
    /// 05h.
    Compare(Lba, u32),
    /// 0Ch.
    Verify(Lba, u32),
    /// 09h: so many ranges follow, which are to be deallocated, or whose own attributes are advice.
    Dsm {
        /// Ranges.
        count: usize,
        /// The attribute "deallocate".
        deallocate: bool,
    },
    /// 19h: so many source ranges follow, whose blocks are written one after the other.
    Copy {
        /// Source ranges.
        count: usize,
        /// Where they go.
        lba: Lba,
        /// Force unit access.
        fua: bool,
    },
    /// 7Dh.
    Append {
        /// The zone's first block.
        lba: Lba,
        /// How much.
        sectors: u32,
        /// Force unit access.
        fua: bool,
        /// As of a write.
        plp: bool,
    },
    /// 79h.
    Zone(Management),
    /// 7Ah.
    Report(Report),
}

/// Zone Management Send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Management {
    /// The action.
    pub action: ZoneAction,
    /// The zone's first block; of a flush of a Zone Random Write Area, the last block to commit.
    pub lba: Lba,
    /// Select all.
    pub all: bool,
    /// Open with a Zone Random Write Area.
    pub zrwa: bool,
}

/// Zone Management Receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// A block of the first zone.
    pub lba: Lba,
    /// Bytes that the host takes.
    pub bytes: usize,
    /// Which zones.
    pub filter: ZoneFilter,
    /// The count is of the zones returned, and not of all that match.
    pub partial: bool,
}

/// Ranges of Dataset Management, in sectors.
pub type Ranges = Vec<(Lba, u32)>;

/// Opcodes of the NVM command set that a namespace of it takes.
pub(crate) const NVM_OPCODES: [u8; 8] = [FLUSH, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c, COPY];
/// Those that a zoned namespace takes beside.
pub(crate) const ZNS_OPCODES: [u8; 3] = [0x79, 0x7a, 0x7d];

const FLUSH: u8 = 0x00;
const COPY: u8 = 0x19;
/// The format of the source ranges of a copy; only the first is known.
const COPY_FORMAT: u32 = 0xf << 8;
const DIRECTIVE: u32 = 0xf << 20;
const FUA: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 2;
/// Of a range's attributes (NVM Command Set 1.0, figure 41).
const WRITE_PREPARE: u32 = 1 << 10;
const SELECT_ALL: u32 = 1 << 8;
const WITH_AREA: u32 = 1 << 9;
const PARTIAL: u32 = 1 << 16;

impl Namespace {
    /// The command in `sqe`, which is for this namespace.
    ///
    /// # Errors
    /// The status that the command ends with.
    pub fn parse(&self, sqe: &Sqe) -> Result<Io, Status> {
        let opcode = sqe.opcode;
        let zoned = self.zones.is_some() && ZNS_OPCODES.contains(&opcode);
        if !zoned && !NVM_OPCODES.contains(&opcode) {
            return Err(Status::INVALID_OPCODE);
        }
        let (cdw12, cdw13) = (sqe.cdw12.get(), sqe.cdw13.get());
        let (fua, plp) = (cdw12 & FUA != 0, sqe.cdw3.get() & 1 != 0);
        match opcode {
            FLUSH => Ok(Io::Flush { all: false }),
            0x09 => Ok(Io::Dsm {
                count: (sqe.cdw10.get() & 0xff) as usize + 1,
                deallocate: sqe.cdw11.get() & DEALLOCATE != 0,
            }),
            0x79 => self.management(sqe, cdw13).map(Io::Zone),
            0x7a => self.receive(sqe, cdw13).map(Io::Report),
            _ if cdw12 & DIRECTIVE != 0 => Err(Status::INVALID_FIELD),
            COPY if cdw12 & COPY_FORMAT != 0 => Err(Status::INVALID_FIELD),
            COPY => {
                let count = (cdw12 & 0xff) as usize + 1;
                if count > COPY_RANGES_MOST {
                    return Err(Status::SIZE_LIMIT);
                }
                Ok(Io::Copy { count, lba: self.sector(sqe.start())?, fua })
            }
            _ => {
                let (lba, sectors) = self.range(sqe)?;
                Ok(match opcode {
                    0x01 => Io::Write { lba, sectors, fua, plp },
                    0x02 => Io::Read(lba, sectors),
                    0x05 => Io::Compare(lba, sectors),
                    0x08 => Io::WriteZeroes { lba, sectors, fua },
                    0x0c => Io::Verify(lba, sectors),
                    _ => Io::Append { lba, sectors, fua, plp },
                })
            }
        }
    }

    /// The sectors of a command with a first block and a number of blocks.
    fn range(&self, sqe: &Sqe) -> Result<(Lba, u32), Status> {
        let (start, blocks) = (sqe.start(), u64::from(sqe.cdw12.get() & 0xffff) + 1);
        if start.checked_add(blocks).is_none_or(|end| end > self.blocks) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        let bytes = blocks * u64::from(self.block_bytes);
        // Zeroes are not transferred: their length is limited by the field alone (WZSL 0).
        if sqe.opcode != 0x08 && bytes > TRANSFER_MOST as u64 {
            return Err(Status::INVALID_FIELD);
        }
        Ok((Lba(start * self.block_sectors()), (bytes / SECTOR_BYTES) as u32))
    }

    fn management(&self, sqe: &Sqe, cdw13: u32) -> Result<Management, Status> {
        let code = (cdw13 & 0xff) as u8;
        let action = ZoneAction::SENT.iter().find(|(_, sent)| *sent == code).map(|it| it.0);
        // No namespace here has zone descriptor extensions (ZDES 0).
        let action = action.filter(|&it| it != ZoneAction::SetExtension);
        let action = action.ok_or(Status::INVALID_FIELD)?;
        let all = cdw13 & SELECT_ALL != 0;
        let lba = if all { Lba(0) } else { self.sector(sqe.start())? };
        Ok(Management { action, lba, all, zrwa: cdw13 & WITH_AREA != 0 })
    }

    fn receive(&self, sqe: &Sqe, cdw13: u32) -> Result<Report, Status> {
        let bytes = (sqe.cdw12.get() as usize + 1) * 4;
        let is_plain = cdw13 as u8 == 0; // extended ones tell of extensions
        if !is_plain || !(ZONE_BYTES..=TRANSFER_MOST).contains(&bytes) {
            return Err(Status::INVALID_FIELD);
        }
        let filter = match cdw13 >> 8 & 0xff {
            0 => ZoneFilter::All,
            1 => ZoneFilter::In(ZoneState::Empty),
            2 => ZoneFilter::In(ZoneState::ImplicitlyOpen),
            3 => ZoneFilter::In(ZoneState::ExplicitlyOpen),
            4 => ZoneFilter::In(ZoneState::Closed),
            5 => ZoneFilter::In(ZoneState::Full),
            6 => ZoneFilter::In(ZoneState::ReadOnly),
            7 => ZoneFilter::In(ZoneState::Offline),
            _ => return Err(Status::INVALID_FIELD),
        };
        let lba = self.sector(sqe.start())?;
        Ok(Report { lba, bytes, filter, partial: cdw13 & PARTIAL != 0 })
    }

    fn sector(&self, block: u64) -> Result<Lba, Status> {
        if block >= self.blocks {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        Ok(Lba(block * self.block_sectors()))
    }

    /// The ranges of Dataset Management that are not empty.
    ///
    /// # Errors
    /// If one is not all the namespace's, or there are fewer than `count`.
    pub fn ranges(&self, data: &[u8], count: usize) -> Result<Ranges, Status> {
        let (ranges, _) = <[DsmRange]>::ref_from_prefix_with_elems(data, count)
            .map_err(|_| Status::SGL_LENGTH)?;
        let each = ranges.iter().map(|it| (it.start.get(), u64::from(it.blocks.get())));
        self.sectors_of(each)
    }

    /// The ranges of Dataset Management that the host says it will write before long (attribute "write prepare"): zombie hints
    /// of a command of their own (Zombie Chasing, section 3.3). What is more than the drive takes at once, 255 MiB, is left
    /// out: it is advice, and a few ranges could name a drive's every unit hundreds of times.
    ///
    /// # Errors
    /// As [`Namespace::ranges`].
    pub fn announced(&self, data: &[u8], count: usize) -> Result<Vec<Hint>, Status> {
        self.ranges(data, count)?; // each has to be right, whatever it says
        let (ranges, _) = <[DsmRange]>::ref_from_prefix_with_elems(data, count)
            .map_err(|_| Status::SGL_LENGTH)?;
        // A unit of hints that the namespace ends in cannot be named.
        let units = self.blocks * u64::from(self.block_bytes) / HINT_UNIT_BYTES;
        let end = units * HINT_UNIT_BYTES / u64::from(self.block_bytes);
        let announced = ranges.iter().filter(|it| it.attributes.get() & WRITE_PREPARE != 0);
        let each = announced.map(|it| {
            let start = it.start.get().min(end);
            (start, u64::from(it.blocks.get()).min(end - start))
        });
        let sectors = self.sectors_of(each)?.into_iter();
        let hints = sectors.flat_map(|(lba, sectors)| Hint::covering(lba, sectors));
        Ok(hints.take(MOST_RANGES).collect())
    }

    /// The source ranges of a copy to `to`.
    ///
    /// # Errors
    /// If one, or the whole at its place, is not all the namespace's; if it is more than a copy may have.
    pub fn sources(&self, data: &[u8], count: usize, to: Lba) -> Result<Ranges, Status> {
        let (ranges, _) = <[CopyRange]>::ref_from_prefix_with_elems(data, count)
            .map_err(|_| Status::SGL_LENGTH)?;
        let each = ranges.iter().map(|it| (it.start.get(), u64::from(it.blocks.get()) + 1));
        let blocks: u64 = each.clone().map(|it| it.1).sum();
        if blocks > u64::from(self.copy_blocks()) {
            return Err(Status::SIZE_LIMIT);
        }
        if to.0 / self.block_sectors() + blocks > self.blocks {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        self.sectors_of(each)
    }

    fn sectors_of(&self, ranges: impl Iterator<Item = (u64, u64)>) -> Result<Ranges, Status> {
        // Of a range, what fits into a number of sectors.
        let most = u64::from(u32::MAX) / self.block_sectors();
        let mut sectors = Vec::new();
        for (mut start, mut blocks) in ranges {
            if start.checked_add(blocks).is_none_or(|end| end > self.blocks) {
                return Err(Status::LBA_OUT_OF_RANGE);
            }
            while blocks > 0 {
                let part = blocks.min(most);
                let lba = Lba(start * self.block_sectors());
                sectors.push((lba, (part * self.block_sectors()) as u32));
                (start, blocks) = (start + part, blocks - part);
            }
        }
        Ok(sectors)
    }
}

/// The namespace of a flush that is meant for all of them.
const ALL: u32 = u32::MAX;

impl Io {
    /// The command in an entry of an I/O queue, for one of these namespaces, which are numbered from 1.
    ///
    /// # Errors
    /// The status that the command ends with.
    pub fn parse(namespaces: &[Namespace], sqe: &Sqe) -> Result<Self, Status> {
        if sqe.opcode == FLUSH && sqe.nsid.get() == ALL {
            return Ok(Self::Flush { all: true });
        }
        Namespace::numbered(namespaces, sqe.nsid.get())?.parse(sqe)
    }

    /// The data that goes with it.
    pub const fn transfer(&self) -> Transfer {
        match *self {
            Self::Read(_, sectors) => Transfer::ToHost(bytes_of(sectors)),
            Self::Write { sectors, .. }
            | Self::Append { sectors, .. }
            | Self::Compare(_, sectors) => Transfer::FromHost(bytes_of(sectors)),
            // Linux sends a page, whatever the ranges are.
            Self::Dsm { count, .. } => Transfer::AtLeast(count * size_of::<DsmRange>()),
            Self::Copy { count, .. } => Transfer::AtLeast(count * size_of::<CopyRange>()),
            Self::Report(Report { bytes, .. }) => Transfer::ToHost(bytes),
            Self::Flush { .. } | Self::WriteZeroes { .. } | Self::Verify(..) | Self::Zone(_) => {
                Transfer::None
            }
        }
    }
}

impl Io {
    /// Bytes that it reads for itself: they pass through the server's memory.
    pub const fn passing_bytes(&self) -> usize {
        match *self {
            Self::Compare(_, sectors) | Self::Verify(_, sectors) => bytes_of(sectors),
            Self::Copy { .. } => TRANSFER_MOST,
            _ => 0,
        }
    }
}

const fn bytes_of(sectors: u32) -> usize {
    sectors as usize * SECTOR_BYTES as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{plain, zoned};

    fn sqe(opcode: u8, start: u64, cdw12: u32, cdw13: u32) -> Sqe {
        let (low, high) = ((start as u32).into(), ((start >> 32) as u32).into());
        let (cdw12, cdw13) = (cdw12.into(), cdw13.into());
        Sqe { opcode, cdw10: low, cdw11: high, cdw12, cdw13, ..Sqe::default() }
    }

    #[test]
    fn blocks_become_sectors() {
        let namespace = plain(4_096, 1_000);
        assert_eq!(namespace.parse(&sqe(2, 3, 1, 0)), Ok(Io::Read(Lba(24), 16)));
        let mut write = sqe(1, 0, 1 << 30, 0);
        write.cdw3 = 1.into();
        let io = Io::Write { lba: Lba(0), sectors: 8, fua: true, plp: true };
        assert_eq!(namespace.parse(&write), Ok(io));
        assert_eq!(io.transfer(), Transfer::FromHost(4_096));
        assert_eq!(plain(512, 8_000).parse(&sqe(2, 3, 1, 0)), Ok(Io::Read(Lba(3), 2)));
    }

    #[test]
    fn impossible_commands_are_refused_with_their_status() {
        let (plain, zoned) = (plain(4_096, 1_000), zoned());
        let cases = [
            (0x02, 999, 1, 0, Status::LBA_OUT_OF_RANGE),
            (0x02, u64::MAX, 0, 0, Status::LBA_OUT_OF_RANGE),
            (0x02, 0, 256, 0, Status::INVALID_FIELD), // more than MDTS
            (0x01, 0, 1 << 20, 0, Status::INVALID_FIELD), // a directive
            (0x04, 0, 0, 0, Status::INVALID_OPCODE),
            (0x19, 0, 1 << 8, 0, Status::INVALID_FIELD), // a format of source ranges
            (0x19, 0, 128, 0, Status::SIZE_LIMIT),
            (0x19, 1_000, 0, 0, Status::LBA_OUT_OF_RANGE),
            (0x7d, 0, 0, 0, Status::INVALID_OPCODE), // no zones here
            (0x79, 0, 0, 4, Status::INVALID_OPCODE),
        ];
        for (opcode, start, cdw12, cdw13, status) in cases {
            assert_eq!(plain.parse(&sqe(opcode, start, cdw12, cdw13)), Err(status), "{opcode:#x}");
        }
        let cases = [
            (0x79, 0, 0, 0x10, Status::INVALID_FIELD), // no extensions
            (0x79, 0, 0, 0x06, Status::INVALID_FIELD),
            (0x79, zoned.blocks, 0, 4, Status::LBA_OUT_OF_RANGE),
            (0x7a, 0, 14, 0, Status::INVALID_FIELD), // 60 bytes
            (0x7a, 0, 15, 1, Status::INVALID_FIELD), // extended
            (0x7a, 0, 15, 8 << 8, Status::INVALID_FIELD),
            (0x7a, zoned.blocks, 15, 0, Status::LBA_OUT_OF_RANGE),
            (0x7a, 0, u32::MAX, 0, Status::INVALID_FIELD),
        ];
        for (opcode, start, cdw12, cdw13, status) in cases {
            assert_eq!(zoned.parse(&sqe(opcode, start, cdw12, cdw13)), Err(status), "{opcode:#x}");
        }
        assert!(zoned.parse(&sqe(0x79, u64::MAX, 0, 0x104)).is_ok(), "select all has no zone");
    }

    #[test]
    fn announced_ranges_are_as_many_hints_as_the_drive_takes() {
        let range = |attributes: u32, start: u64, blocks: u32| {
            let mut bytes = attributes.to_le_bytes().to_vec();
            bytes.extend(blocks.to_le_bytes());
            bytes.extend(start.to_le_bytes());
            bytes
        };
        let hint = |first, units| Hint::from_dwords(first, units).unwrap();
        let namespace = plain(4_096, 1_000_000);
        let announced = |all: &[Vec<u8>]| namespace.announced(&all.concat(), all.len());
        let data = [range(1 << 10, 1, 2), range(0x3ff, 5, 1), range(1 << 10 | 3, 999_999, 1)];
        assert_eq!(announced(&data).unwrap(), [hint(1, 2), hint(999_999, 1)]);
        assert_eq!(announced(&[range(0, 5, 1)]).unwrap(), []);
        let wrong = [range(1 << 10, 1, 2), range(0, 999_999, 2)];
        assert_eq!(
            announced(&wrong),
            Err(Status::LBA_OUT_OF_RANGE),
            "not an announced one, and wrong"
        );
        let all = vec![range(1 << 10, 0, 1_000_000); 256];
        let large = announced(&all).unwrap();
        assert_eq!((large.len(), large[255]), (256, hint(255 * 255, 255)));
        // A drive of 512-byte blocks that ends within a unit of hints: that unit has no name.
        let odd = plain(512, 20);
        let data = [range(1 << 10, 3, 17), range(1 << 10, 16, 4)].concat();
        assert_eq!(odd.announced(&data, 2).unwrap(), [hint(0, 2)]);
    }

    #[test]
    fn ranges_are_all_the_namespaces_or_none_is_taken() {
        let namespace = plain(4_096, 1_000);
        let range = |start: u64, blocks: u32| {
            let mut bytes = vec![0; 4];
            bytes.extend(blocks.to_le_bytes());
            bytes.extend(start.to_le_bytes());
            bytes
        };
        let data = [range(1, 2), range(5, 0), range(999, 1)].concat();
        assert_eq!(namespace.ranges(&data, 3).unwrap(), [(Lba(8), 16), (Lba(7_992), 8)]);
        assert_eq!(namespace.ranges(&data, 4), Err(Status::SGL_LENGTH));
        assert_eq!(namespace.ranges(&range(999, 2), 1), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(namespace.ranges(&range(u64::MAX, 2), 1), Err(Status::LBA_OUT_OF_RANGE));
        let source = |start: u64, blocks: u16| {
            let mut bytes = vec![0; 32];
            bytes[8..16].copy_from_slice(&start.to_le_bytes());
            bytes[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
            bytes
        };
        let sources = |data: &[Vec<u8>], to| namespace.sources(&data.concat(), data.len(), to);
        let two = [source(3, 2), source(0, 1)];
        assert_eq!(sources(&two, Lba(8 * 997)).unwrap(), [(Lba(24), 16), (Lba(0), 8)]);
        assert_eq!(sources(&two, Lba(8 * 998)), Err(Status::LBA_OUT_OF_RANGE), "its target");
        assert_eq!(sources(&[source(999, 2)], Lba(0)), Err(Status::LBA_OUT_OF_RANGE));
        assert_eq!(sources(&[source(u64::MAX, 1)], Lba(0)), Err(Status::LBA_OUT_OF_RANGE));
        let (whole, more) = (source(0, 256), source(0, 1));
        assert!(sources(std::slice::from_ref(&whole), Lba(0)).is_ok());
        assert_eq!(sources(&[whole, more], Lba(0)), Err(Status::SIZE_LIMIT));
        assert_eq!(namespace.sources(&two.concat(), 3, Lba(0)), Err(Status::SGL_LENGTH));
        let large = plain(4_096, 1 << 40);
        let parts = large.ranges(&range(0, u32::MAX), 1).unwrap();
        let sectors: u64 = parts.iter().map(|it| u64::from(it.1)).sum();
        assert_eq!(sectors, u64::from(u32::MAX) * 8);
    }
}

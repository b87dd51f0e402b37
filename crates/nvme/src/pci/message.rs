//! Messages of vfio-user: what a client asks of a function, and the replies.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::VECTORS;
use super::function::Region;
use crate::wire::Page;

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Files that come along with a message at most.
pub const FILES_MOST: usize = 16;
/// No message that is understood is longer.
pub const MESSAGE_MOST: usize = 32 << 10;

const KIND: u32 = 0xf;
const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;
const REGIONS: u32 = 9;
const INTERRUPTS: u32 = 5;
const MSI_X: u32 = 2;
/// Flags of a change of interrupts: those that are triggered, by files or at once.
const WITH_FILES: u32 = 1 << 5 | 1 << 2;
const WITHOUT_DATA: u32 = 1 << 5 | 1;

/// The header of a message. Its size is that of all of the message.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    id: U16,
    command: U16,
    size: U32,
    flags: U32,
    error: U32,
}

/// Why a request is refused: an error number of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("error {0}")]
pub struct Refused(u32);

impl Refused {
    /// ENOENT.
    pub const NOT_FOUND: Self = Self(2);
    /// EEXIST.
    pub const EXISTS: Self = Self(17);
    /// EINVAL.
    pub const INVALID: Self = Self(22);
    /// ENOSPC.
    pub const FULL: Self = Self(28);
    /// EOPNOTSUPP.
    pub const UNSUPPORTED: Self = Self(95);
}

impl Header {
    /// The bytes that follow; `None` if this is no request, or one that is too long.
    pub fn follows(&self) -> Option<usize> {
        let size = self.size.get() as usize;
        let is_request = self.flags.get() & KIND == 0 && size <= MESSAGE_MOST;
        size.checked_sub(HEADER_BYTES).filter(|_| is_request)
    }

    /// The command.
    pub const fn command(&self) -> u16 {
        self.command.get()
    }

    /// The reply with this body; `None` if the client wants none.
    pub fn reply(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.answer(REPLY, 0, body)
    }

    /// The reply that refuses it.
    pub fn refuse(&self, why: Refused) -> Option<Vec<u8>> {
        self.answer(REPLY | ERROR, why.0, &[])
    }

    fn answer(&self, flags: u32, error: u32, body: &[u8]) -> Option<Vec<u8>> {
        if self.flags.get() & NO_REPLY != 0 {
            return None;
        }
        let size = ((HEADER_BYTES + body.len()) as u32).into();
        let mut bytes =
            Self { size, flags: flags.into(), error: error.into(), ..*self }.as_bytes().to_vec();
        bytes.extend(body);
        Some(bytes)
    }
}

/// A client's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Agrees on a version.
    Version,
    /// Gives memory: `bytes` at `address`, which lie in a file from `offset` on.
    Map {
        /// Where the function finds it.
        address: u64,
        /// How much.
        bytes: u64,
        /// Where it lies in the file that comes along.
        offset: u64,
        /// It may be read.
        reads: bool,
        /// It may be written.
        writes: bool,
    },
    /// Takes memory back.
    Unmap {
        /// Where.
        address: u64,
        /// How much.
        bytes: u64,
        /// Everything.
        all: bool,
    },
    /// Asks what there is.
    DeviceInfo,
    /// Asks about the region with this index.
    RegionInfo(u32),
    /// Asks about interrupts of this kind.
    IrqInfo(u32),
    /// Changes interrupts.
    SetIrqs(IrqChange),
    /// Reads.
    Read(Region, u64, usize),
    /// Writes.
    Write(Region, u64, &'a [u8]),
    /// Resets the function.
    Reset,
}

/// A change of interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IrqChange {
    /// The files that come along are those of the vectors from `start` on; without files they have none.
    Assign {
        /// The first vector.
        start: u16,
        /// How many.
        count: u16,
    },
    /// Fires these.
    Fire {
        /// The first vector.
        start: u16,
        /// How many.
        count: u16,
    },
    /// No vector has a file any more.
    Disable,
    /// Of another kind, of which there are none.
    Nothing,
}

/// Numbers of a body, in their order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> Result<u32, Refused> {
        let (field, rest) = U32::read_from_prefix(self.0).map_err(|_| Refused::INVALID)?;
        self.0 = rest;
        Ok(field.get())
    }
    fn u64(&mut self) -> Result<u64, Refused> {
        let (field, rest) = U64::read_from_prefix(self.0).map_err(|_| Refused::INVALID)?;
        self.0 = rest;
        Ok(field.get())
    }
}

impl<'a> Request<'a> {
    /// The request in a message with this header and body.
    ///
    /// # Errors
    /// If it is none that is known, or not a whole one.
    pub fn parse(header: &Header, body: &'a [u8]) -> Result<Self, Refused> {
        let mut fields = Fields(body);
        let argument = |fields: &mut Fields<'_>, least: u32| match fields.u32()? {
            size if size >= least => Ok(()),
            _ => Err(Refused::INVALID),
        };
        match header.command.get() {
            1 => match fields.u32()? & 0xffff {
                0 => Ok(Self::Version),
                _ => Err(Refused::INVALID),
            },
            2 => {
                argument(&mut fields, 32)?;
                let flags = fields.u32()?;
                let (offset, address, bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let ends = [address.checked_add(bytes), offset.checked_add(bytes)];
                if bytes == 0 || ends.contains(&None) || flags & !3 != 0 {
                    return Err(Refused::INVALID);
                }
                let (reads, writes) = (flags & 1 != 0, flags & 2 != 0);
                Ok(Self::Map { address, bytes, offset, reads, writes })
            }
            3 => {
                argument(&mut fields, 24)?;
                let all = match fields.u32()? {
                    0 => false,
                    0b100 => true,
                    _ => return Err(Refused::INVALID), // lists of dirty pages
                };
                let (address, bytes) = (fields.u64()?, fields.u64()?);
                let is_range = bytes > 0 && address.checked_add(bytes).is_some();
                if all || is_range {
                    Ok(Self::Unmap { address, bytes, all })
                } else {
                    Err(Refused::INVALID)
                }
            }
            4 => argument(&mut fields, 16).map(|()| Self::DeviceInfo),
            5 => {
                argument(&mut fields, 32)?;
                let (_flags, index) = (fields.u32()?, fields.u32()?);
                if index < REGIONS { Ok(Self::RegionInfo(index)) } else { Err(Refused::INVALID) }
            }
            7 => {
                argument(&mut fields, 16)?;
                let (_flags, index) = (fields.u32()?, fields.u32()?);
                if index < INTERRUPTS { Ok(Self::IrqInfo(index)) } else { Err(Refused::INVALID) }
            }
            8 => {
                argument(&mut fields, 20)?;
                let (flags, index) = (fields.u32()?, fields.u32()?);
                IrqChange::parse(flags, index, fields.u32()?, fields.u32()?).map(Self::SetIrqs)
            }
            9 => {
                let (region, at, count) = range(&mut fields)?;
                Ok(Self::Read(region, at, count))
            }
            10 => {
                let (region, at, count) = range(&mut fields)?;
                let data = fields.0.get(..count).ok_or(Refused::INVALID)?;
                Ok(Self::Write(region, at, data))
            }
            13 => Ok(Self::Reset),
            _ => Err(Refused::UNSUPPORTED),
        }
    }
}

/// A part of a region.
fn range(fields: &mut Fields<'_>) -> Result<(Region, u64, usize), Refused> {
    let (at, index, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
    let region = Region::of(index).ok_or(Refused::INVALID)?;
    let end = at.checked_add(count.into()).filter(|&end| end <= region.bytes());
    end.map(|_| (region, at, count as usize)).ok_or(Refused::INVALID)
}

impl IrqChange {
    fn parse(flags: u32, index: u32, start: u32, count: u32) -> Result<Self, Refused> {
        let end = start.checked_add(count).ok_or(Refused::INVALID)?;
        if index != MSI_X {
            let is_nothing = index < INTERRUPTS && count == 0;
            return if is_nothing { Ok(Self::Nothing) } else { Err(Refused::INVALID) };
        }
        if end > u32::from(VECTORS) {
            return Err(Refused::INVALID);
        }
        let (start, count) = (start as u16, count as u16);
        match flags {
            WITH_FILES if count > 0 => Ok(Self::Assign { start, count }),
            WITHOUT_DATA if count > 0 => Ok(Self::Fire { start, count }),
            WITHOUT_DATA => Ok(Self::Disable),
            _ => Err(Refused::INVALID), // vectors cannot be masked here
        }
    }
}

/// The device: a PCI function that can be reset.
pub fn device_info() -> Vec<u8> {
    let mut page = Page::new(16);
    page.u32(0, 16).u32(4, 0b11).u32(8, REGIONS).u32(12, INTERRUPTS);
    page.into_bytes()
}

/// The size of a region, and its uses.
pub fn region_info(index: u32) -> Vec<u8> {
    let bytes = Region::of(index).map_or(0, Region::bytes);
    let mut page = Page::new(32);
    page.u32(0, 32).u32(4, if bytes > 0 { 0b11 } else { 0 }).u32(8, index).u64(16, bytes);
    page.into_bytes()
}

/// The number of interrupts of a kind, and their uses.
pub fn irq_info(index: u32) -> Vec<u8> {
    let count = if index == MSI_X { u32::from(VECTORS) } else { 0 };
    let mut page = Page::new(16);
    page.u32(0, 16).u32(4, if count > 0 { 0b1001 } else { 0 }).u32(8, index).u32(12, count);
    page.into_bytes()
}

/// The reply to a client that proposes a version so long: it must not be longer.
pub fn version(proposal: usize) -> Vec<u8> {
    let mut version = vec![0; 4];
    let capabilities = format!("{{\"capabilities\":{{\"max_msg_fds\":{FILES_MOST}}}}}\0");
    if version.len() + capabilities.len() <= proposal {
        version.extend(capabilities.into_bytes());
    }
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u16, size: u32, flags: u32) -> Header {
        let (id, error) = (7.into(), 0.into());
        Header { id, command: command.into(), size: size.into(), flags: flags.into(), error }
    }

    fn parse(command: u16, body: &[u8]) -> Result<Request<'_>, Refused> {
        Request::parse(&header(command, 0, 0), body)
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn headers_say_how_much_follows_and_whether_a_reply_is_wanted() {
        assert_eq!(header(9, 16, 0).follows(), Some(0));
        assert_eq!(header(9, 15, 0).follows(), None);
        assert_eq!(header(9, 16, 1).follows(), None, "a reply, to nothing");
        assert_eq!(header(9, MESSAGE_MOST as u32 + 1, 0).follows(), None);
        assert_eq!(header(9, 16, 1 << 4).reply(&[1]), None);
        let reply = header(9, 16, 0).reply(&[1, 2]).unwrap();
        assert_eq!(reply, [7, 0, 9, 0, 18, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        let refused = header(9, 16, 0).refuse(Refused::INVALID).unwrap();
        assert_eq!(refused[4..], [16, 0, 0, 0, 0x21, 0, 0, 0, 22, 0, 0, 0]);
    }

    #[test]
    fn requests_of_qemu_are_understood() {
        assert_eq!(parse(1, b"\0\0\0\0{}\0"), Ok(Request::Version));
        let map = words(&[32, 3, 0x1000, 0, 0x2000, 0, 0x3000, 0]);
        let (address, bytes, offset) = (0x2000, 0x3000, 0x1000);
        let map_expected = Request::Map { address, bytes, offset, reads: true, writes: true };
        assert_eq!(parse(2, &map), Ok(map_expected));
        let unmap = words(&[24, 0, 0x2000, 0, 0x3000, 0]);
        assert_eq!(parse(3, &unmap), Ok(Request::Unmap { address, bytes, all: false }));
        let all = words(&[24, 4, 0, 0, 0, 0]);
        assert_eq!(parse(3, &all), Ok(Request::Unmap { address: 0, bytes: 0, all: true }));
        let irqs = |words_: [u32; 5]| match parse(8, &words(&words_)) {
            Ok(Request::SetIrqs(change)) => Ok(change),
            Err(refused) => Err(refused),
            Ok(other) => panic!("{other:?}"),
        };
        assert_eq!(irqs([20, 0x24, 2, 1, 2]), Ok(IrqChange::Assign { start: 1, count: 2 }));
        assert_eq!(irqs([20, 0x21, 2, 0, 0]), Ok(IrqChange::Disable));
        assert_eq!(irqs([20, 0x21, 2, 0, 1]), Ok(IrqChange::Fire { start: 0, count: 1 }));
        assert_eq!(irqs([20, 0x21, 0, 0, 0]), Ok(IrqChange::Nothing));
        for wrong in [[20, 0x24, 2, 17, 1], [20, 0x24, 2, u32::MAX, 2], [20, 0x0c, 2, 0, 1]] {
            assert_eq!(irqs(wrong), Err(Refused::INVALID));
        }
        assert_eq!(irqs([20, 0x24, 0, 0, 1]), Err(Refused::INVALID), "no INTx");
        let read = words(&[0x1c, 0, 0, 4]);
        assert_eq!(parse(9, &read), Ok(Request::Read(Region::Registers, 0x1c, 4)));
        let write = words(&[4, 0, 7, 2, 6]);
        assert_eq!(parse(10, &write), Ok(Request::Write(Region::Config, 4, &[6, 0])));
        assert_eq!(parse(13, &[]), Ok(Request::Reset));
    }

    #[test]
    fn requests_that_cannot_be_are_refused() {
        let invalid = |command, body: &[u32]| {
            assert_eq!(parse(command, &words(body)), Err(Refused::INVALID), "{command} {body:?}");
        };
        invalid(1, &[1]); // version 1
        invalid(2, &[32, 3, 0, 0, 0, 0, 0, 0]); // nothing
        invalid(2, &[32, 3, 0, 0, 0xffff_f000, u32::MAX, 0x2000, 0]);
        invalid(2, &[31, 3, 0, 0, 0, 0, 1, 0]);
        invalid(2, &[32, 3, 0, 0, 0]);
        invalid(3, &[24, 1, 0, 0, 1, 0]);
        invalid(3, &[24, 0, 1, 0, u32::MAX, u32::MAX]);
        invalid(4, &[12]);
        invalid(5, &[32, 0, 9, 0]);
        invalid(7, &[16, 0, 5, 0]);
        invalid(9, &[0xff, 0, 7, 2]); // beyond the region
        invalid(9, &[u32::MAX, u32::MAX, 0, 2]);
        invalid(9, &[0, 0, 1, 4]); // another region
        invalid(10, &[0, 0, 0, 8, 1]); // half of the data
        for unknown in [0, 6, 11, 12, 14, 15, 16, 0xffff] {
            assert_eq!(parse(unknown, &[0; 64]), Err(Refused::UNSUPPORTED));
        }
    }

    #[test]
    fn the_version_is_never_longer_than_the_proposal() {
        assert_eq!(version(4), [0; 4]);
        assert_eq!(&version(100)[4..], b"{\"capabilities\":{\"max_msg_fds\":16}}\0");
        assert_eq!((version(39).len(), version(40).len()), (4, 40));
        assert_eq!((device_info().len(), region_info(0)[16..18].to_vec()), (16, vec![0, 0x40]));
        assert_eq!((region_info(3)[4], irq_info(2)[12], irq_info(0)[12]), (0, 17, 0));
    }
}

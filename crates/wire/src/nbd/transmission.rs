//! Requests and replies.

use super::{Fields, NbdError};

const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;
/// `NBD_REPLY_FLAG_DONE`: no other chunk follows.
const DONE: u16 = 1;

/// Length of a request without its data.
pub const REQUEST_BYTES: usize = 28;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// `NBD_CMD_READ`.
    Read,
    /// `NBD_CMD_WRITE`: its data follows.
    Write,
    /// `NBD_CMD_DISC`: the client goes.
    Disconnect,
    /// `NBD_CMD_FLUSH`.
    Flush,
    /// `NBD_CMD_TRIM`.
    Trim,
    /// `NBD_CMD_CACHE`.
    Cache,
    /// `NBD_CMD_WRITE_ZEROES`.
    WriteZeroes,
    /// `NBD_CMD_BLOCK_STATUS`.
    BlockStatus,
    /// Another one.
    Unknown(u16),
}

/// A request, without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its kind.
    pub kind: RequestKind,
    /// `NBD_CMD_FLAG_FUA`.
    pub fua: bool,
    /// `NBD_CMD_FLAG_REQ_ONE`: one extent of block status is enough.
    pub one_extent: bool,
    /// Flags that this server does not know.
    pub has_unknown_flags: bool,
    /// The client's own note.
    pub cookie: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u32,
}

impl Request {
    /// # Errors
    /// If it is none.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, NbdError> {
        Self::read(&mut Fields(bytes)).ok_or(NbdError::Magic)
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let magic = fields.u32()?;
        let flags = fields.u16()?;
        let kind = match fields.u16()? {
            0 => RequestKind::Read,
            1 => RequestKind::Write,
            2 => RequestKind::Disconnect,
            3 => RequestKind::Flush,
            4 => RequestKind::Trim,
            5 => RequestKind::Cache,
            6 => RequestKind::WriteZeroes,
            7 => RequestKind::BlockStatus,
            other => RequestKind::Unknown(other),
        };
        let request = Self {
            kind,
            fua: flags & 1 != 0,
            one_extent: flags & 8 != 0,
            // "No hole" and "do not fragment" are known: nothing follows from them here.
            has_unknown_flags: flags & !0b1111 != 0,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: fields.u32()?,
        };
        (magic == REQUEST).then_some(request)
    }
}

/// An error as a client hears it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errno {
    /// `NBD_EIO`.
    Io = 5,
    /// `NBD_ENOMEM`.
    NoMemory = 12,
    /// `NBD_EINVAL`.
    Invalid = 22,
    /// `NBD_ENOSPC`.
    NoSpace = 28,
    /// `NBD_EOVERFLOW`.
    Overflow = 75,
    /// `NBD_ENOTSUP`.
    NotSupported = 95,
    /// `NBD_ESHUTDOWN`.
    Shutdown = 108,
}

/// A reply that carries no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The request's note.
    pub cookie: u64,
    /// The error; `None` if there is none.
    pub error: Option<Errno>,
}

impl Reply {
    /// As bytes; `structured`, if that was agreed on.
    pub fn encode(self, structured: bool) -> Vec<u8> {
        let error = self.error.map_or(0, |error| error as u32);
        if !structured {
            return simple(self.cookie, error);
        }
        let Some(_) = self.error else { return chunk(0, self.cookie, 0) };
        // NBD_REPLY_TYPE_ERROR: the error, and a message of no length.
        let mut bytes = chunk(1 << 15 | 1, self.cookie, 6);
        bytes.extend(error.to_be_bytes());
        bytes.extend(0_u16.to_be_bytes());
        bytes
    }
}

fn simple(cookie: u64, error: u32) -> Vec<u8> {
    let mut bytes = SIMPLE_REPLY.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes
}

fn chunk(kind: u16, cookie: u64, length: u32) -> Vec<u8> {
    let mut bytes = STRUCTURED_REPLY.to_be_bytes().to_vec();
    bytes.extend(DONE.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The header before the `length` bytes that were read at `offset`.
pub fn data_head(structured: bool, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    if !structured {
        return simple(cookie, 0);
    }
    // NBD_REPLY_TYPE_OFFSET_DATA.
    let mut bytes = chunk(1, cookie, length.saturating_add(8));
    bytes.extend(offset.to_be_bytes());
    bytes
}

/// Some bytes of an export that are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// How many bytes.
    pub length: u32,
    /// They are not allocated, and read as zeroes.
    pub is_hole: bool,
}

/// A reply with the allocation of the extents that follow each other; `context` is the number that the
/// negotiation gave it.
pub fn block_status_head(cookie: u64, context: u32, extents: &[Extent]) -> Vec<u8> {
    let mut bytes = chunk(5, cookie, 4 + 8 * extents.len() as u32);
    bytes.extend(context.to_be_bytes());
    for extent in extents {
        bytes.extend(extent.length.to_be_bytes());
        // NBD_STATE_HOLE and NBD_STATE_ZERO.
        bytes.extend(if extent.is_hole { 3_u32 } else { 0 }.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_with_fua() {
        let bytes = [
            &REQUEST.to_be_bytes()[..],
            &[0, 1, 0, 1],
            &7_u64.to_be_bytes(),
            &4_096_u64.to_be_bytes(),
            &512_u32.to_be_bytes(),
        ]
        .concat();
        let request = Request::parse(bytes[..].try_into().unwrap()).unwrap();
        let expected = Request {
            kind: RequestKind::Write,
            fua: true,
            one_extent: false,
            has_unknown_flags: false,
            cookie: 7,
            offset: 4_096,
            length: 512,
        };
        assert_eq!(request, expected);
    }

    #[test]
    fn replies_are_as_long_as_the_protocol_says() {
        let good = Reply { cookie: 1, error: None };
        let bad = Reply { cookie: 1, error: Some(Errno::Io) };
        let lengths = [good, bad].map(|reply| [false, true].map(|kind| reply.encode(kind).len()));
        assert_eq!(lengths, [[16, 20], [16, 26]]);
        assert_eq!((data_head(false, 1, 2, 3).len(), data_head(true, 1, 2, 3).len()), (16, 28));
        let hole = Extent { length: 512, is_hole: true };
        assert_eq!(block_status_head(1, 0, &[hole, hole]).len(), 20 + 4 + 16);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_an_error(bytes: [u8; REQUEST_BYTES]) {
            let is_request = bytes.starts_with(&REQUEST.to_be_bytes());
            prop_assert_eq!(Request::parse(&bytes).is_ok(), is_request);
        }
    }
}

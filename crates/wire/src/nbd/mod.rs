//! The NBD protocol: newstyle negotiation, simple and structured replies.
//!
//! Source: the protocol's own description, `doc/proto.md` of the NetworkBlockDevice project, whose terms
//! are used here. All numbers are big-endian.

mod negotiation;
mod transmission;

pub use negotiation::{
    ClientFlags, ClientOption, Context, ExportInfo, Greeting, OPTION_HEADER_BYTES, OptionHeader,
    OptionReply,
};
pub use transmission::{
    Errno, Extent, REQUEST_BYTES, Reply, Request, RequestKind, block_status_head, data_head,
};

use thiserror::Error;

/// The client does not speak the protocol: the connection is of no use any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NbdError {
    /// A number that begins every message is another one.
    #[error("the message does not begin as it must")]
    Magic,
    /// The client asks for flags that the server did not offer.
    #[error("the client sets flags that were not offered: {0:#x}")]
    Flags(u32),
    /// A message of that length is not read.
    #[error("a message of {0} bytes is too long")]
    TooLong(u32),
}

/// Takes numbers and strings out of a message; `None` where it is too short.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }
    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_be_bytes)
    }
    /// A string with its length before it.
    fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(length as usize)?).ok()
    }
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

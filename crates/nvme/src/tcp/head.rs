//! PDUs that a host sends.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{COMMON_BYTES, DATA_DIGEST, DIGEST_BYTES, Fatal, HEADER_DIGEST, LAST, Terms, digest};
use crate::namespace::TRANSFER_MOST;
use crate::wire::Sqe;

/// Bytes of data of one PDU of a host at most (MAXH2CDATA): a whole transfer.
pub const DATA_MOST: usize = TRANSFER_MOST;

/// The header that all PDUs have.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the specification's, but shorter")]
pub struct Common {
    pub kind: u8,
    pub flags: u8,
    /// HLEN: bytes of the header, without its digest.
    pub header: u8,
    /// PDO: where data begins.
    pub offset: u8,
    /// PLEN: bytes of all of it.
    pub length: U32,
}

/// H2CData, without the common header; C2HData and R2T are alike.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct DataHead {
    pub(super) cid: U16,
    pub(super) tag: U16,
    pub(super) offset: U32,
    pub(super) length: U32,
    pub(super) reserved: [u8; 4],
}

const TERMINATE: u8 = 0x02;
const COMMAND: u8 = 0x04;
const DATA: u8 = 0x06;
const COMMAND_BYTES: u8 = 72;
const DATA_BYTES: u8 = 24;
/// A termination has no more of the PDU that it is about.
const TERMINATE_MOST: u32 = 152;

/// A PDU of a host, without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// A command, with so many bytes behind its header, the digest of its data included.
    Command {
        /// The command.
        sqe: Sqe,
        /// Bytes that follow.
        follows: usize,
    },
    /// Data that was invited.
    Data {
        /// Of which command.
        cid: u16,
        /// The tag of the invitation.
        tag: u16,
        /// Where in the command's data.
        offset: u32,
        /// How much.
        length: u32,
        /// The last of what was invited.
        is_last: bool,
        /// Bytes that follow: the data, and its digest.
        follows: usize,
    },
    /// The host ends the connection; so many bytes of reasons follow.
    Terminate {
        /// Bytes that follow.
        follows: usize,
    },
}

/// Bytes of the header that begins with `first`, its digest included.
///
/// # Errors
/// If a host sends no such PDU.
pub fn header_bytes(first: &[u8; COMMON_BYTES], terms: Terms) -> Result<usize, Fatal> {
    let [kind, flags, header, ..] = *first;
    let wanted = match kind {
        TERMINATE => return if header == DATA_BYTES { Ok(24) } else { Err(Fatal::field(2)) },
        COMMAND => COMMAND_BYTES,
        DATA => DATA_BYTES,
        0x00 => return Err(Fatal::SEQUENCE), // a second beginning
        _ => return Err(Fatal::field(0)),
    };
    if header != wanted {
        return Err(Fatal::field(2));
    }
    if terms.header_digest != (flags & HEADER_DIGEST != 0) {
        return Err(Fatal::field(1));
    }
    Ok(usize::from(wanted) + terms.header_bytes())
}

impl Pdu {
    /// Parses a header of [`header_bytes`] bytes.
    ///
    /// # Errors
    /// If it is none that a host may send. `capsule` is the most data that a command brings along.
    ///
    /// # Panics
    /// If it has another length.
    pub fn parse(head: &[u8], terms: Terms, capsule: usize) -> Result<Self, Fatal> {
        let (common, rest) = Common::read_from_prefix(head).expect("a whole header");
        let length = common.length.get();
        if common.kind == TERMINATE {
            return match length.checked_sub(24) {
                Some(follows) if length <= TERMINATE_MOST => {
                    Ok(Self::Terminate { follows: follows as usize })
                }
                _ => Err(Fatal::field(4)),
            };
        }
        let header = usize::from(common.header);
        if terms.header_digest {
            let found = &head[header..header + DIGEST_BYTES];
            if digest(&head[..header]) != *found {
                let found = u32::from_le_bytes([found[0], found[1], found[2], found[3]]);
                return Err(Fatal::header_digest(found));
            }
        }
        let begin = header + terms.header_bytes();
        let follows = (length as usize).checked_sub(begin).ok_or(Fatal::field(4))?;
        let digests = if follows > 0 { terms.data_bytes() } else { 0 };
        let data = follows.checked_sub(digests).ok_or(Fatal::field(4))?;
        if follows > 0 {
            if data == 0 {
                return Err(Fatal::field(4));
            }
            if usize::from(common.offset) != begin {
                return Err(Fatal::field(3));
            }
            if terms.data_digest != (common.flags & DATA_DIGEST != 0) {
                return Err(Fatal::field(1));
            }
        }
        if common.kind == COMMAND {
            if data > capsule {
                return Err(Fatal::LIMIT);
            }
            let (sqe, _) = Sqe::read_from_prefix(rest).expect("a whole header");
            return Ok(Self::Command { sqe, follows });
        }
        let (it, _) = DataHead::read_from_prefix(rest).expect("a whole header");
        if data > DATA_MOST {
            return Err(Fatal::LIMIT);
        }
        if data != it.length.get() as usize {
            return Err(Fatal::field(16));
        }
        Ok(Self::Data {
            cid: it.cid.get(),
            tag: it.tag.get(),
            offset: it.offset.get(),
            length: it.length.get(),
            is_last: common.flags & LAST != 0,
            follows,
        })
    }

    /// Bytes that follow its header.
    pub const fn follows(&self) -> usize {
        match *self {
            Self::Command { follows, .. }
            | Self::Data { follows, .. }
            | Self::Terminate { follows } => follows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Terms = Terms { header_digest: true, data_digest: true };

    /// A command with so much data, as a host with these terms sends it.
    fn command(terms: Terms, data: usize) -> Vec<u8> {
        let begin = 72 + terms.header_bytes();
        let follows = data + if data > 0 { terms.data_bytes() } else { 0 };
        let flags = u8::from(terms.header_digest) | u8::from(terms.data_digest && data > 0) << 1;
        let offset = if data > 0 { begin as u8 } else { 0 };
        let mut head = vec![COMMAND, flags, 72, offset];
        head.extend(((begin + follows) as u32).to_le_bytes());
        head.extend(Sqe { opcode: 1, cid: 0xf00f.into(), ..Sqe::default() }.as_bytes());
        if terms.header_digest {
            head.extend(digest(&head));
        }
        head
    }

    fn parse(head: &[u8], terms: Terms) -> Result<Pdu, Fatal> {
        let bytes = header_bytes(head.first_chunk().unwrap(), terms)?;
        assert_eq!(bytes, head.len());
        Pdu::parse(head, terms, 8_192)
    }

    #[test]
    fn commands_are_read_with_every_digest_and_without() {
        for terms in [Terms::default(), Terms { data_digest: false, ..BOTH }, BOTH] {
            for data in [0, 1, 512, 8_192] {
                let digests = if data > 0 { terms.data_bytes() } else { 0 };
                let Ok(Pdu::Command { sqe, follows }) = parse(&command(terms, data), terms) else {
                    panic!("{terms:?} {data}")
                };
                assert_eq!((sqe.cid.get(), follows), (0xf00f, data + digests));
            }
            assert_eq!(parse(&command(terms, 8_193), terms), Err(Fatal::LIMIT));
        }
    }

    #[test]
    fn each_wrong_field_is_named_by_its_place() {
        let wrong = |at: usize, value: u8| {
            let mut head = command(Terms::default(), 512);
            head[at] = value;
            parse(&head, Terms::default()).unwrap_err()
        };
        assert_eq!(wrong(0, 0), Fatal::SEQUENCE);
        for kind in [1, 3, 5, 7, 9, 10, 0xff] {
            assert_eq!(wrong(0, kind), Fatal::field(0));
        }
        assert_eq!(wrong(1, 1), Fatal::field(1), "a header digest that was not agreed on");
        assert_eq!(wrong(1, 2), Fatal::field(1));
        assert_eq!(wrong(2, 76), Fatal::field(2));
        assert_eq!(wrong(3, 0), Fatal::field(3));

        let mut short = command(Terms::default(), 0);
        short[4] = 71;
        assert_eq!(parse(&short, Terms::default()), Err(Fatal::field(4)));
        let mut damaged = command(BOTH, 0);
        damaged[20] ^= 1;
        assert!(matches!(parse(&damaged, BOTH), Err(Fatal { status: 3, .. })));
        let mut only_a_digest = command(BOTH, 1);
        only_a_digest[4] -= 1;
        let sum = digest(&only_a_digest[..72]);
        only_a_digest[72..].copy_from_slice(&sum);
        assert_eq!(parse(&only_a_digest, BOTH), Err(Fatal::field(4)));
    }

    #[test]
    fn data_says_how_much_it_is_twice_and_the_same() {
        let mut head = vec![DATA, LAST, 24, 24];
        head.extend((24_u32 + 512).to_le_bytes());
        let data = DataHead {
            cid: 7.into(),
            tag: 9.into(),
            offset: 4_096.into(),
            length: 512.into(),
            reserved: [0; 4],
        };
        head.extend(data.as_bytes());
        let read =
            Pdu::Data { cid: 7, tag: 9, offset: 4_096, length: 512, is_last: true, follows: 512 };
        assert_eq!(parse(&head, Terms::default()), Ok(read));
        head[16] = 1;
        assert_eq!(parse(&head, Terms::default()), Err(Fatal::field(16)));
        head[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(parse(&head, Terms::default()), Err(Fatal::LIMIT));
    }

    #[test]
    fn a_termination_has_its_limits() {
        let end = |length: u32| {
            let mut head = vec![TERMINATE, 0, 24, 0];
            head.extend(length.to_le_bytes());
            head.resize(24, 0);
            parse(&head, BOTH)
        };
        assert_eq!(end(152), Ok(Pdu::Terminate { follows: 128 }));
        assert_eq!((end(23), end(153)), (Err(Fatal::field(4)), Err(Fatal::field(4))));
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_or_refused(first: [u8; 8], rest: [u8; 72], header: bool, data: bool) {
            let terms = Terms { header_digest: header, data_digest: data };
            let Ok(bytes) = header_bytes(&first, terms) else { return Ok(()) };
            let head = [&first[..], &rest].concat();
            if let Ok(pdu) = Pdu::parse(&head[..bytes], terms, 8_192) {
                proptest::prop_assert!(pdu.follows() <= DATA_MOST + DIGEST_BYTES);
            }
        }
    }
}

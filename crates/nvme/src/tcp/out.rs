//! PDUs that a server sends.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes, Unaligned};

use super::head::{Common, DATA_MOST, DataHead};
use super::{DATA_DIGEST, Fatal, HEADER_DIGEST, INITIALISE_BYTES, LAST, SUCCESS, Terms, sealed};
use crate::wire::{Cqe, Page};

const INITIALISE: u8 = 0x01;
const TERMINATE: u8 = 0x03;
const RESPONSE: u8 = 0x05;
const DATA: u8 = 0x07;
const INVITE: u8 = 0x09;

#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Response {
    common: Common,
    cqe: Cqe,
}

#[derive(IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Data {
    common: Common,
    head: DataHead,
}

const fn common(kind: u8, flags: u8, header: u8, offset: u8, length: usize) -> Common {
    Common { kind, flags, header, offset, length: U32::new(length as u32) }
}

/// The answer to what begins a connection.
pub fn initialise(terms: Terms) -> Vec<u8> {
    let mut page = Page::new(INITIALISE_BYTES);
    page.u8(0, INITIALISE)
        .u8(2, INITIALISE_BYTES as u8)
        .u32(4, INITIALISE_BYTES as u32)
        .u8(11, u8::from(terms.header_digest) | u8::from(terms.data_digest) << 1)
        .u32(12, DATA_MOST as u32);
    page.into_bytes()
}

/// A completion.
pub fn response(terms: Terms, cqe: Cqe) -> Vec<u8> {
    let flags = if terms.header_digest { HEADER_DIGEST } else { 0 };
    let common = common(RESPONSE, flags, 24, 0, 24 + terms.header_bytes());
    sealed(terms, &Response { common, cqe })
}

/// The header before so much data of a command, all of it. With `success` no completion follows.
pub fn data_head(terms: Terms, cid: u16, bytes: usize, success: bool) -> Vec<u8> {
    let begin = 24 + terms.header_bytes();
    let flags = LAST
        | if success { SUCCESS } else { 0 }
        | if terms.header_digest { HEADER_DIGEST } else { 0 }
        | if terms.data_digest { DATA_DIGEST } else { 0 };
    let common = common(DATA, flags, 24, begin as u8, begin + bytes + terms.data_bytes());
    let head =
        DataHead { cid: U16::new(cid), length: U32::new(bytes as u32), ..DataHead::default() };
    sealed(terms, &Data { common, head })
}

/// An invitation to send so much data of a command, from its beginning on.
pub fn invite(terms: Terms, cid: u16, tag: u16, bytes: usize) -> Vec<u8> {
    let flags = if terms.header_digest { HEADER_DIGEST } else { 0 };
    let common = common(INVITE, flags, 24, 0, 24 + terms.header_bytes());
    let (cid, tag, length) = (U16::new(cid), U16::new(tag), U32::new(bytes as u32));
    sealed(terms, &Data { common, head: DataHead { cid, tag, length, ..DataHead::default() } })
}

/// The end of a connection, because of the PDU with this header.
pub fn terminate(fatal: Fatal, head: &[u8]) -> Vec<u8> {
    let head = &head[..head.len().min(INITIALISE_BYTES)];
    let mut page = Page::new(24 + head.len());
    page.u8(0, TERMINATE)
        .u8(2, 24)
        .u32(4, 24 + head.len() as u32)
        .u16(8, fatal.status)
        .u32(10, fatal.information)
        .bytes(24, head);
    page.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::digest;
    use super::*;

    #[test]
    fn fields_that_linux_checks_are_right() {
        let terms = Terms { header_digest: true, data_digest: true };
        let begin = initialise(terms);
        assert_eq!((begin[0], begin[2], &begin[4..8]), (1, 128, &[128, 0, 0, 0][..]));
        assert_eq!((&begin[8..12], begin.len()), (&[0, 0, 0, 3][..], 128), "PFV, CPDA, digests");
        let most = u32::from_le_bytes(begin[12..16].try_into().unwrap());
        assert!(most >= 4_096 && most.is_multiple_of(4));
        let data = data_head(terms, 0x1234, 512, false);
        assert_eq!(data[..8], [7, 7, 24, 28, 32, 2, 0, 0], "24 + 4 + 512 + 4 bytes");
        assert_eq!(data[8..24], [0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(data[24..], digest(&data[..24]));
        let plain = Terms::default();
        assert_eq!(data_head(plain, 1, 512, true)[..8], [7, 12, 24, 24, 24, 2, 0, 0]);
        let invited = invite(plain, 3, 9, 4_096);
        assert_eq!(invited[..12], [9, 0, 24, 0, 24, 0, 0, 0, 3, 0, 9, 0]);
        assert_eq!(invited[16..20], 4_096_u32.to_le_bytes());
        let cqe = Cqe { cid: 0x1005.into(), status: 0x8004.into(), ..Cqe::default() };
        let ended = response(plain, cqe);
        assert_eq!((ended[..8].to_vec(), ended.len()), (vec![5, 0, 24, 0, 24, 0, 0, 0], 24));
        assert_eq!(ended[20..24], [0x05, 0x10, 0x04, 0x80]);
    }

    #[test]
    fn a_termination_shows_what_it_is_about() {
        let end = terminate(Fatal::field(2), &[9; 500]);
        assert_eq!((end.len(), &end[4..8]), (152, &[152, 0, 0, 0][..]));
        assert_eq!(end[8..16], [1, 0, 2, 0, 0, 0, 0, 0]);
        assert_eq!(end[24..], [9; 128]);
    }
}

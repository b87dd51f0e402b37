//! NVMe/TCP: PDUs as a server reads and writes them (NVMe/TCP Transport 1.0, section 3).
//!
//! **What lives here**: bytes to what they say, and back; digests. **What doesn't**: sockets, and what may come when beyond
//! one PDU.

mod head;
mod out;

pub use head::{Common, DATA_MOST, Pdu, header_bytes};
pub use out::{data_head, initialise, invite, response, terminate};

use zerocopy::{FromBytes, IntoBytes};

/// Bytes that come in a capsule of an admin queue, and with fabrics commands, at most.
pub const ADMIN_CAPSULE_MOST: usize = 8_192;
/// Bytes that come in a capsule of an I/O queue at most: larger writes are invited.
pub const IN_CAPSULE_MOST: usize = 16 << 10;
/// Bytes of the header that all PDUs have.
pub const COMMON_BYTES: usize = 8;
/// Bytes of the PDUs that begin a connection.
pub const INITIALISE_BYTES: usize = 128;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;
/// No header is longer, digest included.
pub const HEAD_MOST: usize = 72 + DIGEST_BYTES;

pub(crate) const HEADER_DIGEST: u8 = 1;
pub(crate) const DATA_DIGEST: u8 = 2;
pub(crate) const LAST: u8 = 4;
pub(crate) const SUCCESS: u8 = 8;

/// The digest of `bytes`, as it is on the wire.
pub fn digest(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    crc32c::crc32c(bytes).to_le_bytes()
}

/// The terms that both sides have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// Headers have digests.
    pub header_digest: bool,
    /// Data has digests.
    pub data_digest: bool,
}

/// Why a connection ends: what the PDU says that ends it (figure 22).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the host sends a PDU that there is not: fatal error status {status:#04x}, {information:#x}"
)]
pub struct Fatal {
    /// Fatal error status (FES).
    pub status: u16,
    /// More about it (FEI): of a bad field, where it is.
    pub information: u32,
}

impl Fatal {
    /// A field of the header is wrong.
    pub const fn field(at: u32) -> Self {
        Self { status: 1, information: at }
    }
    /// The PDU comes at the wrong time.
    pub const SEQUENCE: Self = Self { status: 2, information: 0 };
    /// The header's digest is another.
    pub const fn header_digest(found: u32) -> Self {
        Self { status: 3, information: found }
    }
    /// Data that was not invited.
    pub const OUT_OF_RANGE: Self = Self { status: 4, information: 0 };
    /// More data than a PDU or a capsule may have.
    pub const LIMIT: Self = Self { status: 5, information: 0 };
    /// A parameter that is not supported.
    pub const fn parameter(at: u32) -> Self {
        Self { status: 6, information: at }
    }
}

impl Terms {
    /// The terms of a host's request that begins a connection.
    ///
    /// # Errors
    /// If it asks for something else, or it is something else.
    pub fn of_host(request: &[u8; INITIALISE_BYTES]) -> Result<Self, Fatal> {
        let Ok((common, _)) = Common::ref_from_prefix(request) else { return Err(Fatal::SEQUENCE) };
        if common.kind != 0 {
            return Err(Fatal::SEQUENCE);
        }
        if usize::from(common.header) != INITIALISE_BYTES {
            return Err(Fatal::field(2));
        }
        if common.length.get() as usize != INITIALISE_BYTES {
            return Err(Fatal::field(4));
        }
        if request[8..10] != [0, 0] {
            return Err(Fatal::parameter(8));
        }
        if request[10] > 31 {
            return Err(Fatal::field(10));
        }
        if request[10] > 0 {
            return Err(Fatal::parameter(10)); // data that begins at multiples of something
        }
        let digests = request[11];
        Ok(Self { header_digest: digests & 1 != 0, data_digest: digests & 2 != 0 })
    }

    pub(crate) const fn header_bytes(self) -> usize {
        if self.header_digest { DIGEST_BYTES } else { 0 }
    }
    pub(crate) const fn data_bytes(self) -> usize {
        if self.data_digest { DIGEST_BYTES } else { 0 }
    }

    /// Cuts the digest off `data`, which ends with it. False if it is of other bytes.
    pub fn strip(self, data: &mut Vec<u8>, from: usize) -> bool {
        if !self.data_digest || data.len() < from + DIGEST_BYTES {
            return !self.data_digest || data.len() == from;
        }
        let end = data.len() - DIGEST_BYTES;
        let is_right = digest(&data[from..end]) == data[end..];
        data.truncate(end);
        is_right
    }
}

/// The header of `what`, with its digest.
fn sealed(terms: Terms, what: &(impl IntoBytes + zerocopy::Immutable)) -> Vec<u8> {
    let mut bytes = what.as_bytes().to_vec();
    if terms.header_digest {
        bytes.extend(digest(what.as_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second opinion on the digest: bit by bit, from RFC 3720's polynomial.
    fn slowly(bytes: &[u8]) -> u32 {
        let step = |crc: u32| if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
    }

    proptest::proptest! {
        #[test]
        fn digests_are_those_of_the_polynomial(bytes: Vec<u8>) {
            assert_eq!(digest(&bytes), slowly(&bytes).to_le_bytes());
        }
    }

    #[test]
    fn the_check_value_is_that_of_the_standard() {
        assert_eq!(digest(b"123456789"), 0xe306_9283_u32.to_le_bytes());
    }

    #[test]
    fn a_connection_begins_with_what_is_known() {
        let mut request = [0; INITIALISE_BYTES];
        (request[2], request[4], request[11]) = (128, 128, 3);
        let terms = Terms { header_digest: true, data_digest: true };
        assert_eq!(Terms::of_host(&request), Ok(terms));
        let wrong = |at: usize, value: u8| {
            let mut request = request;
            request[at] = value;
            Terms::of_host(&request).unwrap_err()
        };
        assert_eq!(wrong(0, 4), Fatal::SEQUENCE);
        assert_eq!(wrong(2, 24), Fatal::field(2));
        assert_eq!(wrong(5, 1), Fatal::field(4));
        assert_eq!(wrong(8, 1), Fatal::parameter(8));
        assert_eq!(wrong(10, 32), Fatal::field(10));
        assert_eq!(wrong(10, 3), Fatal::parameter(10));
    }

    #[test]
    fn a_data_digest_is_cut_off_and_checked() {
        let terms = Terms { header_digest: false, data_digest: true };
        let mut data = b"old".to_vec();
        data.extend(b"new");
        data.extend(digest(b"new"));
        assert!(terms.strip(&mut data, 3));
        assert_eq!(data, b"oldnew");
        data.extend([0; 4]);
        assert!(!terms.strip(&mut data, 3));
        assert_eq!(data, b"oldnew");
        assert!(terms.strip(&mut data, 6), "no data, no digest");
        assert!(Terms::default().strip(&mut data, 0));
        assert_eq!(data.len(), 6);
    }
}

//! Addresses: logical blocks of 512 bytes.

/// Bytes of a logical block. Addresses and lengths of commands count in these, as block traces and
/// the Linux block layer do; a namespace with larger logical blocks is its edge's business.
pub const SECTOR_BYTES: u64 = 512;

/// A logical block address, in sectors of [`SECTOR_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lba(pub u64);

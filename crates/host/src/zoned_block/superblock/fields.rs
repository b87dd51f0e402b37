//! Numbers in the bytes of file systems.

use super::Why;

/// `N` bytes at `at`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Why> {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end));
    part.and_then(|part| part.try_into().ok())
        .ok_or(Why::Unbelievable("the data read is shorter than its fields"))
}

pub(super) fn le16(bytes: &[u8], at: usize) -> Result<u16, Why> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> Result<u32, Why> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Result<u32, Why> {
    array(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn be64(bytes: &[u8], at: usize) -> Result<u64, Why> {
    array(bytes, at).map(u64::from_be_bytes)
}

//! XFS: the log is a run of blocks, and the superblock says where (XFS Algorithms & Data Structures, "Superblocks").

use super::fields::{be32, be64};
use super::{Journal, Why};

const MAGIC: &[u8] = b"XFSB";

/// The log, if `head`, the beginning of a device, is XFS's.
pub(super) fn log(head: &[u8]) -> Result<Option<Journal>, Why> {
    if !head.starts_with(MAGIC) {
        return Ok(None);
    }
    let block_bytes = u64::from(be32(head, 4)?);
    let start = be64(head, 48)?;
    let (group_blocks, groups) = (u64::from(be32(head, 84)?), u64::from(be32(head, 88)?));
    let blocks = u64::from(be32(head, 96)?);
    let group_bits = u32::from(*head.get(124).unwrap_or(&u8::MAX));
    if !block_bytes.is_power_of_two() || !(512..=65_536).contains(&block_bytes) || group_bits > 31 {
        return Err(Why::Unbelievable("XFS has blocks or allocation groups of an absurd size"));
    }
    if start == 0 {
        return Ok(Some(Journal::Nowhere(Why::Elsewhere)));
    }
    // A block's number has its allocation group's in the bits above `sb_agblklog`.
    let (group, offset) = (start >> group_bits, start & ((1 << group_bits) - 1));
    if group >= groups || offset + blocks > group_blocks || blocks == 0 {
        return Err(Why::Unbelievable("the log of XFS is not in an allocation group"));
    }
    // Numbers below 2^32 each, times 2^32, plus as little, times 2^16: more than 64 bits hold.
    let first = u128::from(group * group_blocks + offset) * u128::from(block_bytes);
    let end = first + u128::from(blocks * block_bytes);
    let in_range = |at: u128| {
        u64::try_from(at).map_err(|_| Why::Unbelievable("the log of XFS ends beyond any device"))
    };
    let range = in_range(first)?..in_range(end)?;
    Ok(Some(Journal::At(vec![range])))
}

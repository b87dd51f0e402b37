//! The promises of a drive on atomic writes, as a host reads them from the drive's configuration.

use leyden_device::SECTOR_BYTES;
use leyden_oracle::Atomic;
use leyden_sim::Bytes;

use crate::Options;

/// A host counts in blocks of this size, or of a smaller mapping unit.
const BLOCK_MOST: u64 = 4_096;

/// The drive's promise; none that reaches through a page cache, which splits writes as it likes.
pub(super) fn of(options: &Options) -> Option<Atomic> {
    let table = options.device.atomic.as_ref()?;
    if options.host.as_ref().is_some_and(|host| host.page_cache.is_some()) {
        return None;
    }
    let block = options.device.ftl.mapping_unit.get().min(BLOCK_MOST);
    let blocks = |size: Option<Bytes>| size.map_or(0, |size| size.get() / block);
    Some(Atomic {
        block_sectors: block / SECTOR_BYTES,
        normal: (blocks(table.nawun.or(Some(table.nawupf))), blocks(table.nabsn)),
        power_fail: (blocks(Some(table.nawupf)), blocks(table.nabspf)),
        offset: blocks(table.nabo),
    })
}

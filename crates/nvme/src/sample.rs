//! Namespaces that the fuzz targets and the tests use.

use crate::namespace::{Namespace, Zones};

/// A conventional namespace with a cache.
pub(crate) fn plain(block_bytes: u32, blocks: u64) -> Namespace {
    let (has_cache, guid, zones) = (true, [1; 16], None);
    Namespace { block_bytes, blocks, unit_bytes: 4_096, has_cache, guid, atomic: None, zones }
}

/// Sixteen zones with Zone Random Write Areas.
pub(crate) fn zoned() -> Namespace {
    let zones = Zones {
        count: 16,
        size: 1_024,
        capacity: 1_000,
        open_most: 4,
        active_most: 6,
        append_bytes: 1 << 20,
        area_size: 16,
        area_granularity: 1,
        areas: 3,
        reads_across: false,
    };
    Namespace { guid: [2; 16], zones: Some(zones), ..plain(4_096, 16 * 1_024) }
}

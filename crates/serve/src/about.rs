//! The drive's identity, counters and zones, as programs receive them.

use leyden_device::{Lba, Region, SECTOR_BYTES, ZoneId};
use leyden_image::{Drive, ImageError};
use leyden_wire::programs::TRANSFER_MOST;
pub use leyden_wire::programs::ZoneLine;
use serde::{Deserialize, Serialize};

use crate::direct::Counts;

/// The identity of a drive. A conventional one has no zones, and the fields about them are 0.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "leyden.h says of each field what it is: `leyden_identity`")]
pub struct Identity {
    pub is_zoned: bool,
    pub block_bytes: u32,
    pub unit_bytes: u32,
    pub capacity_bytes: u64,
    pub transfer_max_bytes: u64,
    /// 0: nothing is protected, 1: a region, 2: all of the buffer.
    pub region: u32,
    pub zone_count: u32,
    pub zone_size_bytes: u64,
    pub zone_capacity_bytes: u64,
    pub open_max: u32,
    pub active_max: u32,
    pub append_max_bytes: u64,
    pub zrwa_size_bytes: u64,
    pub zrwa_granularity_bytes: u64,
    pub zrwa_max: u32,
    pub reads_across_zones: bool,
    pub protected_bytes: u64,
    pub plain_bytes: u64,
}

impl Identity {
    /// The identity of `drive`.
    pub fn of(drive: &Drive) -> Self {
        let unit = u64::from(drive.unit_bytes());
        let buffer = &drive.config().device.buffer;
        let mut identity = Self {
            is_zoned: false,
            block_bytes: SECTOR_BYTES as u32,
            unit_bytes: drive.unit_bytes(),
            capacity_bytes: drive.capacity_sectors() * SECTOR_BYTES,
            transfer_max_bytes: u64::from(TRANSFER_MOST),
            region: number_of(buffer.region),
            zone_count: 0,
            zone_size_bytes: 0,
            zone_capacity_bytes: 0,
            open_max: 0,
            active_max: 0,
            append_max_bytes: 0,
            zrwa_size_bytes: 0,
            zrwa_granularity_bytes: 0,
            zrwa_max: 0,
            reads_across_zones: false,
            protected_bytes: 0,
            plain_bytes: 0,
        };
        if let Some(ssd) = drive.device().zoned() {
            let (shape, pools) = (ssd.zone_shape(), ssd.pool_sizes());
            identity.is_zoned = true;
            identity.block_bytes = drive.unit_bytes();
            identity.zone_count = shape.zones;
            identity.zone_size_bytes = u64::from(shape.size) * unit;
            identity.zone_capacity_bytes = u64::from(shape.capacity) * unit;
            (identity.open_max, identity.active_max) = (shape.max_open, shape.max_active);
            identity.append_max_bytes = u64::from(shape.append_limit) * unit;
            identity.zrwa_size_bytes = u64::from(shape.zrwa_size) * unit;
            identity.zrwa_granularity_bytes = u64::from(shape.zrwa_granularity) * unit;
            identity.zrwa_max = shape.zrwa_count;
            identity.reads_across_zones = shape.reads_across;
            identity.protected_bytes = u64::from(pools.protected) * unit;
            identity.plain_bytes = u64::from(pools.plain) * unit;
        } else {
            identity.protected_bytes = match buffer.region {
                Region::None => 0,
                Region::Selective => buffer.protected_size.get(),
                Region::Full => buffer.size.get(),
            };
            identity.plain_bytes = buffer.size.get().saturating_sub(identity.protected_bytes);
        }
        identity
    }
}

/// The number that says what of the write buffer is protected.
pub const fn number_of(region: Region) -> u32 {
    match region {
        Region::None => 0,
        Region::Selective => 1,
        Region::Full => 2,
    }
}

/// Counters of a drive since its image was opened, and what it holds now.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "leyden.h says of each field what it is: `leyden_stats`")]
pub struct DriveStats {
    pub is_on: bool,
    pub time_ns: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
    pub failures: u64,
    pub programmed_bytes: u64,
    pub padded_bytes: u64,
    pub dumped_pages: u64,
    pub erases: u64,
    pub bad_blocks: u64,
    pub stalled_ns: u64,
    pub zone_resets: u64,
    pub flushes_waited: u64,
    pub discarded_protected_bytes: u64,
    pub protected_bytes: u64,
    pub protected_peak_bytes: u64,
    pub plain_bytes: u64,
    pub open_zones: u32,
    pub active_zones: u32,
    pub image_bytes: u64,
    pub log_bytes: u64,
}

impl DriveStats {
    /// Those of `drive`, which was asked for `counts`.
    ///
    /// # Errors
    /// If the image's file cannot be asked for its size.
    pub fn of(drive: &Drive, counts: Counts) -> Result<Self, ImageError> {
        let unit = u64::from(drive.unit_bytes());
        let (info, stats) = (drive.info()?, drive.device().stats());
        let ftl = &stats.ftl;
        let programmed = ftl.user_units + ftl.gc.copied_units + ftl.padded_units;
        let mut told = Self {
            is_on: !drive.is_off(),
            time_ns: info.time_ns,
            reads: counts.reads,
            read_bytes: counts.read_bytes,
            writes: counts.writes,
            written_bytes: counts.written_bytes,
            flushes: counts.flushes,
            failures: counts.failures,
            programmed_bytes: programmed * unit,
            padded_bytes: ftl.padded_units * unit,
            dumped_pages: ftl.programs.dump,
            erases: ftl.erases,
            bad_blocks: stats.bad_blocks.get(),
            stalled_ns: stats.ssd.stalled.as_ns(),
            plain_bytes: stats.buffered_units.get() * unit,
            image_bytes: info.allocated_bytes,
            log_bytes: info.log_bytes,
            ..Self::default()
        };
        if let Some(ssd) = drive.device().zoned() {
            let (zoned, fill) = (ssd.zoned_stats(), ssd.pool_fill());
            told.zone_resets = zoned.resets;
            told.flushes_waited = zoned.flushes_waited;
            told.discarded_protected_bytes = zoned.discarded_protected_units * unit;
            told.protected_peak_bytes = zoned.protected_peak.get() * unit;
            told.protected_bytes = u64::from(fill.protected) * unit;
            told.plain_bytes = u64::from(fill.plain) * unit;
            (told.open_zones, told.active_zones) = ssd.zone_resources();
        }
        Ok(told)
    }
}

/// Every counter of every layer, as JSON.
pub fn all_stats(drive: &Drive) -> String {
    let device = drive.device();
    let zoned = device.zoned().map(leyden_device::ZnsSsd::zoned_stats);
    let (time_ns, device) = (drive.now().as_ns(), device.stats());
    serde_json::json!({ "time_ns": time_ns, "device": device, "zoned": zoned }).to_string()
}

/// Up to `count` zones of a drive, from `first` on; of a conventional one none.
pub fn zones(drive: &Drive, first: u32, count: u32) -> Vec<ZoneLine> {
    let Some(ssd) = drive.device().zoned() else { return Vec::new() };
    let end = first.saturating_add(count).min(ssd.zone_shape().zones);
    let describe = |number: u32| {
        let zone = ssd.zone(ZoneId(number));
        let bytes = |lba: Lba| lba.0 * SECTOR_BYTES;
        ZoneLine {
            zone: number,
            state: zone.state.code(),
            has_area: zone.has_zrwa,
            is_changed: zone.is_changed,
            start: bytes(zone.start),
            capacity: zone.capacity * SECTOR_BYTES,
            write_pointer: zone.write_pointer.map_or(u64::MAX, bytes),
            held: ssd.held_sectors(ZoneId(number)) * SECTOR_BYTES,
        }
    };
    (first..end).map(describe).collect()
}

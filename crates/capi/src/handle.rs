//! What a handle of the caller stands for: a drive in an open image, addressed in bytes.

use std::path::Path;
use std::sync::Arc;

use leyden_device::{Lba, PowerLoss, Region, SECTOR_BYTES, Status, ZoneAction, ZoneId, ZoneState};
use leyden_image::{Done, Drive, WriteFlags, ZoneAsk};
use leyden_serve::{Call, CutReport, Direct, Door, Pace};

use crate::statuses::Failure;
use crate::types::*;

/// The most bytes of a read or a write: what NBD clients may ask for, too.
const TRANSFER_MOST: u64 = 32 << 20;
/// What of a trim is asked for at once.
const TRIM_BYTES: u64 = 1 << 30;

/// How an image is opened.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) pace: Pace,
    pub(crate) record: Option<&'a Path>,
    pub(crate) stays_off: bool,
    pub(crate) has_control: bool,
}

/// Zones, in bytes.
#[derive(Clone, Copy, Debug)]
struct Zones {
    count: u32,
    size_bytes: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Handle {
    direct: Arc<Direct>,
    /// The control socket; it closes first.
    door: Option<Door>,
    block_bytes: u64,
    zones: Option<Zones>,
}

impl Handle {
    /// Opens an image. Also says what that has found: the power cut that the death of the last process was, and how
    /// many commands were run again.
    pub(crate) fn open(
        path: &Path,
        options: &Options<'_>,
    ) -> Result<(Self, Option<PowerLoss>, u64), Failure> {
        let (mut drive, opened) = Drive::open(path)?;
        if drive.is_off() && !options.stays_off {
            drive.restore(drive.now(), None)?;
            drive.rest()?;
        }
        if let Some(record) = options.record {
            if drive.is_off() {
                return Err(Failure::argument("a recording begins with the power on"));
            }
            drive.rest()?;
            drive.record(record).map_err(|error| Failure::from(error).about(record.display()))?;
        }
        let unit_bytes = u64::from(drive.unit_bytes());
        let zones = drive.device().zoned().map(|ssd| Zones {
            count: ssd.zone_shape().zones,
            size_bytes: u64::from(ssd.zone_shape().size) * unit_bytes,
        });
        let direct = Arc::new(Direct::new(drive, options.pace));
        if let Some(loss) = &opened.cut {
            direct.note_cut(loss);
        }
        let door = options.has_control.then(|| Door::open(&direct)).transpose();
        let door = door.map_err(|error| Failure::new(LEYDEN_E_IO, error.to_string()))?;
        let block_bytes = if zones.is_some() { unit_bytes } else { SECTOR_BYTES };
        Ok((Self { direct, door, block_bytes, zones }, opened.cut, opened.replayed))
    }

    /// What has the drive, when the handle is not needed any more.
    fn into_direct(self) -> Direct {
        drop(self.door);
        let mut direct = self.direct;
        loop {
            match Arc::try_unwrap(direct) {
                Ok(direct) => return direct,
                // A client of the control socket is being answered.
                Err(shared) => direct = shared,
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        Ok(self.into_direct().close()?)
    }

    /// Leaves the image as a killed process would.
    pub(crate) fn abandon(self) {
        drop(self.into_direct());
    }

    pub(crate) fn direct(&self) -> &Direct {
        &self.direct
    }

    /// The sectors of a range of bytes.
    fn sectors(&self, offset_bytes: u64, length_bytes: u64) -> Result<(Lba, u32), Failure> {
        let whole = |bytes: u64| bytes.is_multiple_of(self.block_bytes);
        if length_bytes == 0 || !whole(offset_bytes) || !whole(length_bytes) {
            let what = format!("offset and length are no multiples of {} bytes", self.block_bytes);
            return Err(Failure::from(Status::InvalidField).about(what));
        }
        Ok((Lba(offset_bytes / SECTOR_BYTES), (length_bytes / SECTOR_BYTES) as u32))
    }

    /// The same of a range that is read or written at once.
    fn transfer(&self, offset_bytes: u64, length_bytes: usize) -> Result<(Lba, u32), Failure> {
        if length_bytes as u64 > TRANSFER_MOST {
            let what = format!("more than {TRANSFER_MOST} bytes, the most at once");
            return Err(Failure::argument(what));
        }
        self.sectors(offset_bytes, length_bytes as u64)
    }

    fn zones(&self) -> Result<Zones, Failure> {
        let what = "the drive is a conventional one, and has no zones";
        self.zones.ok_or_else(|| Failure::new(LEYDEN_E_NOT_ZONED, what))
    }

    /// The first block of a zone.
    fn zone(&self, zone: u32) -> Result<Lba, Failure> {
        let zones = self.zones()?;
        if zone >= zones.count {
            let what = format!("there is no zone {zone}: there are {}", zones.count);
            return Err(Failure::new(LEYDEN_E_NOT_FOUND, what));
        }
        Ok(Lba(u64::from(zone) * zones.size_bytes / SECTOR_BYTES))
    }

    pub(crate) fn read(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        let length = buffer.len();
        let about = |failure: Failure| {
            failure.about(format_args!("read of {length} bytes at {offset_bytes}"))
        };
        let (lba, _) = self.transfer(offset_bytes, length).map_err(about)?;
        self.direct.read(lba, buffer).map_err(|error| about(error.into()))
    }

    pub(crate) fn write(
        &self,
        offset_bytes: u64,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<(), Failure> {
        let about = |failure: Failure| {
            failure.about(format_args!("write of {} bytes at {offset_bytes}", data.len()))
        };
        let (lba, _) = self.transfer(offset_bytes, data.len()).map_err(about)?;
        let done = self.direct.call(Call::Write(lba, data, flags));
        done.map(drop).map_err(|error| about(error.into()))
    }

    /// Returns the offset at which the data lies.
    pub(crate) fn append(&self, zone: u32, data: &[u8], flags: WriteFlags) -> Result<u64, Failure> {
        let about = |failure: Failure| {
            failure.about(format_args!("append of {} bytes to zone {zone}", data.len()))
        };
        let start = self.zone(zone).map_err(about)?;
        let (lba, _) = self.transfer(start.0 * SECTOR_BYTES, data.len()).map_err(about)?;
        let done = self.direct.call(Call::Append(lba, data, flags));
        let Done { appended, .. } = done.map_err(|error| about(error.into()))?;
        Ok(appended.expect("an append that has ended well").0 * SECTOR_BYTES)
    }

    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let done = self.direct.call(Call::Flush).map(drop);
        done.map_err(|error| Failure::from(error).about("flush"))
    }

    pub(crate) fn trim(&self, mut offset_bytes: u64, mut length_bytes: u64) -> Result<(), Failure> {
        while length_bytes > 0 {
            let now = length_bytes.min(TRIM_BYTES);
            let (lba, sectors) = self.sectors(offset_bytes, now)?;
            self.direct.call(Call::Trim(lba, sectors))?;
            offset_bytes = offset_bytes.saturating_add(now);
            length_bytes -= now;
        }
        Ok(())
    }

    /// Does `action` to a zone, or with `None` to every zone that it is meant for.
    pub(crate) fn act(
        &self,
        action: ZoneAction,
        zone: Option<u32>,
        zrwa: bool,
    ) -> Result<(), Failure> {
        let all = zone.is_none();
        let what = match zone {
            Some(zone) => format!("{action:?} of zone {zone}"),
            None => format!("{action:?} of all zones"),
        };
        let lba = self.zone(zone.unwrap_or(0)).map_err(|failure| failure.about(&what))?;
        let done = self.direct.call(Call::Zone(ZoneAsk { action, lba, all, zrwa }));
        done.map(drop).map_err(|error| Failure::from(error).about(&what))
    }

    pub(crate) fn commit(&self, end_bytes: u64) -> Result<(), Failure> {
        let about = |failure: Failure| failure.about(format_args!("commit up to {end_bytes}"));
        self.zones().map_err(about)?;
        let last = end_bytes.checked_sub(self.block_bytes);
        let last = last.ok_or_else(|| about(Status::InvalidField.into()))?;
        let (lba, _) = self.sectors(last, self.block_bytes).map_err(about)?;
        let ask = ZoneAsk::new(ZoneAction::FlushZrwa, lba);
        let done = self.direct.call(Call::Zone(ask)).map(drop);
        done.map_err(|error| about(error.into()))
    }

    /// Describes up to `count` zones from `first` on.
    pub(crate) fn report(&self, first: u32, count: u32) -> Result<Vec<leyden_zone>, Failure> {
        let start = self.zone(first)?;
        let count = count.min(self.zones()?.count - first);
        self.direct.ask_report(start, count)?;
        let describe = |drive: &Drive| {
            let ssd = drive.device().zoned().expect("a zoned drive");
            let describe = |number: u32| {
                let zone = ssd.zone(ZoneId(number));
                let bytes = |lba: Lba| lba.0 * SECTOR_BYTES;
                leyden_zone {
                    zone: number,
                    state: state_of(zone.state),
                    attributes: if zone.has_zrwa { LEYDEN_ZONE_HAS_ZRWA } else { 0 }
                        | if zone.is_changed { LEYDEN_ZONE_CHANGED } else { 0 },
                    reserved: 0,
                    start_bytes: bytes(zone.start),
                    capacity_bytes: zone.capacity * SECTOR_BYTES,
                    write_pointer_bytes: zone.write_pointer.map_or(LEYDEN_NO_OFFSET, bytes),
                    held_bytes: ssd.held_sectors(ZoneId(number)) * SECTOR_BYTES,
                }
            };
            (first..first + count).map(describe).collect()
        };
        Ok(self.direct.with_drive(describe))
    }

    pub(crate) fn identity(&self) -> leyden_identity {
        self.direct.with_drive(|drive| self.identity_of(drive))
    }

    fn identity_of(&self, drive: &Drive) -> leyden_identity {
        let unit = u64::from(drive.unit_bytes());
        let device = drive.device();
        let mut identity = leyden_identity {
            size: 0,
            is_zoned: 0,
            block_bytes: self.block_bytes as u32,
            unit_bytes: drive.unit_bytes(),
            capacity_bytes: drive.capacity_sectors() * SECTOR_BYTES,
            transfer_max_bytes: TRANSFER_MOST,
            region: region_of(drive.config().device.buffer.region),
            zone_count: 0,
            zone_size_bytes: 0,
            zone_capacity_bytes: 0,
            open_max: 0,
            active_max: 0,
            append_max_bytes: 0,
            zrwa_size_bytes: 0,
            zrwa_granularity_bytes: 0,
            zrwa_max: 0,
            reads_across_zones: 0,
            protected_bytes: 0,
            plain_bytes: 0,
        };
        if let Some(ssd) = device.zoned() {
            let (shape, pools) = (ssd.zone_shape(), ssd.pool_sizes());
            identity.is_zoned = 1;
            identity.zone_count = shape.zones;
            identity.zone_size_bytes = u64::from(shape.size) * unit;
            identity.zone_capacity_bytes = u64::from(shape.capacity) * unit;
            (identity.open_max, identity.active_max) = (shape.max_open, shape.max_active);
            identity.append_max_bytes = u64::from(shape.append_limit) * unit;
            identity.zrwa_size_bytes = u64::from(shape.zrwa_size) * unit;
            identity.zrwa_granularity_bytes = u64::from(shape.zrwa_granularity) * unit;
            identity.zrwa_max = shape.zrwa_count;
            identity.reads_across_zones = u32::from(shape.reads_across);
            identity.protected_bytes = u64::from(pools.protected) * unit;
            identity.plain_bytes = u64::from(pools.plain) * unit;
        } else {
            let buffer = &drive.config().device.buffer;
            let protected = match buffer.region {
                Region::None => 0,
                Region::Selective => buffer.protected_size.get(),
                Region::Full => buffer.size.get(),
            };
            identity.protected_bytes = protected;
            identity.plain_bytes = buffer.size.get().saturating_sub(protected);
        }
        identity
    }

    pub(crate) fn stats(&self) -> Result<leyden_stats, Failure> {
        let counts = self.direct.counts();
        self.direct.with_drive(|drive| {
            let unit = u64::from(drive.unit_bytes());
            let (info, stats) = (drive.info()?, drive.device().stats());
            let ftl = &stats.ftl;
            let programmed = ftl.user_units + ftl.gc.copied_units + ftl.padded_units;
            let mut told = leyden_stats {
                size: 0,
                is_on: u32::from(!drive.is_off()),
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
                zone_resets: 0,
                flushes_waited: 0,
                discarded_protected_bytes: 0,
                protected_bytes: 0,
                protected_peak_bytes: 0,
                plain_bytes: stats.buffered_units.get() * unit,
                open_zones: 0,
                active_zones: 0,
                image_bytes: info.allocated_bytes,
                log_bytes: info.log_bytes,
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
        })
    }

    /// Every counter, as JSON.
    pub(crate) fn stats_json(&self) -> String {
        let stats = self.direct.with_drive(|drive| {
            let device = drive.device();
            let zoned = device.zoned().map(leyden_device::ZnsSsd::zoned_stats);
            serde_json::json!({ "time_ns": drive.now().as_ns(), "device": device.stats(), "zoned": zoned })
        });
        stats.to_string()
    }

    /// The last power cut, and what was lost with it, in bytes.
    pub(crate) fn last_cut(&self) -> Result<CutReport, Failure> {
        let none = || Failure::new(LEYDEN_E_NOT_FOUND, "there was no power cut yet");
        self.direct.last_cut().ok_or_else(none)
    }
}

const fn state_of(state: ZoneState) -> u32 {
    match state {
        ZoneState::Empty => LEYDEN_ZONE_EMPTY,
        ZoneState::ImplicitlyOpen => LEYDEN_ZONE_IMPLICITLY_OPEN,
        ZoneState::ExplicitlyOpen => LEYDEN_ZONE_EXPLICITLY_OPEN,
        ZoneState::Closed => LEYDEN_ZONE_CLOSED,
        ZoneState::ReadOnly => LEYDEN_ZONE_READ_ONLY,
        ZoneState::Full => LEYDEN_ZONE_FULL,
        ZoneState::Offline => LEYDEN_ZONE_OFFLINE,
    }
}

const fn region_of(region: Region) -> u32 {
    match region {
        Region::None => LEYDEN_REGION_NONE,
        Region::Selective => LEYDEN_REGION_SELECTIVE,
        Region::Full => LEYDEN_REGION_FULL,
    }
}

/// Ranges of sectors, in bytes.
pub(crate) fn in_bytes(ranges: &[(u64, u64)]) -> impl ExactSizeIterator<Item = leyden_range> + '_ {
    ranges.iter().map(|&(lba, sectors)| leyden_range {
        offset_bytes: lba * SECTOR_BYTES,
        length_bytes: sectors * SECTOR_BYTES,
    })
}

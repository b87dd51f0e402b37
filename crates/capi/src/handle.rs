//! A caller's handle of a drive: what is asked in bytes is checked here, and passed on to its [`Client`].

use std::path::Path;
use std::sync::Arc;

use leyden_device::{Lba, PowerLoss, SECTOR_BYTES, Status, ZoneAction};
use leyden_image::{Drive, WriteFlags, ZoneAsk};
use leyden_serve::about::{DriveStats, Identity, ZoneLine};
use leyden_serve::{ControlSocket, CutReport, Direct, Pace, Remote, RestoreReport};

use crate::client::{Client, InProcess};
use crate::statuses::Failure;
use crate::types::*;

/// The bytes that one trim command covers at most.
const TRIM_BYTES: u64 = 1 << 30;

/// How an image is opened.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    pub(crate) pace: Pace,
    pub(crate) record: Option<&'a Path>,
    pub(crate) stays_off: bool,
    pub(crate) has_control: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Handle {
    client: Box<dyn Client>,
    identity: Identity,
}

/// The header promises that threads may share a handle.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Handle>();
};

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
        let identity = Identity::of(&drive);
        let direct = Arc::new(Direct::new(drive, options.pace));
        if let Some(loss) = &opened.cut {
            direct.note_cut(loss);
        }
        let control = options.has_control.then(|| ControlSocket::open(&direct)).transpose();
        let control = control.map_err(|error| Failure::new(LEYDEN_E_IO, error.to_string()))?;
        let client = Box::new(InProcess::new(direct, control));
        Ok((Self { client, identity }, opened.cut, opened.replayed))
    }

    /// Connects to a drive that is served.
    pub(crate) fn connect(socket: &Path, claims: bool) -> Result<Self, Failure> {
        let remote = Remote::connect(socket, claims)?;
        let identity = remote.identify()?;
        if identity.block_bytes == 0 || (identity.is_zoned && identity.zone_size_bytes == 0) {
            return Err(Failure::new(LEYDEN_E_FOREIGN, "the server describes no drive"));
        }
        Ok(Self { client: Box::new(remote), identity })
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        self.client.close()
    }

    /// Leaves the image as a killed process would.
    pub(crate) fn abandon(self) {
        self.client.abandon();
    }

    /// The sectors of a range of bytes.
    fn sectors(&self, offset_bytes: u64, length_bytes: u64) -> Result<(Lba, u32), Failure> {
        let block_bytes = u64::from(self.identity.block_bytes);
        let whole = |bytes: u64| bytes.is_multiple_of(block_bytes);
        if length_bytes == 0 || !whole(offset_bytes) || !whole(length_bytes) {
            let what = format!("offset and length are no multiples of {block_bytes} bytes");
            return Err(Failure::from(Status::InvalidField).about(what));
        }
        Ok((Lba(offset_bytes / SECTOR_BYTES), (length_bytes / SECTOR_BYTES) as u32))
    }

    /// Checks a range that is read or written at once.
    fn check_transfer(&self, offset_bytes: u64, length_bytes: usize) -> Result<(), Failure> {
        let most = self.identity.transfer_max_bytes;
        if length_bytes as u64 > most {
            return Err(Failure::argument(format!("more than {most} bytes, the most at once")));
        }
        self.sectors(offset_bytes, length_bytes as u64).map(drop)
    }

    fn check_zoned(&self) -> Result<(), Failure> {
        if self.identity.is_zoned {
            return Ok(());
        }
        let what = "the drive is a conventional one, and has no zones";
        Err(Failure::new(LEYDEN_E_NOT_ZONED, what))
    }

    /// The offset of a zone.
    fn zone(&self, zone: u32) -> Result<u64, Failure> {
        self.check_zoned()?;
        let count = self.identity.zone_count;
        if zone >= count {
            let what = format!("there is no zone {zone}: there are {count}");
            return Err(Failure::new(LEYDEN_E_NOT_FOUND, what));
        }
        Ok(u64::from(zone) * self.identity.zone_size_bytes)
    }

    pub(crate) fn read(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        let length = buffer.len();
        let about = |failure: Failure| {
            failure.about(format_args!("read of {length} bytes at {offset_bytes}"))
        };
        self.check_transfer(offset_bytes, length).map_err(about)?;
        self.client.read(offset_bytes, buffer).map_err(about)
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
        self.check_transfer(offset_bytes, data.len()).map_err(about)?;
        self.client.write(offset_bytes, data, flags).map_err(about)
    }

    /// Returns the offset at which the data lies.
    pub(crate) fn append(&self, zone: u32, data: &[u8], flags: WriteFlags) -> Result<u64, Failure> {
        let about = |failure: Failure| {
            failure.about(format_args!("append of {} bytes to zone {zone}", data.len()))
        };
        let start = self.zone(zone).map_err(about)?;
        self.check_transfer(start, data.len()).map_err(about)?;
        self.client.append(start, data, flags).map_err(about)
    }

    pub(crate) fn flush(&self) -> Result<(), Failure> {
        self.client.flush().map_err(|failure| failure.about("flush"))
    }

    pub(crate) fn trim(&self, mut offset_bytes: u64, mut length_bytes: u64) -> Result<(), Failure> {
        while length_bytes > 0 {
            let now = length_bytes.min(TRIM_BYTES);
            self.sectors(offset_bytes, now)?;
            self.client.trim(offset_bytes, now)?;
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
        let start = self.zone(zone.unwrap_or(0)).map_err(|failure| failure.about(&what))?;
        let ask = ZoneAsk { action, lba: Lba(start / SECTOR_BYTES), all, zrwa };
        self.client.change(ask).map_err(|failure| failure.about(&what))
    }

    pub(crate) fn commit(&self, end_bytes: u64) -> Result<(), Failure> {
        let about = |failure: Failure| failure.about(format_args!("commit up to {end_bytes}"));
        self.check_zoned().map_err(about)?;
        let block_bytes = u64::from(self.identity.block_bytes);
        let last = end_bytes.checked_sub(block_bytes);
        let last = last.ok_or_else(|| about(Status::InvalidField.into()))?;
        let (lba, _) = self.sectors(last, block_bytes).map_err(about)?;
        self.client.change(ZoneAsk::new(ZoneAction::FlushZrwa, lba)).map_err(about)
    }

    /// Describes up to `count` zones from `first` on.
    pub(crate) fn report(&self, first: u32, count: u32) -> Result<Vec<leyden_zone>, Failure> {
        let start = self.zone(first)?;
        let count = count.min(self.identity.zone_count - first);
        let zones = self.client.zones(first, start, count)?;
        Ok(zones.into_iter().map(zone_of).collect())
    }

    pub(crate) fn identity(&self) -> leyden_identity {
        let Identity {
            is_zoned,
            block_bytes,
            unit_bytes,
            capacity_bytes,
            transfer_max_bytes,
            region,
            zone_count,
            zone_size_bytes,
            zone_capacity_bytes,
            open_max,
            active_max,
            append_max_bytes,
            zrwa_size_bytes,
            zrwa_granularity_bytes,
            zrwa_max,
            reads_across_zones,
            protected_bytes,
            plain_bytes,
        } = self.identity;
        leyden_identity {
            size: 0,
            is_zoned: u32::from(is_zoned),
            block_bytes,
            unit_bytes,
            capacity_bytes,
            transfer_max_bytes,
            region,
            zone_count,
            zone_size_bytes,
            zone_capacity_bytes,
            open_max,
            active_max,
            append_max_bytes,
            zrwa_size_bytes,
            zrwa_granularity_bytes,
            zrwa_max,
            reads_across_zones: u32::from(reads_across_zones),
            protected_bytes,
            plain_bytes,
        }
    }

    pub(crate) fn stats(&self) -> Result<leyden_stats, Failure> {
        Ok(stats_of(&self.client.stats()?))
    }

    /// Every counter, as JSON.
    pub(crate) fn stats_json(&self) -> Result<String, Failure> {
        self.client.stats_json()
    }

    pub(crate) fn mark(&self, text: &[u8]) -> Result<(), Failure> {
        self.client.mark(text)
    }

    pub(crate) fn cut(&self) -> Result<CutReport, Failure> {
        self.client.cut()
    }

    pub(crate) fn restore(&self, capacitance_nf: u64) -> Result<RestoreReport, Failure> {
        self.client.restore(capacitance_nf)
    }

    /// The last power cut, and its losses, in bytes.
    pub(crate) fn last_cut(&self) -> Result<CutReport, Failure> {
        self.client.last_cut()
    }
}

fn zone_of(zone: ZoneLine) -> leyden_zone {
    leyden_zone {
        zone: zone.zone,
        state: u32::from(zone.state),
        attributes: if zone.has_area { LEYDEN_ZONE_HAS_ZRWA } else { 0 }
            | if zone.is_changed { LEYDEN_ZONE_CHANGED } else { 0 },
        reserved: 0,
        start_bytes: zone.start,
        capacity_bytes: zone.capacity,
        write_pointer_bytes: zone.write_pointer,
        held_bytes: zone.held,
    }
}

const fn stats_of(stats: &DriveStats) -> leyden_stats {
    leyden_stats {
        size: 0,
        is_on: stats.is_on as u32,
        time_ns: stats.time_ns,
        reads: stats.reads,
        read_bytes: stats.read_bytes,
        writes: stats.writes,
        written_bytes: stats.written_bytes,
        flushes: stats.flushes,
        failures: stats.failures,
        programmed_bytes: stats.programmed_bytes,
        padded_bytes: stats.padded_bytes,
        dumped_pages: stats.dumped_pages,
        erases: stats.erases,
        bad_blocks: stats.bad_blocks,
        stalled_ns: stats.stalled_ns,
        zone_resets: stats.zone_resets,
        flushes_waited: stats.flushes_waited,
        discarded_protected_bytes: stats.discarded_protected_bytes,
        protected_bytes: stats.protected_bytes,
        protected_peak_bytes: stats.protected_peak_bytes,
        plain_bytes: stats.plain_bytes,
        open_zones: stats.open_zones,
        active_zones: stats.active_zones,
        image_bytes: stats.image_bytes,
        log_bytes: stats.log_bytes,
    }
}

/// Ranges of sectors, in bytes.
pub(crate) fn in_bytes(ranges: &[(u64, u64)]) -> impl ExactSizeIterator<Item = leyden_range> + '_ {
    ranges.iter().map(|&(lba, sectors)| leyden_range {
        offset_bytes: lba * SECTOR_BYTES,
        length_bytes: sectors * SECTOR_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use leyden_device::{Region, ZoneState};
    use leyden_serve::about;

    use super::*;

    #[test]
    fn states_and_regions_have_the_numbers_of_the_header() {
        for (state, code) in [
            (ZoneState::Empty, LEYDEN_ZONE_EMPTY),
            (ZoneState::ImplicitlyOpen, LEYDEN_ZONE_IMPLICITLY_OPEN),
            (ZoneState::ExplicitlyOpen, LEYDEN_ZONE_EXPLICITLY_OPEN),
            (ZoneState::Closed, LEYDEN_ZONE_CLOSED),
            (ZoneState::ReadOnly, LEYDEN_ZONE_READ_ONLY),
            (ZoneState::Full, LEYDEN_ZONE_FULL),
            (ZoneState::Offline, LEYDEN_ZONE_OFFLINE),
        ] {
            assert_eq!(u32::from(state.code()), code, "{state:?}");
        }
        for (region, number) in [
            (Region::None, LEYDEN_REGION_NONE),
            (Region::Selective, LEYDEN_REGION_SELECTIVE),
            (Region::Full, LEYDEN_REGION_FULL),
        ] {
            assert_eq!(about::number_of(region), number, "{region:?}");
        }
    }
}

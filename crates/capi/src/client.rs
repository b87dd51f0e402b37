//! The drive behind a handle: in this process, or served by another one.

use std::fmt::Debug;
use std::sync::Arc;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_image::{Done, WriteFlags, ZoneAsk};
use leyden_serve::about::{self, DriveStats, ZoneLine};
use leyden_serve::{Call, ControlSocket, CutReport, Direct, Remote, RestoreReport};
use leyden_sim::Capacitance;

use crate::statuses::Failure;
use crate::types::LEYDEN_E_NOT_FOUND;

/// The commands and questions that a handle passes on. Offsets and lengths are in bytes, and of whole sectors.
pub(crate) trait Client: Debug + Send + Sync {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Failure>;
    fn write(&self, offset: u64, data: &[u8], flags: WriteFlags) -> Result<(), Failure>;
    /// Returns the offset at which the data lies. `start` is the zone's.
    fn append(&self, start: u64, data: &[u8], flags: WriteFlags) -> Result<u64, Failure>;
    fn flush(&self) -> Result<(), Failure>;
    fn trim(&self, offset: u64, length: u64) -> Result<(), Failure>;
    fn change(&self, ask: ZoneAsk) -> Result<(), Failure>;
    /// Describes `count` zones from `first` on, which begins at `start`.
    fn zones(&self, first: u32, start: u64, count: u32) -> Result<Vec<ZoneLine>, Failure>;
    fn stats(&self) -> Result<DriveStats, Failure>;
    /// Every counter, as JSON.
    fn stats_json(&self) -> Result<String, Failure>;
    fn mark(&self, text: &[u8]) -> Result<(), Failure>;
    fn cut(&self) -> Result<CutReport, Failure>;
    /// 0 nF leaves the bank as it is.
    fn restore(&self, capacitance_nf: u64) -> Result<RestoreReport, Failure>;
    fn last_cut(&self) -> Result<CutReport, Failure>;
    fn close(self: Box<Self>) -> Result<(), Failure>;
    /// Leaves the image as a killed process would.
    fn abandon(self: Box<Self>);
}

/// A drive in an image that this process has open.
#[derive(Debug)]
pub(crate) struct InProcess {
    direct: Arc<Direct>,
    control: Option<ControlSocket>,
}

impl InProcess {
    pub(crate) const fn new(direct: Arc<Direct>, control: Option<ControlSocket>) -> Self {
        Self { direct, control }
    }

    /// The owner of the drive, once the handle is not needed any more. The control socket closes first.
    fn alone(self) -> Direct {
        let Self { mut direct, control } = self;
        drop(control);
        loop {
            match Arc::try_unwrap(direct) {
                Ok(direct) => return direct,
                // A client of the control socket is being answered.
                Err(shared) => direct = shared,
            }
            std::thread::yield_now();
        }
    }
}

impl Client for InProcess {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        Ok(self.direct.read(Lba(offset / SECTOR_BYTES), buffer)?)
    }

    fn write(&self, offset: u64, data: &[u8], flags: WriteFlags) -> Result<(), Failure> {
        let lba = Lba(offset / SECTOR_BYTES);
        Ok(self.direct.call(Call::Write(lba, data, flags)).map(drop)?)
    }

    fn append(&self, start: u64, data: &[u8], flags: WriteFlags) -> Result<u64, Failure> {
        let lba = Lba(start / SECTOR_BYTES);
        let Done { appended, .. } = self.direct.call(Call::Append(lba, data, flags))?;
        Ok(appended.expect("an append that has ended well").0 * SECTOR_BYTES)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.direct.call(Call::Flush).map(drop)?)
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), Failure> {
        let (lba, sectors) = (Lba(offset / SECTOR_BYTES), (length / SECTOR_BYTES) as u32);
        Ok(self.direct.call(Call::Trim(lba, sectors)).map(drop)?)
    }

    fn change(&self, ask: ZoneAsk) -> Result<(), Failure> {
        Ok(self.direct.call(Call::Zone(ask)).map(drop)?)
    }

    fn zones(&self, first: u32, start: u64, count: u32) -> Result<Vec<ZoneLine>, Failure> {
        self.direct.ask_report(Lba(start / SECTOR_BYTES), count)?;
        Ok(self.direct.with_drive(|drive| about::zones(drive, first, count)))
    }

    fn stats(&self) -> Result<DriveStats, Failure> {
        let counts = self.direct.counts();
        Ok(self.direct.with_drive(|drive| DriveStats::of(drive, counts))?)
    }

    fn stats_json(&self) -> Result<String, Failure> {
        Ok(self.direct.with_drive(about::all_stats))
    }

    fn mark(&self, text: &[u8]) -> Result<(), Failure> {
        Ok(self.direct.mark(text)?)
    }

    fn cut(&self) -> Result<CutReport, Failure> {
        Ok(self.direct.cut()?)
    }

    fn restore(&self, capacitance_nf: u64) -> Result<RestoreReport, Failure> {
        let bank = (capacitance_nf > 0).then(|| Capacitance::from_nf(capacitance_nf));
        Ok(self.direct.restore(bank)?)
    }

    fn last_cut(&self) -> Result<CutReport, Failure> {
        let none = || Failure::new(LEYDEN_E_NOT_FOUND, "there was no power cut yet");
        self.direct.last_cut().ok_or_else(none)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.alone().close()?)
    }

    fn abandon(self: Box<Self>) {
        drop(self.alone());
    }
}

impl Client for Remote {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Failure> {
        Ok(self.read(offset, buffer)?)
    }

    fn write(&self, offset: u64, data: &[u8], flags: WriteFlags) -> Result<(), Failure> {
        Ok(self.write(offset, data, flags)?)
    }

    fn append(&self, start: u64, data: &[u8], flags: WriteFlags) -> Result<u64, Failure> {
        Ok(self.append(start, data, flags)?)
    }

    fn flush(&self) -> Result<(), Failure> {
        Ok(self.flush()?)
    }

    fn trim(&self, offset: u64, length: u64) -> Result<(), Failure> {
        Ok(self.trim(offset, length)?)
    }

    fn change(&self, ask: ZoneAsk) -> Result<(), Failure> {
        Ok(self.zone(ask.lba.0 * SECTOR_BYTES, ask)?)
    }

    fn zones(&self, _: u32, start: u64, count: u32) -> Result<Vec<ZoneLine>, Failure> {
        Ok(self.zones(start, count)?)
    }

    fn stats(&self) -> Result<DriveStats, Failure> {
        Ok(self.stats()?)
    }

    fn stats_json(&self) -> Result<String, Failure> {
        Ok(self.all_stats()?)
    }

    fn mark(&self, text: &[u8]) -> Result<(), Failure> {
        Ok(self.mark(text)?)
    }

    fn cut(&self) -> Result<CutReport, Failure> {
        Ok(self.cut()?)
    }

    fn restore(&self, capacitance_nf: u64) -> Result<RestoreReport, Failure> {
        Ok(self.restore(capacitance_nf)?)
    }

    fn last_cut(&self) -> Result<CutReport, Failure> {
        Ok(self.last_cut()?)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(()) // it hangs up
    }

    fn abandon(self: Box<Self>) {}
}

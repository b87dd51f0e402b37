//! The drive on top of an image.

mod done;
mod journal;
mod look;
mod record;
mod replay;
mod spare;
#[cfg(test)]
mod torn;

pub use done::Done;
pub use look::{Checked, DriveInfo};

use std::path::Path;

use leyden_device::{
    Completion, Hint, Lba, MOST_RANGES, Output, PowerLoss, Recovery, SECTOR_BYTES, Status,
};
use leyden_sim::{Capacitance, ConfigError, Time};

use crate::asked::{WriteFlags, ZoneAsk};
use crate::clock::{Clock, ClockPage};
use crate::content::Content;
use crate::device::Device;
use crate::file::ImageFile;
use crate::layout::{ImageConfig, Regions, Root, write_head};
use crate::log::{Event, Log};
use crate::powered::Powered;
use crate::recording::Recorder;
use crate::{ImageError, Places};
use spare::Spare;

/// Findings of opening an image.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The power cut that the kill of the last process was; `None` if it closed the image.
    pub cut: Option<PowerLoss>,
    /// Entries of the log that were run again.
    pub replayed: u64,
}

/// A drive whose state is in an image. Times are the drive's own, from zero when it was made.
#[derive(Debug)]
pub struct Drive {
    file: ImageFile,
    regions: Regions,
    powered: Powered,
    content: Content,
    log: Log,
    root: Root,
    clock: ClockPage,
    recorder: Option<Recorder>,
    /// Room for the next checkpoint, and whether one would give room back.
    spare: Spare,
    /// Completed commands that have not been reported yet.
    ended: Vec<Done>,
    /// Kept to save an allocation.
    completions: Vec<Completion<Places>>,
}

impl Drive {
    /// A new image with an empty drive.
    ///
    /// # Errors
    /// If the configuration is impossible or has no `power` table, or there is such a file.
    pub fn create(path: &Path, config: ImageConfig) -> Result<Self, ImageError> {
        if config.drives().any(|device| device.power.is_none()) {
            let problem = "an image needs to know what happens when the power goes; add the table, as in \
                           --set device.power.dump=in_place";
            return Err(ConfigError::new("power", problem).into());
        }
        let powered = Powered::new(config)?;
        let file = ImageFile::create(path)?;
        let is_named = path.exists();
        let made = Self::fill(file, powered).and_then(|mut drive| {
            drive.file.publish()?;
            Ok(drive)
        });
        if made.is_err() && is_named {
            // It was not there before.
            let _ = std::fs::remove_file(path);
        }
        made
    }

    fn fill(file: ImageFile, powered: Powered) -> Result<Self, ImageError> {
        let device = powered.device();
        let units = device.units();
        let regions = Regions::new(units);
        write_head(&file, powered.config(), units)?;
        let root = Root {
            generation: 0,
            checkpoint_bytes: 0,
            first_sequence: 0,
            time: device.now(),
            is_closed: false,
        };
        let content = Content::new(regions.content(), device.unit_bytes(), Vec::new());
        let log = Log::empty(regions, 0);
        let clock = ClockPage::new();
        let mut drive = Self::with(file, regions, powered, content, log, root, clock);
        drive.checkpoint(true)?;
        Ok(drive)
    }

    /// The drive's configuration.
    pub const fn config(&self) -> &ImageConfig {
        self.powered.config()
    }
    /// The device: for its counters.
    pub const fn device(&self) -> &Device {
        self.powered.device()
    }
    /// The drive's time.
    pub fn now(&self) -> Time {
        self.device().now()
    }
    /// Sectors that can be addressed.
    pub fn capacity_sectors(&self) -> u64 {
        self.device().capacity_sectors()
    }
    /// Bytes of a mapping unit.
    pub fn unit_bytes(&self) -> u32 {
        self.device().unit_bytes()
    }
    /// True if the power is off.
    pub const fn is_off(&self) -> bool {
        self.powered.is_off()
    }
    /// Where the image is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// When the drive next does something by itself.
    pub fn next_event(&self) -> Option<Time> {
        if self.ended.is_empty() { self.device().next_event() } else { Some(self.now()) }
    }

    /// Asks for a read, at `now`.
    ///
    /// # Errors
    /// If the image cannot be written; the command is not heard of then. The same for all commands.
    pub fn read(&mut self, now: Time, tag: u32, lba: Lba, sectors: u32) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::Read(lba, sectors))
    }

    /// Asks for a flush.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn flush(&mut self, now: Time, tag: u32) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::Flush)
    }

    /// Asks for a trim.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn trim(&mut self, now: Time, tag: u32, lba: Lba, sectors: u32) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::Trim(lba, sectors))
    }

    /// Announces writes: at least one range, and at most [`MOST_RANGES`]. Zones, and block devices on two
    /// drives, make nothing of it.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn write_prepare(
        &mut self,
        now: Time,
        tag: u32,
        ranges: Vec<Hint>,
    ) -> Result<(), ImageError> {
        // The device would say the same, but logs and recordings have no room for more.
        if ranges.len() > MOST_RANGES && !self.is_off() {
            self.ended.push(Done::bare(tag, Status::InvalidField, now.max(self.now())));
            return Ok(());
        }
        self.submit(now, tag, &Event::WritePrepare(ranges))
    }

    /// Asks for zeroes.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn write_zeroes(
        &mut self,
        now: Time,
        tag: u32,
        lba: Lba,
        sectors: u32,
        fua: bool,
    ) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::WriteZeroes(lba, sectors, fua))
    }

    /// Asks for a write of `data`, which is a whole number of sectors.
    ///
    /// # Errors
    /// As [`Drive::read`].
    ///
    /// # Panics
    /// If `data` is not a whole number of sectors.
    pub fn write(
        &mut self,
        now: Time,
        tag: u32,
        lba: Lba,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<(), ImageError> {
        self.put(now, tag, lba, data, |sectors, slots| Event::Write { lba, sectors, flags, slots })
    }

    /// Asks for an append of `data`, which is a whole number of sectors, to the zone that begins at `lba`.
    ///
    /// # Errors
    /// As [`Drive::read`].
    ///
    /// # Panics
    /// If `data` is not a whole number of sectors.
    pub fn append(
        &mut self,
        now: Time,
        tag: u32,
        lba: Lba,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<(), ImageError> {
        self.put(now, tag, lba, data, |sectors, slots| Event::Append { lba, sectors, flags, slots })
    }

    /// Asks for a change of zones.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn zone(&mut self, now: Time, tag: u32, ask: ZoneAsk) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::Zone(ask))
    }

    /// Asks for a report of `most` zones at most, from the one of `lba` on.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn zone_report(
        &mut self,
        now: Time,
        tag: u32,
        lba: Lba,
        most: u32,
    ) -> Result<(), ImageError> {
        self.submit(now, tag, &Event::ZoneReport(lba, most))
    }

    /// Asks for what carries data. `event` makes it of the number of sectors and the slots that they take.
    fn put(
        &mut self,
        now: Time,
        tag: u32,
        lba: Lba,
        data: &[u8],
        event: impl FnOnce(u32, Vec<(u32, u32)>) -> Event,
    ) -> Result<(), ImageError> {
        assert!((data.len() as u64).is_multiple_of(SECTOR_BYTES), "a part of a sector");
        let sectors = (data.len() as u64 / SECTOR_BYTES) as u32;
        if !self.is_heard(now, tag, lba, sectors) {
            return Ok(());
        }
        self.catch_up(now)?;
        let units = self.content.slots_of(lba, sectors);
        self.make_room(units)?;
        let slots = self.store(lba, units, data).inspect_err(|error| self.spare.refused(error))?;
        // Nothing can fail from here on: a log that is run again takes the same slots.
        assert!(self.content.take(&slots), "slots that were handed out meanwhile");
        self.happens(self.now(), tag, &event(sectors, slots), data);
        Ok(())
    }

    /// Makes sure that `count` slots are free.
    fn make_room(&mut self, count: u32) -> Result<(), ImageError> {
        if self.content.is_short_of(count) {
            self.content.keep_used_by(self.powered.device(), count);
            // Free space may have been in use when the clock was last written.
            self.write_clock()?;
        }
        Ok(())
    }

    /// False if a command ends at once.
    fn is_heard(&mut self, now: Time, tag: u32, lba: Lba, sectors: u32) -> bool {
        let Some(status) = self.refuses(lba, sectors) else { return true };
        self.ended.push(Done::bare(tag, status, now.max(self.now())));
        false
    }

    /// How a command ends at once: there is no power, or its range is not the drive's.
    fn refuses(&self, lba: Lba, sectors: u32) -> Option<Status> {
        let end = lba.0.checked_add(u64::from(sectors));
        if self.is_off() {
            Some(Status::NotReady)
        } else if sectors == 0 {
            Some(Status::InvalidField)
        } else if end.is_none_or(|end| end > self.capacity_sectors()) {
            Some(Status::LbaOutOfRange)
        } else {
            None
        }
    }

    fn submit(&mut self, now: Time, tag: u32, event: &Event) -> Result<(), ImageError> {
        let (lba, sectors) = event.range().unwrap_or((Lba(0), 1));
        if self.is_heard(now, tag, lba, sectors) {
            self.catch_up(now)?;
            self.log.prepare(&self.file, event.slots())?;
            self.happens(self.now(), tag, event, &[]);
        }
        Ok(())
    }

    /// Logs an event, whose space has been reserved, and lets it happen to the device. `data` are a write's bytes.
    fn happens(&mut self, time: Time, tag: u32, event: &Event, data: &[u8]) {
        self.note(time, event, data);
        let command = self.content.command(event).expect("an event that is a command");
        self.powered.submit(time, command.tag(tag));
    }

    /// Logs an event before the device sees it; its space has been reserved.
    fn note(&mut self, time: Time, event: &Event, data: &[u8]) {
        self.log.append(time, event);
        if let Some(recorder) = &mut self.recorder {
            recorder.event(time, event, data);
        }
    }

    /// Runs the device up to `now`, before the next command is submitted.
    fn catch_up(&mut self, now: Time) -> Result<(), ImageError> {
        let mut completions = std::mem::take(&mut self.completions);
        self.powered.advance(now, &mut completions);
        for completion in completions.drain(..) {
            // The bytes too: the drive may have no use for them any more.
            self.ended.push(self.done(completion)?);
        }
        self.completions = completions;
        self.follow_journal()
    }

    /// Runs the drive up to `now`. Adds completed commands to `done`; clients may now hear of them.
    ///
    /// # Errors
    /// If the image cannot be read or written: the server must not go on with it.
    pub fn advance(&mut self, now: Time, done: &mut Vec<Done>) -> Result<(), ImageError> {
        self.catch_up(now)?;
        if !self.ended.is_empty() {
            // The image must know of a completion before its client does.
            self.write_clock()?;
            done.append(&mut self.ended);
        }
        Ok(())
    }

    /// Runs the drive until `count` commands have completed, or no more can, without waiting for wall time.
    /// [`Drive::advance`] then reports them.
    ///
    /// # Errors
    /// As [`Drive::advance`].
    pub fn finish(&mut self, count: usize) -> Result<(), ImageError> {
        while self.ended.len() < count
            && let Some(next) = self.device().next_event()
        {
            self.catch_up(next)?;
        }
        Ok(())
    }

    /// Runs the drive until the one command that is under way has completed, without waiting for wall time.
    ///
    /// # Errors
    /// If it fails, or as [`Drive::advance`].
    pub fn finish_one(&mut self) -> Result<(), ImageError> {
        self.finish(1)?;
        let mut done = Vec::new();
        self.advance(self.now(), &mut done)?;
        match done.first().map(|done| done.status) {
            Some(Status::Success) => Ok(()),
            other => {
                let what = format!("the drive could not execute the command: {other:?}");
                Err(std::io::Error::other(what).into())
            }
        }
    }

    fn done(&self, completion: Completion<Places>) -> Result<Done, ImageError> {
        let Completion { tag, status, time, output, .. } = completion;
        let mut done = Done::bare(tag, status, time);
        match output {
            Output::None => {}
            Output::Read(places) => match self.content.read(&self.file, &places) {
                Ok(Some(data)) => done.data = data,
                Ok(None) => done.status = Status::UnrecoveredRead,
                // The length is a client's: it ends that client's command, and not the server.
                Err(error) if error.is_out_of_memory() => {
                    (done.status, done.no_memory) = (Status::UnrecoveredRead, true);
                }
                Err(error) => return Err(error),
            },
            Output::Appended(lba) => done.appended = Some(lba),
            Output::Zones(report) => done.zones = Some(report),
        }
        Ok(done)
    }

    /// Writes the log's pending entries, and then the clock.
    fn write_clock(&mut self) -> Result<(), ImageError> {
        self.log.settle(&self.file)?;
        let clock = Clock {
            generation: self.root.generation,
            time: self.now(),
            next_sequence: self.log.next_sequence(),
            digest: self.device().digest().value(),
        };
        self.clock.write(&self.file, clock)
    }

    /// The power fails, at `now`. Commands under way never end; who asked for them must be told so.
    ///
    /// # Errors
    /// If the image cannot be written.
    ///
    /// # Panics
    /// If the power is off.
    pub fn cut(&mut self, now: Time) -> Result<PowerLoss, ImageError> {
        self.catch_up(now)?;
        self.log.prepare(&self.file, 0)?;
        self.note(self.now(), &Event::Cut, &[]);
        let loss = self.powered.cut(self.now());
        self.write_clock()?;
        Ok(loss)
    }

    /// The power returns, at `now`, with another bank if `bank` names one.
    ///
    /// # Errors
    /// If that bank is impossible, or the image cannot be written.
    ///
    /// # Panics
    /// If the power is on.
    pub fn restore(
        &mut self,
        now: Time,
        bank: Option<Capacitance>,
    ) -> Result<Recovery, ImageError> {
        assert!(self.is_off(), "the power is on");
        self.powered.check_bank(bank)?; // before anything is changed
        let now = now.max(self.now());
        self.log.prepare(&self.file, 0)?;
        self.note(now, &Event::Restore(bank), &[]);
        let recovery = self.powered.restore(now, bank)?;
        self.find_journal()?;
        self.write_clock()?;
        Ok(recovery)
    }

    /// True if the drive is at rest: a checkpoint can be taken.
    pub fn is_idle(&self) -> bool {
        self.device().is_idle() && self.ended.is_empty()
    }

    /// Runs the drive until it is idle, without waiting for wall time. Completions are dropped.
    ///
    /// # Errors
    /// If the image cannot be written.
    pub fn rest(&mut self) -> Result<(), ImageError> {
        while !self.is_idle() && !self.is_off() {
            let Some(next) = self.next_event() else { break };
            self.advance(next, &mut Vec::new())?;
        }
        Ok(())
    }

    /// Closes the image: opening it again is no power cut. The drive must be at rest, or without power. One that can
    /// only be read, as its bank is too small for a dump, is never at rest: its log stays, and opening it again is a cut.
    ///
    /// # Errors
    /// If the image cannot be written.
    pub fn close(mut self) -> Result<(), ImageError> {
        if !self.is_off() && self.is_idle() {
            self.checkpoint(true)?;
        }
        self.file.sync()?;
        self.end_recording()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_sim::{Bytes, Ratio};

    fn drive(folder: &tempfile::TempDir) -> Drive {
        let mut device = leyden_device::Config::default();
        (device.nand.channels, device.nand.dies_per_channel) = (1, 2);
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (64, 16);
        device.ftl.over_provisioning = Ratio::from_percent(60);
        device.buffer.size = Bytes::new(128 << 10);
        device.power = Some(leyden_power::Config::default());
        let (name, made_by) = ("test".to_owned(), "test".to_owned());
        let config = ImageConfig { name, seed: 1, device, stack: None, made_by };
        Drive::create(&folder.path().join("disk.leyden"), config).unwrap()
    }

    #[test]
    fn bytes_of_commands_under_way_are_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut drive = drive(&folder);
        drive.write(drive.now(), 0, Lba(0), &[1; 4_096], WriteFlags::default()).unwrap();
        // It has not come as far as the buffer yet.
        let Device::Conventional(ssd) = drive.device() else { panic!("a conventional drive") };
        assert!(ssd.contents().all(|places| *places == Places::default()));
        assert!(drive.content.used_by(drive.device()).contains(0));
    }

    fn clock_of(drive: &Drive) -> Clock {
        ClockPage::read(&drive.file, crate::FORMAT_VERSION).unwrap().1
    }

    #[test]
    fn slots_are_used_again_only_behind_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        let mut drive = drive(&folder);
        let begin = clock_of(&drive).time;
        let mut written = 0;
        // No completion is reported: the clock is written only because slots run out.
        while clock_of(&drive).time == begin {
            let now = Time::from_ns(written * 1_000_000);
            drive
                .write(now, 0, Lba(written % 100 * 8), &[1; 4_096], WriteFlags::default())
                .unwrap();
            written += 1;
            assert!(written < 20_000, "{} slots were handed out", drive.content.slots_in_use());
        }
    }
}

//! Replay of recordings.

use std::sync::Arc;

use leyden_device::{Command, Completion, Lba, PowerLoss, Recovery, SECTOR_BYTES, Status};
use leyden_sim::{Capacitance, Time};
use thiserror::Error;

use super::error::RecordingError;
use super::format::Step;
use super::reader::Recording;
use crate::asked;
use crate::device::Device;
use crate::powered::Powered;
use crate::{ImageError, Places};

/// The replayed drive has done something else than the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the drive differs from the recorded one at step {step}, {time_ns} ns; it was recorded by leyden {made_by}"
)]
pub struct Diverged {
    /// Counted from zero.
    pub step: usize,
    /// The drive's clock.
    pub time_ns: u64,
    /// The version that recorded it.
    pub made_by: String,
}

/// A command that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The number of its step.
    pub step: usize,
    /// How it ended.
    pub status: Status,
    /// When, by the drive's clock.
    pub time: Time,
}

/// A drive that does again what it was recorded doing. A clone goes its own way: so a recording can be cut
/// at many moments at the cost of one replay.
///
/// ```no_run
/// use leyden_image::recording::{Recording, Replay};
/// let recording = Recording::open("work.leyrec".as_ref())?;
/// let mut replay = Replay::new(&recording)?;
/// replay.run_to(leyden_sim::Time::from_ns(1_000_000))?;
/// let loss = replay.cut();
/// println!("{} units lost", loss.lost.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    recording: &'a Recording,
    powered: Powered,
    /// The number of the next step.
    next: usize,
    ended: Vec<Ended>,
    /// Kept to save an allocation.
    completions: Vec<Completion<Places>>,
}

impl<'a> Replay<'a> {
    /// The drive as it was when the recording began.
    ///
    /// # Errors
    /// If the recorded state cannot be read.
    pub fn new(recording: &'a Recording) -> Result<Self, RecordingError> {
        Self::with_bank(recording, recording.head().capacitance_nf.map(Capacitance::from_nf))
    }

    /// The same drive with another bank of capacitors: what would it have lost with that one?
    ///
    /// # Errors
    /// As [`Replay::new`], and if there can be no drive with this bank.
    pub fn with_bank(
        recording: &'a Recording,
        bank: Option<Capacitance>,
    ) -> Result<Self, RecordingError> {
        let head = recording.head();
        let powered = Powered::load(head.config.clone(), bank, &mut &recording.base[..])?;
        if powered.device().unit_bytes() != head.unit_bytes {
            let what = "its drive has mapping units of another size";
            return Err(RecordingError::Damaged(what.to_owned()));
        }
        let (ended, completions) = (Vec::new(), Vec::new());
        Ok(Self { recording, powered, next: 0, ended, completions })
    }

    /// The device: for its counters.
    pub const fn device(&self) -> &Device {
        self.powered.device()
    }

    /// The drive's clock.
    pub fn now(&self) -> Time {
        self.powered.device().now()
    }

    /// The number of the next step; the number of all steps at the end.
    pub const fn next(&self) -> usize {
        self.next
    }

    /// True if the power is off.
    pub const fn is_off(&self) -> bool {
        self.powered.is_off()
    }

    /// Commands that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }

    /// Does all steps up to `time`, and lets the drive come there.
    ///
    /// # Errors
    /// If the drive does something else than the recorded one.
    pub fn run_to(&mut self, time: Time) -> Result<(), ReplayError> {
        while self.recording.steps.get(self.next).is_some_and(|step| step.0 <= time) {
            self.step()?;
        }
        if !self.is_off() {
            self.advance(time);
        }
        Ok(())
    }

    /// Does all steps that are left.
    ///
    /// # Errors
    /// As [`Replay::run_to`].
    pub fn run(&mut self) -> Result<(), ReplayError> {
        while self.next < self.recording.steps.len() {
            self.step()?;
        }
        Ok(())
    }

    /// Does the next step, if there is one.
    ///
    /// # Errors
    /// As [`Replay::run_to`].
    pub fn step(&mut self) -> Result<(), ReplayError> {
        let Some((time, step, first)) = self.recording.steps.get(self.next) else { return Ok(()) };
        let is_possible = match step {
            Step::Mark(_) | Step::Check(_) => true,
            Step::Restore(_) => self.is_off(),
            _ => !self.is_off(),
        };
        if !is_possible {
            return Err(self.diverged().into());
        }
        if !self.is_off() {
            self.advance(*time);
        }
        let command = match step {
            Step::Mark(_) => None,
            Step::Check(digest) if *digest == self.device().digest().value() => None,
            Step::Check(_) => return Err(self.diverged().into()),
            Step::Cut => {
                self.powered.cut(*time);
                None
            }
            Step::Restore(bank) => {
                self.powered.restore(*time, *bank)?;
                None
            }
            Step::Read(lba, sectors) => Some(Command::read(*lba, *sectors)),
            Step::Flush => Some(Command::flush()),
            Step::Trim(lba, sectors) => Some(Command::trim(*lba, *sectors)),
            Step::WritePrepare(ranges) => Some(Command::write_prepare(ranges.iter().copied())),
            Step::WriteZeroes(lba, sectors, fua) => {
                Some(Command::write_zeroes(*lba, *sectors, Arc::default()).fua(*fua))
            }
            Step::Write(lba, sectors, flags, _) => {
                let places = self.places(*lba, *sectors, *first);
                Some(flags.of(Command::write(*lba, *sectors, places)))
            }
            Step::Append(lba, sectors, flags, _) => {
                let places = self.places(*lba, *sectors, *first);
                Some(flags.of(Command::zone_append(*lba, *sectors, places)))
            }
            Step::Zone(ask) => Some(ask.command()),
            Step::ZoneReport(lba, most) => Some(asked::report(*lba, *most)),
        };
        if let Some(command) = command {
            self.powered.submit(*time, command.tag(self.next as u32));
        }
        self.next += 1;
        Ok(())
    }

    /// The power fails now. What is left of the recording cannot be done any more.
    ///
    /// # Panics
    /// If the power is off.
    pub fn cut(&mut self) -> PowerLoss {
        assert!(!self.is_off(), "the power is off");
        self.powered.cut(self.now())
    }

    /// The power returns, with another bank if one is named.
    ///
    /// # Errors
    /// If there can be no drive with this bank.
    ///
    /// # Panics
    /// If the power is on.
    pub fn restore(
        &mut self,
        time: Time,
        bank: Option<Capacitance>,
    ) -> Result<Recovery, ImageError> {
        assert!(self.is_off(), "the power is on");
        self.powered.check_bank(bank)?;
        self.powered.restore(time.max(self.now()), bank)
    }

    /// The bytes of the mapping unit at `unit`, counted from the drive's begin: what a read of it would
    /// return if it took no time. `None` if the recording lacks them.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn read_unit(&self, unit: u64) -> Option<Vec<u8>> {
        let unit_sectors = u64::from(self.recording.head().unit_bytes) / SECTOR_BYTES;
        let places = self.device().newest(Lba(unit * unit_sectors));
        let mut bytes = Vec::with_capacity(self.recording.head().unit_bytes as usize);
        for at in 0..unit_sectors as usize {
            match places.get(at) {
                0 => bytes.resize(bytes.len() + SECTOR_BYTES as usize, 0),
                place => {
                    let (from, sector) = ((place - 1) / unit_sectors, (place - 1) % unit_sectors);
                    let unit = self.recording.bytes_of(u32::try_from(from).ok()?)?;
                    bytes
                        .extend(&unit[(sector * SECTOR_BYTES) as usize..][..SECTOR_BYTES as usize]);
                }
            }
        }
        Some(bytes)
    }

    /// Where the sectors of a write lie whose units are numbered from `first` on.
    fn places(&self, lba: Lba, sectors: u32, first: u32) -> Arc<[u64]> {
        let unit_sectors = u64::from(self.recording.head().unit_bytes) / SECTOR_BYTES;
        let begin = u64::from(first) * unit_sectors + lba.0 % unit_sectors + 1;
        (begin..begin + u64::from(sectors)).collect()
    }

    fn advance(&mut self, time: Time) {
        self.powered.advance(time, &mut self.completions);
        let ended = self.completions.drain(..);
        self.ended.extend(ended.map(|done| Ended {
            step: done.tag as usize,
            status: done.status,
            time: done.time,
        }));
    }

    fn diverged(&self) -> Diverged {
        Diverged {
            step: self.next,
            time_ns: self.now().as_ns(),
            made_by: self.recording.head().config.made_by.clone(),
        }
    }
}

/// Why a replay cannot go on.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The drive has done something else.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// The power cannot return.
    #[error(transparent)]
    Drive(#[from] ImageError),
}

//! Recording what a drive is asked.

use std::path::Path;

use leyden_sim::{Capacitance, ConfigError};

use super::Drive;
use crate::ImageError;
use crate::recording::format::Head;
use crate::recording::{Base, Recorded, Recorder};

impl Drive {
    /// From now on everything that the drive is asked is written to `path` too, until it is closed: as a
    /// [`crate::recording::Recording`] it can be run again.
    ///
    /// If writing fails later, the drive goes on without, and [`Drive::close`] says so.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be written; or if this is a block device on two drives.
    ///
    /// # Panics
    /// If the drive is not idle, or without power.
    pub fn record(&mut self, path: &Path) -> Result<(), ImageError> {
        if self.device().stack().is_some() {
            let problem = "a block device on two drives cannot be recorded: record a drive";
            return Err(ConfigError::new("host.zoned_block", problem).into());
        }
        assert!(!self.is_off() && self.is_idle(), "the drive is at work");
        self.content.keep_used_by(self.powered.device(), 0);
        let head = Head {
            config: self.config().clone(),
            capacitance_nf: self.powered.bank().map(Capacitance::as_nf),
            unit_bytes: self.unit_bytes(),
            base_units: self.content.checksums().len() as u32,
        };
        let mut recorder = Recorder::create(path, &head)?;
        self.device().save(&mut Base(&mut recorder))?;
        let used = self.content.used_by(self.device());
        let mut bytes = vec![0; self.unit_bytes() as usize];
        let mut next = used.next(0);
        while let Some(slot) = next {
            let checksum = Some(self.content.checksums()[slot as usize]);
            // Bytes that are damaged are not known: reading them fails in a replay, too.
            if self.content.read_slot(&self.file, slot, checksum, &mut bytes)? {
                recorder.base_unit(slot, &bytes);
            }
            next = used.next(slot + 1);
        }
        self.recorder = Some(recorder);
        self.settle_recording();
        Ok(())
    }

    /// True if the drive is being recorded.
    pub const fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// The state of the recording; `None` without one.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorder.as_ref().map(Recorder::recorded)
    }

    /// A note of the host, in order with its commands. Without a recording it goes nowhere.
    pub fn mark(&mut self, text: &[u8]) {
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.mark(now, text);
        }
    }

    /// Makes the recording so far survive a kill.
    pub fn settle_recording(&mut self) {
        let (now, digest) = (self.now(), self.device().digest().value());
        if let Some(recorder) = &mut self.recorder {
            recorder.settle(now, digest);
        }
    }

    /// For fuzzing: where the log lies, and the sequence of its next entry.
    pub(crate) const fn log_begin(&self) -> (u64, u64) {
        (self.regions.log(), self.log.next_sequence())
    }

    pub(super) fn end_recording(mut self) -> Result<(), ImageError> {
        let (now, digest) = (self.now(), self.device().digest().value());
        let Some(recorder) = self.recorder.take() else { return Ok(()) };
        Ok(recorder.end(now, digest)?)
    }
}

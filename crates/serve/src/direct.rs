//! A drive in the caller's process: blocking calls from any number of threads.
//!
//! **What lives here**: who has the drive while a call is under way, and how calls wait. **What doesn't**: the C
//! interface on top (`leyden-capi`), and drives that other processes reach ([`crate::Server`]).
//!
//! Untimed, a call has the drive from its command to its end, and reads look at the drive without asking it: they take
//! none of its time, and go on side by side. With a pace, calls ask, and wait for the drive's time to come to the end of
//! their command; whichever thread is awake moves the drive on for all.
//!
//! **Invariants**
//! - A call that has returned has been noted in the image: a kill from then on finds what it promised.
//! - Each command is answered once; those that a power cut interrupts are told so.
//! - Once the image could not be written, nothing more is done: the drive in memory is ahead of it.

mod call;
mod owner;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use leyden_device::{Lba, PowerLoss, Recovery, SECTOR_BYTES, Status};
use leyden_image::{Done, Drive, ImageError};
use leyden_sim::{Capacitance, Time};

pub use call::{Call, Counts, DirectError};
use owner::DirectOwner;

use crate::clock::Pace;
use crate::switch::{self, CutReport, RestoreReport, Served, StatusReport};

/// Closer than this, an event is waited for awake: sleeping takes longer than it says.
const SPIN: Duration = Duration::from_micros(60);

/// See the module's documentation.
#[derive(Debug)]
pub struct Direct {
    held: RwLock<DirectOwner>,
    is_untimed: bool,
    /// Reads that have looked.
    looks: AtomicU64,
    looked_bytes: AtomicU64,
    failed_looks: AtomicU64,
}

impl Direct {
    /// Takes `drive`, which may be without power.
    pub fn new(drive: Drive, pace: Pace) -> Self {
        let held = DirectOwner::new(drive, pace);
        let is_untimed = held.clock.is_untimed();
        Self {
            held: RwLock::new(held),
            is_untimed,
            looks: AtomicU64::new(0),
            looked_bytes: AtomicU64::new(0),
            failed_looks: AtomicU64::new(0),
        }
    }

    /// Notes the power cut that the death of the last process was.
    pub fn note_cut(&self, loss: &PowerLoss) {
        let mut held = self.exclusive();
        let unit_sectors = u64::from(held.drive.unit_bytes()) / SECTOR_BYTES;
        held.last_cut = Some(CutReport::new(loss, 0, unit_sectors));
    }

    /// The drive, to look at.
    pub fn with_drive<T>(&self, look: impl FnOnce(&Drive) -> T) -> T {
        look(&self.shared().drive)
    }

    /// Counts of the requests.
    pub fn counts(&self) -> Counts {
        let mut counts = self.shared().counts;
        counts.reads += self.looks.load(Ordering::Relaxed);
        counts.read_bytes += self.looked_bytes.load(Ordering::Relaxed);
        counts.failures += self.failed_looks.load(Ordering::Relaxed);
        counts
    }

    /// The last power cut; `None` if there was none.
    pub fn last_cut(&self) -> Option<CutReport> {
        self.shared().last_cut.clone()
    }

    /// Reads the sectors from `lba` on into `bytes`, which is a whole number of them.
    ///
    /// # Errors
    /// If the drive or the image fails.
    pub fn read(&self, lba: Lba, bytes: &mut [u8]) -> Result<(), DirectError> {
        if self.is_untimed {
            let held = self.shared();
            // Only commands are recorded.
            if !held.drive.is_recorded() {
                held.check_stopped()?;
                let status = held.drive.look(lba, bytes)?;
                drop(held);
                return self.looked(status, bytes.len());
            }
        }
        let done = self.call(Call::Read(lba, (bytes.len() as u64 / SECTOR_BYTES) as u32))?;
        bytes.copy_from_slice(&done.data);
        Ok(())
    }

    fn looked(&self, status: Status, bytes: usize) -> Result<(), DirectError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.looked_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if status == Status::Success {
            return Ok(());
        }
        self.failed_looks.fetch_add(1, Ordering::Relaxed);
        Err(DirectError::Drive(status))
    }

    /// Asks the drive, and waits for the end of the command.
    ///
    /// # Errors
    /// If the drive or the image fails.
    ///
    /// # Panics
    /// If what is to be written is not a whole number of sectors.
    pub fn call(&self, call: Call<'_>) -> Result<Done, DirectError> {
        let mut held = self.exclusive();
        held.check_stopped()?;
        held.shorten_log()?;
        let tag = held.submit(call)?;
        loop {
            held.go_on()?;
            if let Some(outcome) = held.take_outcome(tag) {
                if held.pending == 0 {
                    held.look_after();
                }
                return outcome;
            }
            held = self.wait(held, None);
        }
    }

    /// Lets others have the drive until its next event, or until its time is `until`.
    fn wait<'a>(
        &'a self,
        held: RwLockWriteGuard<'a, DirectOwner>,
        until: Option<Time>,
    ) -> RwLockWriteGuard<'a, DirectOwner> {
        let next = held.drive.next_event();
        let next = until.map_or(next, |until| Some(next.map_or(until, |next| next.min(until))));
        let reached = held.drive.now();
        // Nothing to come is a command that waits for a power cut or for a restore.
        let span = next.map_or(Duration::from_millis(1), |next| held.clock.until(next, reached));
        drop(held);
        if span < SPIN {
            std::hint::spin_loop();
        } else {
            std::thread::park_timeout(span.saturating_sub(SPIN));
        }
        self.exclusive()
    }

    /// Lets a report of zones take its time, and fail where it would: what it says is then looked at. Untimed it takes
    /// none.
    ///
    /// # Errors
    /// If the drive or the image fails.
    pub fn ask_report(&self, lba: Lba, most: u32) -> Result<(), DirectError> {
        let held = self.shared();
        let is_asked = !self.is_untimed || held.drive.is_recorded() || held.drive.is_off();
        held.check_stopped()?;
        drop(held);
        if is_asked { self.call(Call::ZoneReport(lba, most)).map(drop) } else { Ok(()) }
    }

    /// The power fails. What is under way ends as on a dead drive.
    ///
    /// # Errors
    /// If it is off already, or the image cannot be written.
    pub fn cut(&self) -> Result<CutReport, DirectError> {
        let mut held = self.exclusive();
        held.check_stopped()?;
        held.go_on()?;
        if held.drive.is_off() {
            return Err(DirectError::Switch("off"));
        }
        let now = held.clock.now(held.drive.now());
        let cut = held.drive.cut(now);
        let loss = held.believe(cut)?;
        let interrupted = held.interrupt();
        let unit_sectors = u64::from(held.drive.unit_bytes()) / SECTOR_BYTES;
        let report = CutReport::new(&loss, interrupted, unit_sectors);
        held.last_cut = Some(report.clone());
        Ok(report)
    }

    /// The power returns, with another bank if one is named; waits until the drive is ready.
    ///
    /// # Errors
    /// If it is on, there can be no drive with this bank, or the image cannot be written.
    pub fn restore(&self, bank: Option<Capacitance>) -> Result<RestoreReport, DirectError> {
        let mut held = self.exclusive();
        held.check_stopped()?;
        if !held.drive.is_off() {
            return Err(DirectError::Switch("on"));
        }
        let now = held.clock.now(held.drive.now());
        let recovery: Recovery = match held.drive.restore(now, bank) {
            Err(error @ ImageError::Config(_)) => return Err(error.into()),
            restored => held.believe(restored)?,
        };
        let report = RestoreReport::new(&recovery, now);
        if self.is_untimed {
            held.advance(recovery.ready_at)?;
        }
        while held.drive.now() < recovery.ready_at && !held.drive.is_off() {
            held = self.wait(held, Some(recovery.ready_at));
            held.check_stopped()?;
            held.go_on()?;
        }
        Ok(report)
    }

    /// A note of the host in the recording, behind all that it has been told.
    ///
    /// # Errors
    /// If the image has failed.
    pub fn mark(&self, text: &[u8]) -> Result<(), DirectError> {
        let mut held = self.exclusive();
        held.check_stopped()?;
        held.go_on()?;
        held.drive.mark(text);
        Ok(())
    }

    /// Lets the drive come to rest, however long that would take it, and closes the image.
    ///
    /// # Errors
    /// If the image cannot be written, or could not before: opening it again will be a power cut.
    pub fn close(self) -> Result<(), DirectError> {
        let mut held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        held.check_stopped()?;
        held.drive.rest()?;
        Ok(held.drive.close()?)
    }

    /// Where the image is.
    pub fn path(&self) -> std::path::PathBuf {
        self.with_drive(|drive| Path::to_owned(drive.path()))
    }

    /// How it goes, for the control socket.
    pub(crate) fn control(&self, ask: switch::Ask) -> switch::Answer {
        let answer = match ask {
            switch::Ask::Status => {
                self.status().map(|report| switch::Answer::Status(Box::new(report)))
            }
            switch::Ask::Cut => self.cut().map(switch::Answer::Cut),
            switch::Ask::Restore { capacitance_nf } => {
                let bank = capacitance_nf.map(Capacitance::from_nf);
                self.restore(bank).map(switch::Answer::Restored)
            }
            switch::Ask::Fault { .. } => {
                let why = "a program has opened the image itself, and its commands cannot be made to fail: serve it with \
                           `leyden serve --programs`, and let the program connect";
                return switch::Answer::Refused { why: why.to_owned() };
            }
            switch::Ask::Stop => {
                let why = "the program that opened the image closes it".to_owned();
                return switch::Answer::Refused { why };
            }
        };
        answer.unwrap_or_else(|error| switch::Answer::Refused { why: error.to_string() })
    }

    fn status(&self) -> Result<StatusReport, DirectError> {
        let counts = self.counts();
        let held = self.shared();
        let served = Served {
            reads: counts.reads,
            writes: counts.writes,
            flushes: counts.flushes,
            failed: counts.failures,
            ..held.served.clone()
        };
        Ok(StatusReport::new(&held.drive, &served, held.pending as u64)?)
    }

    // A call that panics is a bug of ours, and stops the drive: `DirectOwner::submit` has left nothing half done that another
    // call would believe, for the image is ahead of the drive.
    fn exclusive(&self) -> RwLockWriteGuard<'_, DirectOwner> {
        self.held.write().unwrap_or_else(|poisoned| {
            let mut held = poisoned.into_inner();
            held.stopped.get_or_insert_with(|| "a call has ended in a bug".to_owned());
            held
        })
    }

    fn shared(&self) -> RwLockReadGuard<'_, DirectOwner> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }
}

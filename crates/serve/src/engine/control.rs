//! Requests to the server and not to the drive: its switch, and its state.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use leyden_device::{FaultRule, FaultRules, SECTOR_BYTES};
use leyden_image::ImageError;
use leyden_sim::Capacitance;
use tracing::info;

use super::Engine;
use crate::ask::{Answer, Failure};
use crate::switch::{self, CutReport, RestoreReport, StatusReport};

impl Engine {
    pub(crate) fn control(
        &mut self,
        ask: switch::Ask,
        to: Sender<switch::Answer>,
    ) -> Result<(), ImageError> {
        let answer = match ask {
            switch::Ask::Status => switch::Answer::Status(Box::new(self.status()?)),
            switch::Ask::Cut if self.drive.is_off() => {
                switch::Answer::Refused { why: "the power is off already".to_owned() }
            }
            switch::Ask::Cut => self.cut()?,
            switch::Ask::Restore { .. } if !self.drive.is_off() => {
                switch::Answer::Refused { why: "the power is on".to_owned() }
            }
            switch::Ask::Restore { capacitance_nf } => self.restore(capacitance_nf)?,
            switch::Ask::Fault { rule, clear } => self.fault(rule, clear),
            switch::Ask::Stop => {
                self.stop = Some(to);
                return Ok(());
            }
        };
        let _ = to.send(answer); // the client may be gone
        Ok(())
    }

    fn fault(&mut self, rule: Option<FaultRule>, clear: bool) -> switch::Answer {
        if clear {
            self.faults.clear();
            info!("no command is made to fail");
        }
        if let Some(rule) = rule {
            info!(%rule, "commands are made to fail");
            if !self.faults.add(rule) {
                let why = format!("there are {} rules: end them with --clear", FaultRules::MOST);
                return switch::Answer::Refused { why };
            }
        }
        switch::Answer::Faults { rules: self.faults.report() }
    }

    /// The power fails: what is under way ends as on a dead drive.
    fn cut(&mut self) -> Result<switch::Answer, ImageError> {
        self.go_on()?;
        let interrupted = self.pending as u64;
        let loss = self.drive.cut(self.clock.now(self.drive.now()))?;
        self.power.fetch_add(1, Ordering::Release);
        for tag in 0..self.waiting.len() as u32 {
            if let Some(waiting) = self.waiting[tag as usize].take() {
                self.free_tags.push(tag);
                waiting.reply.send(Answer::Failed(Failure::PowerLost));
            }
        }
        self.pending = 0;
        let unit_sectors = u64::from(self.drive.unit_bytes()) / SECTOR_BYTES;
        let report = CutReport::new(&loss, interrupted, unit_sectors);
        self.cuts.cut(&report);
        info!(
            time_ns = report.time_ns,
            interrupted_commands = interrupted,
            dumped_bytes = report.dumped_bytes,
            lost_ranges = report.lost.len(),
            "power cut"
        );
        Ok(switch::Answer::Cut(report))
    }

    fn restore(&mut self, capacitance_nf: Option<u64>) -> Result<switch::Answer, ImageError> {
        let bank = capacitance_nf.map(Capacitance::from_nf);
        let now = self.clock.now(self.drive.now());
        match self.drive.restore(now, bank) {
            Ok(recovery) => {
                self.power.fetch_add(1, Ordering::Release);
                let report = RestoreReport::new(&recovery, now);
                self.cuts.restored(&report);
                info!(ready_in_ns = report.ready_in_ns, "power returned");
                Ok(switch::Answer::Restored(report))
            }
            Err(ImageError::Config(error)) => {
                Ok(switch::Answer::Refused { why: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    fn status(&self) -> Result<StatusReport, ImageError> {
        StatusReport::new(&self.drive, &self.served, self.pending as u64)
    }
}

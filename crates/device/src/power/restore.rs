//! The power returns.

use leyden_ftl::recovery::Step;
use leyden_nand::DieId;
use leyden_sim::canary::{Canary, is_planted};
use leyden_sim::{Span, Time};

use super::PowerState;
use crate::{Payload, Ssd};

/// How a drive came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// When the drive is ready. Commands submitted before wait until then.
    pub ready_at: Time,
    /// The steps taken, in order, with their costs.
    pub steps: Vec<Step>,
    /// All of them together.
    pub scan: Span,
    /// Until the bank is charged: the drive promises nothing before. Steps go on meanwhile.
    pub charge: Span,
    /// Pages read.
    pub pages_scanned: u64,
    /// The host's data that was dumped and is back in the buffer, in flash pages.
    pub pages_restored: u64,
    /// Mapping pages whose entries had to be found by scanning all of flash.
    pub scanned_map_pages: u64,
}

impl<P: Payload> Ssd<P> {
    /// The power returns at `now`: the drive recovers from what flash holds. Commands may be submitted
    /// from now on, and wait until it is ready.
    ///
    /// # Panics
    /// If the power is on, or time runs backwards.
    pub fn restore_power(&mut self, now: Time) -> Recovery {
        assert!(now >= self.now, "time ran backwards");
        assert!(self.power_state == PowerState::Off, "the power is on");
        self.now = now;
        let mut recovered = self.ftl.recover();
        if is_planted(Canary::DumpGivenUpEarly) {
            self.ftl.finish_recovery();
        }
        if is_planted(Canary::PutBackForgotten) {
            recovered.units.pop();
        }
        let scan = recovered.steps.iter().fold(Span::ZERO, |sum, step| sum + step.time);
        let charge = self.power.as_ref().map_or(Span::ZERO, |supply| {
            supply.supply.bank.charge_time(supply.config.charge_power)
        });
        let per_page = u64::from(self.geometry().units_per_page());
        let recovery = Recovery {
            ready_at: now + scan.max(charge),
            scan,
            charge,
            pages_scanned: recovered.steps.iter().map(|step| step.pages).sum(),
            pages_restored: (recovered.units.len() as u64).div_ceil(per_page),
            scanned_map_pages: u64::from(recovered.scanned_map_pages),
            steps: recovered.steps,
        };
        for (lpn, content) in recovered.units {
            self.writer.put_back(lpn, content);
        }
        self.writer.wake(&self.ftl);
        self.frontend.hold_until(recovery.ready_at);
        self.digest.add(recovery.ready_at.as_ns()).add(recovery.pages_scanned);
        self.power_state = PowerState::Recovering(recovery.ready_at);
        recovery
    }

    /// True if each die has the blocks that a dump may need of it.
    pub(crate) fn has_dump_room(&self) -> bool {
        let Some(supply) = &self.power else { return true };
        if is_planted(Canary::OldDumpsKept) {
            return true;
        }
        let mut dies = (0..self.geometry().dies()).map(DieId);
        dies.all(|die| self.ftl.dump_blocks(die) >= supply.blocks_per_dump)
    }

    /// True if blocks have gone bad so that the drive can't save anything more at a power cut: it
    /// can be read, and everything else ends with a write fault.
    pub fn is_read_only(&self) -> bool {
        self.power_state == PowerState::ReadOnly
    }

    /// The drive is ready: the dump is given up, and dies go to work.
    #[cold]
    pub(crate) fn become_ready(&mut self, now: Time) {
        self.ftl.erase_old_dumps();
        if !self.has_dump_room() {
            self.power_state = PowerState::ReadOnly;
            self.writer.halt();
            return;
        }
        self.power_state = PowerState::On;
        self.ftl.finish_recovery();
        self.writer.pump_all(now, &mut self.ftl);
    }
}

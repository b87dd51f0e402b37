//! The power returns.

use leyden_nand::DieId;
use leyden_sim::{Span, Time};

use super::outcome::Recovery;
use super::state::PowerState;
use super::supply::PowerSupply;
use crate::Payload;
use crate::controller::Controller;
use crate::controller::namespace::Namespace;

impl<P: Payload, N: Namespace<P>> Controller<P, N> {
    /// The power returns at `now`: the drive ends its dump, if that is still under way, and then recovers from
    /// what flash holds. Commands may be submitted from now on, and wait until it is ready.
    ///
    /// # Panics
    /// If the power is on, or time runs backwards.
    pub fn restore_power(&mut self, now: Time) -> Recovery {
        (N::ops().restore_power)(self, now)
    }

    pub(in crate::controller) fn regain_power(&mut self, now: Time) -> Recovery {
        assert!(now >= self.now, "time ran backwards");
        assert!(self.power_state == PowerState::Off, "the power is on");
        self.now = now;
        let recovered = self.namespace.recover();
        let scan = recovered.steps.iter().fold(Span::ZERO, |sum, step| sum + step.time);
        let charge = self.power.as_ref().map_or(Span::ZERO, PowerSupply::charge_time);
        let begin = now.max(self.dump_end);
        let dump = begin.since(now);
        let ready_at = begin + scan.max(charge);
        let recovery = Recovery { ready_at, dump, scan, charge, ..recovered };
        self.commands.hold_until(recovery.ready_at);
        let (ready_at, pages) = (recovery.ready_at.as_ns(), recovery.pages_scanned);
        self.commands.digest_mut().add(ready_at).add(pages);
        self.power_state = PowerState::Recovering(recovery.ready_at);
        recovery
    }

    /// True if each die has the blocks that a dump may need of it.
    fn has_dump_room(&self) -> bool {
        let Some(supply) = &self.power else { return true };
        let mut dies = (0..self.geometry().dies()).map(DieId);
        dies.all(|die| self.namespace.dump_blocks(die) >= supply.blocks_per_dump())
    }

    /// True if blocks have gone bad so that the drive can't save anything more at a power cut: it
    /// can be read, and everything else ends with a write fault.
    pub fn is_read_only(&self) -> bool {
        self.power_state == PowerState::ReadOnly
    }

    /// True if the power is on, and the drive takes commands and keeps what it promises.
    pub fn is_ready(&self) -> bool {
        self.power_state == PowerState::On
    }

    /// When something next happens that only a drive without power, or one that recovers, knows of.
    #[cold]
    #[inline(never)]
    pub(in crate::controller) fn next_without_power(&self) -> Option<Time> {
        // A refused command has ended already.
        let refused = self.commands.has_refused().then_some(self.now);
        match self.power_state {
            PowerState::Recovering(ready_at) => refused.or(Some(ready_at)),
            _ => refused,
        }
    }

    /// Processes the events of `time` on a drive that has no power, or recovers. True if there are
    /// no others.
    #[cold]
    #[inline(never)]
    pub(in crate::controller) fn advance_without_power(&mut self, time: Time) -> bool {
        if self.commands.has_refused() {
            self.commands.hand_out_refused();
            return true;
        }
        if let PowerState::Recovering(_) = self.power_state {
            self.become_ready(time);
        }
        false
    }

    /// The drive is ready: the dump is used up, and dies go to work.
    fn become_ready(&mut self, now: Time) {
        self.namespace.erase_old_dumps();
        if self.has_dump_room() {
            self.power_state = PowerState::On;
            self.namespace.start(now);
        } else {
            self.power_state = PowerState::ReadOnly;
            self.namespace.halt();
        }
    }
}

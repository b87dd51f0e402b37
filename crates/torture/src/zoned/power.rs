//! Power cuts of a zoned drive: only pages beyond the energy may be lost.

use leyden_device::PowerLoss;
use leyden_sim::{Span, Time};

use super::run::{Runner, Trouble};
use crate::Kind;
use crate::physics::{Blocks, Expected};

impl Runner<'_> {
    pub(super) fn cut(&mut self) -> Result<(), Trouble> {
        let off = Span::from_ns(self.host.rng.below(1 << 20));
        self.cut_at(self.drive.now(), off)
    }

    /// The power fails at `at`, and returns `off` later.
    pub(super) fn cut_at(&mut self, at: Time, off: Span) -> Result<(), Trouble> {
        self.note_cut();
        self.tally.cuts += 1;
        self.tally.cut_off += self.pending.len() as u64;
        self.pending.clear();
        let expected = self.expect(at)?;
        self.check_erases()?;
        let loss = self.drive.cut_power(at);
        self.story.cut(at, &loss);
        self.note_cost(&loss);
        self.check_loss(expected.as_ref(), &loss)?;
        if let Some(physics) = &self.physics {
            physics.check_cells(self.drive.medium()).map_err(unjustified)?;
        }
        self.note_loss(&loss)?;
        self.dump_end = self.dump_end.max(at + loss.cost.time);
        let derived = self.physics.as_ref().map(|it| it.way_back.zoned(self.drive.medium()));
        let recovery = self.drive.restore_power(at + off);
        self.blocks = Some(self.blocks_now().with(self.drive.medium(), &recovery));
        if let (Some(physics), Some(derived)) = (&self.physics, &derived) {
            let supply = self.drive.power_supply();
            let bank_nf = supply.map_or(0, |supply| supply.bank.capacitance().as_nf());
            let times = (at + off, self.dump_end);
            let checked = physics.way_back.check(derived, times, bank_nf, &recovery);
            checked.map_err(unjustified)?;
        }
        self.story.restored(at + off, &recovery);
        self.note_recovery(&recovery);
        self.ready = recovery.ready_at;
        if self.ready < self.dump_end {
            let (ready, end) = (self.ready.as_ns(), self.dump_end.as_ns());
            let message =
                format!("the drive is ready at {ready} ns, and its dump ends at {end} ns");
            return Err(Trouble { kind: Kind::Unjustified, message });
        }
        Ok(())
    }

    /// The flash now, with the erases that the drive has counted.
    fn blocks_now(&self) -> Blocks {
        Blocks::of(self.drive.medium(), self.drive.stats().ftl.erases)
    }

    /// Each block that was emptied since the drive became ready was erased, and counted.
    fn check_erases(&mut self) -> Result<(), Trouble> {
        let now = self.blocks_now();
        let checked = self.blocks.take().map_or(Ok(()), |before| before.check_erases(&now));
        checked.map_err(unjustified)
    }

    /// The drive has just become ready: it has erased what it said.
    pub(super) fn check_erased(&mut self) -> Result<(), Trouble> {
        let now = self.blocks_now();
        let before = self.blocks.replace(now.clone());
        let (Some(physics), Some(before)) = (&self.physics, before) else { return Ok(()) };
        if !self.drive.is_ready() {
            return Ok(());
        }
        physics.way_back.check_erased(&before, &now).map_err(unjustified)
    }

    /// The losses of a cut at `at`. `None` if the power of such a drive is never cut.
    fn expect(&self, at: Time) -> Result<Option<Expected>, Trouble> {
        let Some(physics) = &self.physics else { return Ok(None) };
        if self.drive.now() < self.ready || self.drive.is_read_only() {
            return Ok(Some(Expected::nothing()));
        }
        let expected = physics.expect_zoned(at, &self.drive);
        expected.map_err(unjustified)
    }

    /// Compares what the drive says that a cut lost, and cost, with physics.
    fn check_loss(&mut self, expected: Option<&Expected>, said: &PowerLoss) -> Result<(), Trouble> {
        let (Some(expected), Some(physics)) = (expected, &self.physics) else { return Ok(()) };
        self.tally.cuts_checked += 1;
        let nothing = PowerLoss { time: said.time, during_recovery: true, ..PowerLoss::default() };
        let checked = match (expected.is_quiet, said.during_recovery) {
            (true, true) if *said != nothing => {
                Err(format!("a cut that changes nothing is said to do so: {said:?}"))
            }
            (true, true) => Ok(()),
            (false, false) => physics.check(expected, said),
            (is_quiet, _) => {
                let what = if is_quiet { "not ready" } else { "ready" };
                Err(format!("the drive was {what}, and says otherwise"))
            }
        };
        checked.map_err(unjustified)
    }

    fn note_loss(&mut self, loss: &PowerLoss) -> Result<(), Trouble> {
        let may_lose =
            self.options.device.power.as_ref().is_some_and(|it| it.allow_underprovisioned);
        let is_whole = loss.lost.is_empty() && loss.uncertain.is_empty();
        if !may_lose && !is_whole {
            let message = format!("the drive has lost protected data: {loss:?}");
            return Err(Trouble { kind: Kind::Underprovisioned, message });
        }
        for lpn in &loss.lost {
            let (zone, unit) = (lpn.0 / self.host.size, lpn.0 % self.host.size);
            if zone < self.options.zones {
                self.oracle.note_lost(zone, unit);
            }
        }
        if !loss.uncertain.is_empty() {
            self.oracle.note_uncertain();
            self.tally.uncertain_units += 1;
        }
        Ok(())
    }
}

fn unjustified(message: String) -> Trouble {
    Trouble { kind: Kind::Unjustified, message }
}

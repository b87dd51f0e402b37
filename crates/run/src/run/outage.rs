//! Power cuts that a run makes: those that it lists, or the one that ends it.

use leyden_device::{Controller, Namespace, Payload, PowerLoss, Recovery, Stats};
use leyden_ftl::recovery::Step;
use leyden_host::{Cut, Powered};
use leyden_power::{Part, Supply};
use leyden_sim::{Counted, Span, Time};
use leyden_workload::zoned::ZoneLeft;

use super::power::{Sampler, millijoules, milliseconds};
use crate::driver::Outage;
use leyden_config::CutConfig;
use leyden_record::{self as record, RunRecord, Spread};

/// Cuts a drive's power, and looks at it in between.
pub(super) struct Outages<'a> {
    sampler: Sampler,
    /// Those listed.
    cuts: &'a [CutConfig],
    start: Time,
    made: Vec<Made>,
}

/// A cut, and how the drive came back.
struct Made {
    off: Span,
    outstanding: u64,
    cut: Cut,
    recovery: Recovery,
    /// When the power returned.
    back_at: Time,
    /// Units that lost what was promised: as the drive says, or as verification has found.
    lost: u64,
}

impl Made {
    /// True if the next cut came before the drive was ready.
    fn is_broken_off(&self, next: Option<&Self>) -> bool {
        next.is_some_and(|next| next.loss().time < self.recovery.ready_at)
    }

    const fn loss(&self) -> &PowerLoss {
        &self.cut.drive
    }
}

impl<'a> Outages<'a> {
    /// For a run that begins at `start`.
    pub(super) fn new(start: Time, cuts: &'a [CutConfig], sampler: Sampler) -> Self {
        Self { sampler, cuts, start, made: Vec::new() }
    }

    /// Cuts the power `now` for as long as `off`, with so many commands outstanding.
    fn make<P: Payload>(
        &mut self,
        now: Time,
        off: Span,
        stack: &mut impl Powered<P>,
        outstanding: u64,
    ) -> &Made {
        let cut = stack.cut_power(now);
        let back_at = now + off;
        let recovery = stack.restore_power(back_at);
        let lost = cut.drive.lost.len() as u64;
        self.made.push(Made { off, outstanding, cut, recovery, back_at, lost });
        &self.made[self.made.len() - 1]
    }

    /// When the sampler next looks.
    pub(super) fn next_moment(&self) -> Time {
        self.sampler.next()
    }

    /// The sampler looks.
    pub(super) fn look<P: Payload, N: Namespace<P>>(&mut self, ssd: &Controller<P, N>) {
        self.sampler.look(ssd);
    }

    /// When the next of the listed cuts comes.
    pub(super) fn next_cut(&self) -> Time {
        self.cuts.get(self.made.len()).map_or(Time::MAX, |cut| self.start + cut.at)
    }

    /// Makes it, with so many commands outstanding. `left` says what the drive holds then, and its zones.
    pub(super) fn cut<P: Payload, S: Powered<P>>(
        &mut self,
        now: Time,
        stack: &mut S,
        outstanding: u64,
        left: impl FnOnce(&S::Drive) -> (P::ReadData, Vec<ZoneLeft>),
    ) -> Outage<P> {
        let off = self.cuts[self.made.len()].off;
        let made = self.make(now, off, stack, outstanding);
        let (left, zones) = left(stack.drive());
        Outage {
            at: now,
            back_at: made.back_at,
            lost: made.cut.lost_units(),
            uncertain: made.cut.uncertain_units(),
            left,
            zones,
        }
    }

    /// Verification has found so many units lost by the last cut.
    pub(super) fn found_lost(&mut self, units: u64) {
        if let Some(made) = self.made.last_mut() {
            made.lost = units;
        }
    }

    /// A warning about cuts that were to come after `end`, at which the run ended, if there are
    /// any. The results are those of a run without them.
    pub(super) fn not_made(&self, end: Time) -> Option<String> {
        let index = self.made.len();
        let cut = self.cuts.get(index)?;
        let which = match self.cuts.len() - index {
            1 => format!("the power cut run.cut.{index} was not made"),
            left => format!("{left} power cuts were not made, from run.cut.{index} on"),
        };
        Some(format!(
            "{which}: {} is after the end of the run, whose work was done {:.3} ms after its beginning; \
             cut earlier, or give the run more to do",
            cut.at,
            milliseconds(end.since(self.start))
        ))
    }

    /// The run has ended at `end`. Cuts the power if no cuts are listed, and waits until the drive is
    /// ready. Fills `power` and `recovery` of `record`, and what the flash did for a cut here, which is in the
    /// drive's `stats`.
    pub(super) fn finish<P: Payload, N: Namespace<P>>(
        mut self,
        stack: &mut impl Powered<P, Drive = Controller<P, N>>,
        stats: fn(&Controller<P, N>) -> Stats,
        end: Time,
        part: Part,
        record: &mut RunRecord,
    ) {
        let is_checked = record.sim.checked;
        let Some(supply) = stack.drive().power_supply() else { return };
        let before = stats(stack.drive());
        if self.cuts.is_empty() {
            self.make(end.max(stack.drive().now()), Span::ZERO, stack, 0);
        }
        if let Some(made) = self.made.last() {
            stack.advance(made.recovery.ready_at.max(stack.now()), &mut Vec::new());
        }
        if is_checked {
            stack.check();
        }
        let ssd = stack.drive();
        if self.cuts.is_empty() {
            let grown = stats(ssd).since(&before).ftl;
            record.flash.programs.dump += grown.programs.dump;
            record.flash.reads.recovery += grown.reads.recovery;
        }
        record.power = Some(self.power(&supply, part, u64::from(ssd.geometry().page_bytes())));
        record.recovery = self.recovery();
    }

    /// The cost of the cuts, or of cuts at the sampled moments.
    fn power(&self, supply: &Supply, part: Part, page_bytes: u64) -> record::Power {
        let mut power = self.sampler.record(supply, part);
        power.cuts = self.made.len() as u64;
        power.lost_promised_writes = self.made.iter().map(|made| made.lost).sum();
        if self.cuts.is_empty() || self.made.is_empty() {
            return power;
        }
        power.sampled = Some(record::Sampled {
            protected_bytes_peak: power.protected_bytes_peak,
            promised_bytes_peak: power.promised_bytes_peak,
            map_pages_peak: power.map_pages_peak,
            dump_ms: power.dump_ms,
            energy_mj: power.energy_mj,
            capacitance_uf: power.capacitance_uf,
            parts: power.parts,
        });
        power.commands_cut_off = self.made.iter().map(|made| made.outstanding).sum();
        power.made = self.made.iter().enumerate().map(|cut| self.row(cut)).collect();
        // A cut during a recovery finds nothing to save.
        let costs = || {
            let dumps = self.made.iter().filter(|made| !made.loss().during_recovery);
            dumps.map(|made| &made.loss().cost)
        };
        let most = |of: fn(&leyden_device::CutCost) -> u64| costs().map(of).max().unwrap_or(0);
        power.promised_bytes_peak = most(|cost| cost.promised.get());
        power.map_pages_peak = most(|cost| cost.map_pages);
        let bytes = costs().map(|cost| cost.promised.get() + cost.map_pages * page_bytes);
        power.protected_bytes_peak = bytes.max().unwrap_or(0);
        power.dump_ms = Spread::of(costs().map(|cost| milliseconds(cost.time)).collect());
        power.energy_mj = Spread::of(costs().map(|cost| millijoules(cost.energy)).collect());
        let costliest = costs().max_by_key(|cost| cost.energy).copied().unwrap_or_default();
        power.capacitance_uf = costliest.capacitance.as_uf_f64();
        power.parts = supply.bank.parts_for(costliest.energy);
        power
    }

    fn row(&self, (index, made): (usize, &Made)) -> record::MadeCut {
        let (loss, recovery) = (made.loss(), &made.recovery);
        let broken_off = made.is_broken_off(self.made.get(index + 1));
        record::MadeCut {
            at_s: loss.time.since(self.start).as_secs_f64(),
            off_ms: milliseconds(made.off),
            commands_cut_off: made.outstanding,
            dirty_units: made.cut.dirty_units,
            during_recovery: loss.during_recovery,
            promised_bytes: loss.cost.promised.get(),
            map_pages: loss.cost.map_pages,
            torn_pages: loss.torn_pages,
            dump_ms: milliseconds(loss.cost.time),
            energy_mj: millijoules(loss.cost.energy),
            lost_promised_writes: made.lost,
            unsaved_map_pages: loss.lost_map_pages,
            ready_ms: (!broken_off).then(|| milliseconds(recovery.ready_at.since(made.back_at))),
            pages_scanned: recovery.pages_scanned,
            pages_restored: recovery.pages_restored,
        }
    }

    /// How the drive came back.
    fn recovery(&self) -> Option<record::Recovery> {
        let last = &self.made.last()?.recovery;
        let ended = || {
            let made = self.made.iter().enumerate();
            made.filter(|(index, made)| !made.is_broken_off(self.made.get(index + 1)))
                .map(|(_, made)| made)
        };
        let sum = |of: fn(&Recovery) -> u64| self.made.iter().map(|made| of(&made.recovery)).sum();
        let times = ended().map(|made| milliseconds(made.recovery.ready_at.since(made.back_at)));
        Some(record::Recovery {
            time_ms: Spread::of(times.collect()),
            scan_ms: Spread::of(ended().map(|made| milliseconds(made.recovery.scan)).collect()),
            charge_ms: milliseconds(last.charge),
            pages_scanned: sum(|recovery| recovery.pages_scanned),
            pages_restored: sum(|recovery| recovery.pages_restored),
            map_pages_scanned_for: sum(|recovery| recovery.scanned_map_pages),
            steps: last.steps.iter().map(step).collect(),
        })
    }
}

fn step(step: &Step) -> record::RecoveryStep {
    let name = step.name.name();
    record::RecoveryStep {
        name: name.to_owned(),
        pages: step.pages,
        time_ms: milliseconds(step.time),
    }
}

//! Power cuts and recoveries: exactly the data is lost that physics could not keep.

use leyden_device::{BlockDevice, PowerLoss, Recovery, Ssd, Units};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::recovery::StepName;
use leyden_host::Powered;
use leyden_nand::{FaultTarget, Interrupted, Kind as Flash, Lpn, PageKind, Ppa, Ppn};
use leyden_oracle::{Op, Request};
use leyden_sim::{Span, Time};

use super::room::lacks_dump_room;
use super::runner::Runner;
use super::{Inspected, Trouble};
use crate::Kind;
use crate::coverage::Point;
use crate::fold::{add_cut, add_recovery};
use crate::physics::{Blocks, Expected};
use crate::traced::TracedPayload;

impl<P, D> Runner<'_, P, D>
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    /// The power fails at `at`, and with it everything in flight.
    pub(crate) fn cut(&mut self, at: Time) -> Result<(), Trouble> {
        self.digest.add(self.drive.fingerprint()).add(at.as_ns());
        self.oracle.judge_left()?;
        self.note_cut(at);
        self.check_moving()?;
        self.drive.drive().judge().map_err(|message| Trouble { kind: Kind::Fault, message })?;
        self.check_flash(at)?;
        self.check_erases()?;
        let expected = self.expect(at)?;
        let left = expected.as_ref().map(|expected| self.stored(&expected.lost));
        let cut = self.drive.cut_power(at);
        add_cut(&mut self.digest, &cut);
        self.oracle.cut(at);
        self.tally.cuts += 1;
        self.tally.cut_off += u64::from(self.host.in_flight);
        self.tally.cached_losses += cut.dirty_units.unwrap_or(0);
        (self.host.in_flight, self.host.awaited) = (0, None);
        self.host.faults_at_flush = 0;
        self.host.faults_at_sync.clear();
        self.power.last_before_cut = self.host.open.keys().next_back().copied().unwrap_or(0);
        self.power.last_before_cut = self.power.last_before_cut.max(self.tally.commands);
        self.host.open.clear();
        self.story.cut(at, &cut.drive);
        if let Some(expected) = &expected {
            self.check_loss(expected, &cut.drive)?;
        }
        if let (Some(physics), Some(ssd)) = (&self.physics, self.ssd()) {
            physics.check_cells(ssd.medium()).map_err(unjustified)?;
        }
        self.power.dump_end = self.power.dump_end.max(at + cut.drive.cost.time);
        let (lost, uncertain) = (cut.lost_units(), cut.uncertain_units());
        if !(lost.is_empty() && uncertain.is_empty() || self.may_lose()) {
            return Err(self.underprovisioned(&cut.drive));
        }
        self.forget_lost(&lost, left.unwrap_or_default());
        let lost = self.grains(lost.into_iter());
        let uncertain = self.grains(uncertain.into_iter().flatten());
        for grain in &uncertain {
            if !lost.contains(grain) {
                self.power.left.remove(grain);
            }
        }
        self.oracle.note_loss_allowed(lost);
        self.oracle.note_uncertain(uncertain);
        Ok(())
    }

    /// True if the drive must be ready. A layer on top of it need not have told it the time: then it is asked.
    fn is_up(&self) -> bool {
        match self.ssd().filter(|_| self.options.host.is_some()) {
            Some(ssd) => self.power.is_up && ssd.is_ready(),
            None => self.power.is_up,
        }
    }

    /// A drive that is ready has room for a dump on every die.
    pub(super) fn check_ready(&mut self, at: Time) -> Result<(), Trouble> {
        self.check_erased(at)?;
        let Some(ssd) = self.ssd().filter(|ssd| at == self.power.ready && ssd.is_ready()) else {
            return Ok(());
        };
        let Some((_, room)) = ssd.dump_view(&|_| false) else { return Ok(()) };
        let needed = self.physics.as_ref().map_or(0, |physics| physics.pages_of(ssd));
        match room.iter().position(|&pages| pages < needed) {
            Some(die) => {
                let message = format!(
                    "the drive is ready, and die {die} has room for {} pages of a dump that may take {needed}",
                    room[die]
                );
                Err(Trouble { kind: Kind::Fault, message })
            }
            None => Ok(()),
        }
    }

    /// The flash now, with the erases that the drive has counted.
    fn blocks(&self) -> Option<Blocks> {
        let ssd = self.ssd()?;
        let ftl = ssd.stats().ftl;
        Some(Blocks::of(ssd.medium(), ftl.erases - ftl.erase_failures))
    }

    /// Each block that was emptied since the drive became ready was erased, and counted.
    fn check_erases(&mut self) -> Result<(), Trouble> {
        let now = self.blocks();
        let before = std::mem::replace(&mut self.power.blocks, now);
        match (&before, &self.power.blocks) {
            (Some(before), Some(now)) => before.check_erases(now).map_err(unjustified),
            _ => Ok(()),
        }
    }

    /// The drive has just become ready: it has erased what it said.
    fn check_erased(&mut self, at: Time) -> Result<(), Trouble> {
        let is_now = at == self.power.ready && self.ssd().is_some_and(Ssd::is_ready);
        let now = self.blocks();
        let before = std::mem::replace(&mut self.power.blocks, now);
        let (Some(physics), true) = (&self.physics, is_now) else { return Ok(()) };
        let (Some(before), Some(now)) = (&before, &self.power.blocks) else { return Ok(()) };
        let checked = physics.way_back.check_erased(before, now);
        checked.map_err(unjustified)
    }

    /// Lets a copy of the drive run on: the program that ends first must do so when the drive says. Done at one
    /// cut in 16, for a copy costs.
    fn check_flash(&self, at: Time) -> Result<(), Trouble> {
        let Some(ssd) = self.ssd().filter(|_| self.tally.cuts.is_multiple_of(16)) else {
            return Ok(());
        };
        let is_program = |op: &Interrupted| matches!(op.operation.kind, Flash::Program(_));
        let programs = ssd.medium().on_the_way().filter(is_program);
        let begun = programs.filter(|op| op.end.is_some_and(|end| end > at));
        let Some(first) = begun.min_by_key(|op| op.end) else { return Ok(()) };
        let end = first.end.expect("it has begun");
        let mut copy = ssd.clone();
        let mut runs_until = |until: Time| {
            copy.advance(until, &mut Vec::new());
            let mut all = copy.medium().on_the_way();
            all.any(|op| op.operation == first.operation && op.die == first.die && op.end.is_some())
        };
        let before = Time::from_ns(end.as_ns() - 1);
        if (before <= at || runs_until(before)) && !runs_until(end) {
            return Ok(());
        }
        let message = format!(
            "the program of {:?} is said to end at {} ns, and does not when a copy of the drive runs on",
            first.operation.kind,
            end.as_ns()
        );
        Err(Trouble { kind: Kind::Unjustified, message })
    }

    /// The losses that the cut must have. `None` if the drive cannot be looked into.
    fn expect(&mut self, at: Time) -> Result<Option<Expected>, Trouble> {
        let (Some(physics), Some(ssd)) = (&self.physics, self.ssd()) else { return Ok(None) };
        if !self.is_up() || ssd.is_read_only() {
            if ssd.is_read_only() && !lacks_dump_room(ssd) {
                let message =
                    "the drive can only be read, and every die has room for a dump".to_owned();
                return Err(Trouble { kind: Kind::Fault, message });
            }
            return Ok(Some(Expected::nothing()));
        }
        let expected = physics.expect(at, ssd);
        expected.map_err(unjustified)
    }

    /// Compares the losses that the drive reports with those that physics requires.
    fn check_loss(&mut self, expected: &Expected, said: &PowerLoss) -> Result<(), Trouble> {
        self.tally.cuts_checked += 1;
        let Some(physics) = &self.physics else { return Ok(()) };
        if said.during_recovery != expected.is_quiet {
            let what = if expected.is_quiet { "not ready" } else { "ready" };
            let message = format!("the drive was {what}, and says otherwise");
            return Err(Trouble { kind: Kind::Unjustified, message });
        }
        if expected.is_quiet {
            // Nothing changes, and nothing is lost.
            let nothing =
                PowerLoss { time: said.time, during_recovery: true, ..PowerLoss::default() };
            if *said != nothing {
                let message = format!("a cut that changes nothing is said to do so: {said:?}");
                return Err(Trouble { kind: Kind::Unjustified, message });
            }
            return Ok(());
        }
        self.hits.hit_if(expected.ended_programs > 0, Point::EndedProgram);
        self.hits.hit_if(said.torn_pages > 0, Point::BrokenOff);
        expected.note(&mut self.hits, physics);
        let checked = physics.check(expected, said);
        checked.map_err(unjustified)
    }

    fn underprovisioned(&self, said: &PowerLoss) -> Trouble {
        let supply = self.ssd().and_then(Ssd::power_supply);
        let budget = supply.map_or_else(String::new, |supply| {
            format!(
                ": its bank holds {} pJ, its worst case is {} pJ in {} pages, and this dump took {} pJ for {} pages \
                 until it stopped",
                supply.bank.energy().as_pj(),
                supply.need.energy.as_pj(),
                supply.need.pages,
                said.cost.energy.as_pj(),
                said.cost.pages
            )
        });
        let (lost, uncertain) = (&said.lost, &said.uncertain);
        let message = format!("the drive lost units {lost:?}, and where {uncertain:?} lie{budget}");
        Trouble { kind: Kind::Underprovisioned, message }
    }

    /// True if the drive may lack the energy to keep what it has promised.
    fn may_lose(&self) -> bool {
        let power = self.options.device.power.as_ref();
        power.is_some_and(|power| power.allow_underprovisioned)
    }

    /// For each of `units` the mapped content of each of its grains, without the buffer.
    fn stored(&self, units: &[u32]) -> Vec<(u32, Vec<u64>)> {
        let Some(ssd) = self.ssd() else { return Vec::new() };
        let sectors = self.host.unit_sectors;
        let of_unit = |&unit: &u32| {
            let lba = u64::from(unit) * sectors;
            let content = ssd.stored(leyden_device::Lba(lba)).unwrap_or_default();
            (unit, self.stamps_of(lba, &content))
        };
        units.iter().map(of_unit).collect()
    }

    fn stamps_of(&self, lba: u64, content: &P) -> Vec<u64> {
        let sectors = self.host.unit_sectors;
        let mut data = P::ReadData::default();
        P::gather(&mut data, Units::new(lba, sectors, sectors).part(0), content);
        let mut stamps = Vec::new();
        match P::stamps(&data, lba, &mut stamps) {
            Ok(()) => stamps,
            Err(_) => vec![u64::MAX; (sectors / self.host.sectors_per_grain) as usize],
        }
    }

    /// Notes what lost units may read as: what the table pointed to; and where the table itself has to be found
    /// again, any version that flash holds.
    fn forget_lost(&mut self, lost: &[u32], stored: Vec<(u32, Vec<u64>)>) {
        if lost.is_empty() {
            return;
        }
        let scans = !matches!(self.options.device.ftl.map.protection, ProtectionConfig::Full(_));
        let each = (self.host.unit_sectors / self.host.sectors_per_grain) as u32;
        let copies = self.copies(lost);
        for (unit, stamps) in stored {
            for (grain, stamp) in (unit * each..).zip(stamps) {
                let mut allowed = vec![stamp];
                let of_unit = copies.iter().filter(|(other, _)| *other == unit);
                let found = of_unit.map(|(_, stamps)| stamps[(grain - unit * each) as usize]);
                allowed.extend(found);
                if scans {
                    allowed.push(0);
                }
                self.power.left.insert(grain, allowed);
            }
        }
    }

    /// The contents of `units` on flash, in every copy that can be read.
    fn copies(&self, units: &[u32]) -> Vec<(u32, Vec<u64>)> {
        let Some(ssd) = self.ssd() else { return Vec::new() };
        let medium = ssd.medium();
        let all = (0..ssd.geometry().units()).map(Ppa);
        let copy = |place: Ppa| {
            let Lpn(unit) = medium.lpn(place).filter(|lpn| units.contains(&lpn.0))?;
            let lba = u64::from(unit) * self.host.unit_sectors;
            Some((unit, self.stamps_of(lba, &medium.content(place))))
        };
        all.filter_map(copy).collect()
    }

    /// Power returns `off` after the cut at `at`; yields when the drive is ready.
    pub(crate) fn restore(&mut self, at: Time, off: Span) -> Result<Time, Trouble> {
        let at = at + off;
        let derived = self.physics.as_ref().zip(self.ssd());
        let derived = derived.map(|(it, ssd)| it.way_back.conventional(ssd.medium()));
        let recovery = self.drive.restore_power(at);
        let seen = self.blocks().zip(self.ssd());
        self.power.blocks = seen.map(|(blocks, ssd)| blocks.with(ssd.medium(), &recovery));
        self.oracle.restore(at);
        add_recovery(&mut self.digest, &recovery);
        self.power.ready = recovery.ready_at;
        self.power.is_up = false;
        self.note_recovery(at, &recovery);
        self.story.restored(at, &recovery);
        if let (Some(physics), Some(derived), Some(ssd)) = (&self.physics, &derived, self.ssd()) {
            let bank_nf = ssd.power_supply().map_or(0, |supply| supply.bank.capacitance().as_nf());
            let times = (at, self.power.dump_end);
            let checked = physics.way_back.check(derived, times, bank_nf, &recovery);
            checked.map_err(unjustified)?;
        }
        if self.physics.is_some() && recovery.ready_at < self.power.dump_end {
            let message = format!(
                "the drive is ready at {} ns, and its dump ends at {} ns",
                recovery.ready_at.as_ns(),
                self.power.dump_end.as_ns()
            );
            return Err(Trouble { kind: Kind::Unjustified, message });
        }
        Ok(self.power.ready)
    }

    fn note_recovery(&mut self, at: Time, recovery: &Recovery) {
        let took = |name| recovery.steps.iter().any(|step| step.name == name);
        for (name, point) in [
            (StepName::RollForward, Point::RecoveryScan),
            (StepName::ReplayJournal, Point::RecoveryReplay),
            (StepName::PutBack, Point::RecoveryPutBack),
            (StepName::EraseOldDumps, Point::RecoveryErase),
        ] {
            self.hits.hit_if(took(name), point);
        }
        let is_early = at < self.power.dump_end;
        self.hits.hit(if is_early { Point::DumpInterrupted } else { Point::DumpInTime });
    }

    /// Notes what the cut at `at` finds.
    fn note_cut(&mut self, at: Time) {
        if !self.is_up() {
            self.hits.hit(Point::CutRecovery);
            if at < self.power.dump_end {
                self.hits.hit(Point::CutDump);
                self.tally.cuts_in_dump += 1;
            }
        }
        let has = |op: Op| self.host.open.values().any(|(request, _)| request.op == op);
        let (flush, trim) = (has(Op::Flush), has(Op::Trim) || has(Op::WriteZeroes));
        let fua = self.host.open.values().any(|(request, _)| request.fua);
        self.hits.hit_if(flush, Point::CutFlush);
        self.hits.hit_if(has(Op::Sync), Point::CutSync);
        self.hits.hit_if(trim, Point::CutTrim);
        self.hits.hit_if(fua, Point::CutFua);
        if let Some(atomic) = self.oracle.atomic() {
            let sectors = self.host.unit_sectors as u32;
            let is_meant = |it: &Request| it.sectors > sectors && atomic.survives(it);
            let has_some = self.host.open.values().any(|(request, _)| is_meant(request));
            self.hits.hit(Point::CutAtomicDrive);
            self.hits.hit_if(has_some, Point::CutAtomic);
        }
        let stage = self.drive.drive().stage();
        self.hits.hit_if((2..=4).contains(&stage), Point::BlockCutFirstSet);
        self.hits.hit_if((5..=7).contains(&stage), Point::BlockCutSecondSet);
        let Some(ssd) = self.ssd() else { return };
        let is_read_only = ssd.is_read_only();
        let on_the_way = ssd.medium().on_the_way();
        let points: Vec<Point> = on_the_way.map(|op| point_of(ssd, &op)).collect();
        if is_read_only {
            self.tally.read_only_cuts += 1;
            self.hits.hit(Point::CutReadOnly);
            self.hits.hit(Point::FaultReadOnly);
        }
        self.hits.hit_if(points.is_empty() && self.is_up(), Point::CutIdle);
        for point in points {
            self.hits.hit(point);
        }
    }

    /// The pages of the mapping table or its journal that are being programmed.
    pub(super) fn table_programs(&self) -> impl Iterator<Item = Ppn> {
        let page_of = |ssd: &Ssd<P>, op: Interrupted| match op.operation.kind {
            Flash::Program(page) => {
                let of_table = [Point::CutMappingProgram, Point::CutJournalProgram];
                of_table.contains(&point_of(ssd, &op)).then_some(page)
            }
            _ => None,
        };
        let ssd = self.ssd();
        ssd.into_iter()
            .flat_map(move |ssd| ssd.medium().on_the_way().filter_map(move |op| page_of(ssd, op)))
    }

    /// Notes what the drive has done since it was made, or loaded.
    pub(super) fn count_work(&mut self) {
        for point in self.drive.drive().points() {
            self.hits.hit(point);
        }
        let Some(ssd) = self.ssd() else { return };
        let stats = ssd.stats();
        let endurance = self.options.device.nand.endurance_cycles;
        let is_worn = endurance > 0 && ssd.medium().bad_blocks() > 0;
        let occasions = &self.options.device.nand.faults.occasions;
        let has_come = |what| {
            let is_to_come = |it| ssd.medium().occasions_to_come().any(|other| other == it);
            occasions.iter().any(|it| it.what == what && !is_to_come(it))
        };
        let found = [
            (has_come(FaultTarget::Mapping), Point::FaultMapping),
            (has_come(FaultTarget::Journal), Point::FaultJournal),
            (stats.ftl.gc.copied_units > 0, Point::WorkCollection),
            (stats.map.writebacks > 0, Point::WorkWriteback),
            (stats.map.copies > 0, Point::WorkMapCopies),
            (stats.map.journal_pages > 0, Point::WorkJournal),
            (stats.buffer.coalesced_units > 0, Point::WorkCoalesced),
            (stats.ssd.stalled > Span::ZERO, Point::WorkStalled),
            (stats.ftl.program_failures > 0, Point::FaultProgram),
            (stats.ftl.erase_failures > 0, Point::FaultErase),
            (is_worn, Point::FaultWear),
        ];
        for (is_hit, point) in found {
            self.hits.hit_if(is_hit, point);
        }
        self.hits.hit_if(self.options.work.tenants > 1, Point::WorkTenants);
        self.hits.hit_if(self.options.work.trace, Point::WorkTrace);
    }
}

fn unjustified(message: String) -> Trouble {
    Trouble { kind: Kind::Unjustified, message }
}

/// The coverage point of an operation in flight.
fn point_of<P: TracedPayload>(ssd: &Ssd<P>, op: &Interrupted) -> Point {
    match op.operation.kind {
        Flash::Erase(_) => Point::CutErase,
        Flash::Read(_) | Flash::HostRead(_) => Point::CutRead,
        Flash::Program(_) if op.end.is_none() => Point::CutWaitingProgram,
        Flash::Program(page) => match ssd.medium().meta_page(page).map(|page| page.kind) {
            Some(PageKind::Mapping) => Point::CutMappingProgram,
            Some(PageKind::Journal) => Point::CutJournalProgram,
            _ => Point::CutDataProgram,
        },
    }
}

//! Ends of commands: the status of each, and whether it may be that.
//!
//! A command fails for a cause that the run can see for itself: it was made fail on its way to the drive, or
//! blocks of the flash have gone bad and what is left cannot hold what the drive has to.

use leyden_device::{Completion, Op, Status};
use leyden_host::Powered;
use leyden_oracle::{Ended, Id, Request};

use super::runner::Runner;
use super::{Inspected, Trouble};
use crate::Kind;
use crate::coverage::Point;
use crate::traced::{Misplaced, TracedPayload};

impl<P, D> Runner<'_, P, D>
where
    P: TracedPayload,
    D: Powered<P>,
    D::Drive: Inspected<P>,
{
    pub(super) fn completed(&mut self, completion: &Completion<P>) -> Result<(), Trouble> {
        self.host.in_flight -= 1;
        if completion.op == Op::WritePrepare {
            self.digest.add(u64::from(completion.status.code())); // refused if beyond the end
            return Ok(());
        }
        let id = Id(u64::from(completion.tag));
        if self.host.awaited == Some(id) {
            self.host.awaited = None;
        }
        self.story.completed(completion.time, id, completion.status);
        let Some((request, faults_before)) = self.host.open.remove(&id.0) else {
            let message = format!("#{} ended, and is not in flight", id.0);
            return Err(Trouble { kind: Kind::Status, message });
        };
        let is_read = completion.op == Op::Read;
        let ended = match completion.status {
            Status::Success => Ended::Done,
            Status::WriteFault if !is_read => Ended::Failed,
            Status::UnrecoveredRead if is_read => Ended::Failed,
            status => {
                let message = format!("{:?} #{} ended with {status:?}", completion.op, id.0);
                return Err(Trouble { kind: Kind::Status, message });
            }
        };
        if completion.status == Status::WriteFault {
            self.write_fault(id, &request, faults_before)?;
        }
        match request.op {
            leyden_oracle::Op::Flush => self.host.faults_at_flush = faults_before,
            leyden_oracle::Op::Sync => {
                let heard = self.units_of(&request).map(|unit| (unit, faults_before));
                self.host.faults_at_sync.extend(heard);
                self.hits.hit_if(ended == Ended::Done, Point::WorkSync);
            }
            _ => {}
        }
        self.stamps.clear();
        if let Some(data) = completion.data() {
            P::stamps(data, request.lba, &mut self.stamps).map_err(|it| misplaced(&it))?;
        }
        for stamp in &self.stamps {
            self.digest.add(*stamp);
        }
        self.oracle.complete(completion.time, id, ended, &self.stamps)?;
        if is_read && ended == Ended::Done && !self.power.left.is_empty() {
            self.check_lost(&request)?;
        }
        Ok(())
    }

    fn write_fault(
        &mut self,
        id: Id,
        request: &Request,
        faults_before: usize,
    ) -> Result<(), Trouble> {
        self.tally.write_faults += 1;
        self.hits.hit(Point::FaultWrite);
        let sectors = request.lba..request.lba + u64::from(request.sectors);
        let was_made_to = match request.op {
            // One that overlapped with another may tell of what failed since that one began.
            leyden_oracle::Op::Flush => {
                self.hits.hit(Point::FaultFlush);
                self.host.faults.len() > self.host.faults_at_flush
            }
            leyden_oracle::Op::Sync => {
                self.hits.hit(Point::FaultSync);
                // A write-back that fails fails all that wait for it.
                self.units_of(request).any(|unit| self.fails_since_sync(unit, faults_before))
            }
            _ => self.host.faults.touches(&self.whole_units(&sectors)),
        };
        if was_made_to || self.may_fault() {
            return Ok(());
        }
        let message = format!(
            "{:?} #{} ended with a write fault, and nothing was made fail: every die has the good blocks that it \
             needs",
            request.op, id.0
        );
        Err(Trouble { kind: Kind::Fault, message })
    }

    /// The units that `request` touches.
    fn units_of(&self, request: &Request) -> std::ops::Range<u64> {
        let end = request.lba + u64::from(request.sectors);
        request.lba / self.host.unit_sectors..end.div_ceil(self.host.unit_sectors)
    }

    /// True if something of `unit` was made fail since a flush of its file has said so, or after the first `before`
    /// failures.
    fn fails_since_sync(&self, unit: u64, before: usize) -> bool {
        let before = self.host.faults_at_sync.get(&unit).map_or(0, |&heard| heard.min(before));
        let first = unit * self.host.unit_sectors;
        self.host.faults.touches_since(before, &(first..first + self.host.unit_sectors))
    }

    /// True if the drive has a reason to fail writes that can be seen on its flash.
    fn may_fault(&self) -> bool {
        self.drive.drive().may_fault(&self.options.device)
    }

    /// `sectors` and the rest of the units that they lie in.
    fn whole_units(&self, sectors: &std::ops::Range<u64>) -> std::ops::Range<u64> {
        let unit = self.host.unit_sectors;
        sectors.start / unit * unit..sectors.end.next_multiple_of(unit)
    }

    /// A cache says that it could not write `units` out.
    pub(super) fn unwritten(&mut self, units: Vec<u32>) -> Result<(), Trouble> {
        self.tally.unwritten_units += units.len() as u64;
        self.hits.hit(Point::FaultCache);
        let unit_sectors = self.host.unit_sectors;
        let sectors_of = |unit: u32| {
            let first = u64::from(unit) * unit_sectors;
            first..first + unit_sectors
        };
        let invented = units.iter().find(|&&unit| !self.host.faults.touches(&sectors_of(unit)));
        if let Some(unit) = invented
            && !self.may_fault()
        {
            let message = format!(
                "the page cache says that it could not write unit {unit} out, and no write of it failed"
            );
            return Err(Trouble { kind: Kind::Fault, message });
        }
        let grains = self.grains(units.into_iter());
        self.oracle.note_unwritten(grains);
        Ok(())
    }

    /// The oracle's units that make up `units`.
    pub(super) fn grains(&self, units: impl Iterator<Item = u32>) -> Vec<u32> {
        let each = (self.host.unit_sectors / self.host.sectors_per_grain) as u32;
        units.flat_map(|unit| unit * each..(unit + 1) * each).collect()
    }

    /// Lost units read as a version that flash had held when the power failed.
    fn check_lost(&mut self, request: &Request) -> Result<(), Trouble> {
        let first = (request.lba / self.host.sectors_per_grain) as u32;
        for (grain, &stamp) in (first..).zip(&self.stamps) {
            let Some(allowed) = self.power.left.get(&grain) else { continue };
            if stamp <= self.power.last_before_cut && !allowed.contains(&stamp) {
                let message = format!(
                    "the power cut lost what was buffered of unit {grain}, which reads as #{stamp} now: flash held \
                     {allowed:?} of it"
                );
                return Err(Trouble { kind: Kind::Unjustified, message });
            }
        }
        Ok(())
    }
}

fn misplaced(found: &Misplaced) -> Trouble {
    let Misplaced { lba, stamp, place } = *found;
    let message = format!("sector {lba} holds what #{stamp} has written to sector {place}");
    Trouble { kind: Kind::Misplaced, message }
}

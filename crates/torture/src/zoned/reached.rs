//! Coverage of a run of a zoned drive.

use leyden_buffer::zoned::schedule::ZoneScheduleConfig;
use leyden_device::{PowerLoss, Recovery, Status, ZoneAction};
use leyden_ftl::recovery::StepName;
use leyden_ftl::zoned::place::PlaceConfig;
use leyden_nand::{Interrupted, Kind as Flash};
use leyden_oracle::zones::ZoneChange;
use leyden_power::DumpConfig;

use super::ZonedOptions;
use super::command::Pending;
use super::run::Runner;
use crate::coverage::{Coverage, Point, REGIONS, pair, pairs, region_name};

/// Points that can be reached beside those named for zones alone.
const POINTS: &[Point] = &[
    Point::CutIdle,
    Point::CutDataProgram,
    Point::CutErase,
    Point::CutRead,
    Point::CutWaitingProgram,
    Point::CutFlush,
    Point::CutRecovery,
    Point::CutReadOnly,
    Point::BrokenOff,
    Point::DumpUnits,
    Point::DumpFailed,
    Point::LossUnits,
    Point::LossRoot,
    Point::RecoveryScan,
    Point::RecoveryPutBack,
    Point::RecoveryErase,
    Point::FaultProgram,
    Point::FaultErase,
    Point::FaultReadOnly,
    Point::FaultWrite,
];

/// Every name that a campaign should reach.
pub(super) fn names() -> Vec<String> {
    let of_zones = Point::every().filter(|point| point.name().starts_with("zone: "));
    let mut names: Vec<String> = POINTS.iter().copied().chain(of_zones).map(Point::name).collect();
    let regions = REGIONS.map(region_name);
    let dumps: Vec<_> = DumpConfig::POLICIES.iter().map(|it| it.name).collect();
    let schedules: Vec<_> = ZoneScheduleConfig::POLICIES.iter().map(|it| it.name).collect();
    let places: Vec<_> = PlaceConfig::POLICIES.iter().map(|it| it.name).collect();
    names.extend(pairs("region", &regions, "dump", &dumps));
    names.extend(pairs("region", &regions, "schedule", &schedules));
    names.extend(pairs("place", &places, "dump", &dumps));
    names.extend(pairs("below", &["Promote", "Refuse"], "flush", &["Admit", "Suspend"]));
    names
}

/// Coverage points of a run's options.
fn drawn(options: &ZonedOptions) -> Vec<String> {
    let device = &options.device;
    let region = region_name(device.buffer.region);
    let dump = device.power.as_ref().map_or("off", |power| power.dump.name());
    let place = device.zoned.as_ref().map_or("none", |zoned| zoned.place.name());
    let zones = &device.buffer.zones;
    let (below, flush) =
        (format!("{:?}", zones.below_protected), format!("{:?}", zones.during_flush));
    vec![
        pair("region", region, "dump", dump),
        pair("region", region, "schedule", zones.schedule.name()),
        pair("place", place, "dump", dump),
        pair("below", &below, "flush", &flush),
    ]
}

impl Runner<'_> {
    pub(super) fn coverage(&self) -> Coverage {
        Coverage::of(&self.hits, drawn(self.options))
    }

    /// Notes the state just before a cut.
    pub(super) fn note_cut(&mut self) {
        for pending in self.under_way() {
            let point = match pending {
                Pending::Append { .. } => Point::ZoneCutAppend,
                Pending::Copy { .. } => Point::ZoneCutCopy,
                Pending::Flush { .. } => Point::CutFlush,
                Pending::Change { change: ZoneChange::Commit(_), .. } => Point::ZoneCutCommit,
                Pending::Change { change: ZoneChange::Reset | ZoneChange::Finish, .. } => {
                    Point::ZoneCutChange
                }
                _ => continue,
            };
            self.hits.hit(point);
        }
        let has_area = (0..self.options.zones).any(|zone| self.oracle.area(zone).is_some());
        self.hits.hit_if(has_area, Point::ZoneCutArea);
        let on_the_way: Vec<_> = self.drive.medium().on_the_way().collect();
        self.hits.hit_if(on_the_way.is_empty() && self.drive.is_ready(), Point::CutIdle);
        self.hits.hit_if(!self.drive.is_ready(), Point::CutRecovery);
        if self.drive.is_read_only() {
            self.tally.read_only_cuts += 1;
            self.hits.hit(Point::CutReadOnly);
            self.hits.hit(Point::FaultReadOnly);
        }
        for op in on_the_way {
            self.hits.hit(point_of(&op));
        }
    }

    /// Notes the cost of the cut.
    pub(super) fn note_cost(&mut self, loss: &PowerLoss) {
        self.hits.hit_if(loss.torn_pages > 0, Point::BrokenOff);
        self.hits.hit_if(loss.cost.promised.get() > 0, Point::DumpUnits);
        self.hits.hit_if(loss.cost.failed_programs > 0, Point::DumpFailed);
        self.hits.hit_if(!loss.lost.is_empty(), Point::LossUnits);
        self.hits.hit_if(!loss.uncertain.is_empty(), Point::LossRoot);
    }

    pub(super) fn note_recovery(&mut self, recovery: &Recovery) {
        let took = |name| recovery.steps.iter().any(|step| step.name == name);
        for (name, point) in [
            (StepName::RollForward, Point::RecoveryScan),
            (StepName::PutBack, Point::RecoveryPutBack),
            (StepName::EraseOldDumps, Point::RecoveryErase),
        ] {
            self.hits.hit_if(took(name), point);
        }
    }

    /// A command has ended.
    pub(super) fn note_end(&mut self, pending: &Pending, status: Status) {
        let point = match (status, pending) {
            (Status::Success, Pending::Write { .. }) => Point::ZoneWritten,
            (Status::Success, Pending::Append { .. }) => Point::ZoneAppended,
            (Status::Success, Pending::Copy { .. }) => Point::ZoneCopied,
            (Status::Success, Pending::Read { .. }) => Point::ZoneRead,
            (Status::Success, Pending::All(_)) => Point::ZoneAll,
            (Status::Success, Pending::Report { .. }) => Point::ZoneReported,
            (Status::Success, Pending::Flush { .. }) => Point::ZoneFlushed,
            (Status::Success, Pending::Change { change, .. }) => match change {
                ZoneChange::Reset => Point::ZoneReset,
                ZoneChange::Finish => Point::ZoneFinished,
                ZoneChange::OpenWithArea => Point::ZoneArea,
                ZoneChange::Commit(_) => Point::ZoneCommitted,
            },
            (Status::Success, Pending::Toggle { action: ZoneAction::Open, .. }) => {
                Point::ZoneOpened
            }
            (Status::Success, Pending::Toggle { .. }) => Point::ZoneClosed,
            (Status::TooManyActiveZones | Status::TooManyOpenZones, _) => Point::ZoneTooMany,
            (Status::ZrwaUnavailable, _) => Point::ZoneNoArea,
            (Status::SequenceError, _) => Point::ZoneSequence,
            (Status::ZoneFull | Status::ZoneBoundary, Pending::Append { .. }) => Point::ZoneFull,
            (Status::WriteFault, _) => Point::FaultWrite,
            _ => return,
        };
        self.hits.hit(point);
    }

    /// Notes the drive's operations in the run.
    pub(super) fn note_work(&mut self) {
        let stats = self.drive.stats();
        self.hits.hit_if(stats.ftl.program_failures > 0, Point::FaultProgram);
        self.hits.hit_if(stats.ftl.erase_failures > 0, Point::FaultErase);
        self.hits.hit_if(self.dead > 0, Point::ZoneDead);
        for slot in &self.host.slots {
            self.hits.hit_if(!slot.is_dead, Point::ZoneAlive);
        }
    }
}

fn point_of(op: &Interrupted) -> Point {
    match op.operation.kind {
        Flash::Erase(_) => Point::CutErase,
        Flash::Read(_) | Flash::HostRead(_) => Point::CutRead,
        Flash::Program(_) if op.end.is_none() => Point::CutWaitingProgram,
        Flash::Program(_) => Point::CutDataProgram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_has_a_name_that_is_known() {
        let known = names();
        for seed in 0..200 {
            for name in drawn(&ZonedOptions::draw(seed)) {
                assert!(known.contains(&name), "{name}");
            }
        }
    }
}

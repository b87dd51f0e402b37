//! After a power cut: every zone is looked at and judged.

use leyden_device::{
    Action, BlockDevice, Command, Completion, Lba, Stamp, Status, ZnsSsd, ZoneDescriptor,
    ZoneFilter, ZoneState,
};
use leyden_oracle::zones::{ZoneSeen, ZoneStands};

use super::run::{Runner, Trouble};
use crate::Kind;
use crate::coverage::Point;

/// The oracle's name for a state.
const fn stands(state: ZoneState) -> ZoneStands {
    match state {
        ZoneState::Empty => ZoneStands::Empty,
        ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => {
            ZoneStands::Active
        }
        ZoneState::Full => ZoneStands::Full,
        ZoneState::ReadOnly => ZoneStands::ReadOnly,
        ZoneState::Offline => ZoneStands::Offline,
    }
}

impl Runner<'_> {
    /// Judges every used zone, and continues from its content.
    pub(super) fn judge(&mut self) -> Result<(), Trouble> {
        self.check_zones()?;
        let report = self.count_resources()?;
        let shape = *self.drive.zone_shape();
        if report.iter().any(|zone| zone.state.is_open()) {
            let message = "a zone is open after a cut".to_owned();
            return Err(Trouble { kind: Kind::Zone, message });
        }
        for zone in 0..self.options.zones {
            let descriptor = &report[zone as usize];
            let is_offline = descriptor.state == ZoneState::Offline;
            let content =
                if is_offline { vec![0; shape.capacity as usize] } else { self.content(zone)? };
            let write_pointer = descriptor.write_pointer.map(|lba| {
                let unit_sectors = descriptor.capacity / u64::from(shape.capacity);
                ((lba.0 - descriptor.start.0) / unit_sectors) as u32
            });
            let seen = ZoneSeen {
                stands: stands(descriptor.state),
                write_pointer,
                has_area: descriptor.has_zrwa,
                content: &content,
            };
            self.oracle.judge(zone, seen)?;
            self.hits.hit_if(descriptor.state == ZoneState::Full, Point::ZoneFullAfterCut);
            self.hits.hit_if(descriptor.has_zrwa, Point::ZoneAreaAfterCut);
            self.held.recovered(zone, descriptor.state.is_active(), descriptor.has_zrwa);
            let slot = &mut self.host.slots[zone as usize];
            *slot = super::command::Slot {
                is_full: descriptor.state == ZoneState::Full,
                is_dead: matches!(descriptor.state, ZoneState::ReadOnly | ZoneState::Offline),
                resets: slot.resets + 1, // flushes under way promise nothing any more
                ..Default::default()
            };
        }
        Ok(())
    }

    /// Holds the zones that are open and active, as a report has them, against what the drive counts and what
    /// it may have.
    pub(super) fn count_resources(&mut self) -> Result<Vec<ZoneDescriptor>, Trouble> {
        let report = self.report()?;
        let count =
            |is: fn(ZoneState) -> bool| report.iter().filter(|it| is(it.state)).count() as u32;
        let (open, active) = (count(ZoneState::is_open), count(ZoneState::is_active));
        let shape = self.drive.zone_shape();
        let is_within = open <= shape.max_open && active <= shape.max_active;
        if self.drive.zone_resources() != (open, active) || !is_within {
            let counted = self.drive.zone_resources();
            let message = format!("{open} zones are open and {active} active, not {counted:?}");
            return Err(Trouble { kind: Kind::Zone, message });
        }
        Ok(report)
    }

    fn report(&mut self) -> Result<Vec<ZoneDescriptor>, Trouble> {
        let (filter, partial, most) = (ZoneFilter::All, false, u32::MAX);
        let action = Action::ZoneReport { lba: Lba(0), filter, partial, most };
        let end = self.run_alone(action.into())?;
        Ok(end.zones().map(|report| report.zones.clone()).unwrap_or_default())
    }

    /// The whole content of a zone.
    fn content(&mut self, zone: u32) -> Result<Vec<u64>, Trouble> {
        let command = self.host.read(zone, 0, self.host.capacity);
        let end = self.run_alone(command)?;
        if let Some(data) = end.data() {
            Ok(data.iter().map(|stamp| stamp.0).collect())
        } else {
            let message = format!("a read of zone {zone} ended with {:?}", end.status);
            Err(Trouble { kind: Kind::Unreadable, message })
        }
    }

    /// Runs a command that nothing else is under way beside.
    fn run_alone(&mut self, command: Command<Stamp>) -> Result<Completion<Stamp>, Trouble> {
        let id = self.drive.submit(self.drive.now(), command);
        let mut done = Vec::new();
        while let Some(time) = ZnsSsd::next_event(&self.drive) {
            self.drive.advance(time, &mut done);
            if let Some(at) = done.iter().position(|end| end.id == id) {
                let end = done.swap_remove(at);
                if end.status != Status::Success {
                    let message = format!("{:?} ended with {:?}", end.op, end.status);
                    return Err(Trouble { kind: Kind::Status, message });
                }
                return Ok(end);
            }
        }
        let message = "a command does not end after a recovery".to_owned();
        Err(Trouble { kind: Kind::Stuck, message })
    }
}

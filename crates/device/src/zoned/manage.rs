//! Zone Management Send and Receive (ZNS 1.1, 3.4.2 and 3.4.3).

use leyden_ftl::zoned::{Refused, ZoneAction, ZoneId, ZoneState};
use leyden_sim::Time;

use super::Zoned;
use super::commands::status_of;
use crate::controller::{CommandTable, RequestId};
use crate::{Action, Lba, Output, Payload, Status, Units, ZoneDescriptor, ZoneFilter, ZoneReport};

impl<P: Payload> Zoned<P> {
    /// Zone Management Send.
    pub(super) fn manage(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let done = match &mut commands.request_mut(id).action {
            Action::Zone { action: ZoneAction::FlushZrwa, lba, all: false, .. } => {
                let lba = *lba;
                return self.ask_commit(now, id, lba, commands);
            }
            Action::Zone { action, all: true, .. } => {
                let action = *action;
                self.manage_all(now, action, commands)
            }
            Action::Zone { action, lba, zrwa, .. } => {
                let (action, lba, zrwa) = (*action, *lba, *zrwa);
                self.manage_one(now, action, lba, zrwa, commands)
            }
            Action::ZoneExtension { lba, data } => {
                let (lba, data) = (*lba, std::mem::take(data));
                self.set_extension(lba, data)
            }
            _ => Err(Status::InvalidOpcode),
        };
        commands.complete(now, id, done.err().unwrap_or(Status::Success));
        self.take_in_waiting(now, commands);
    }

    fn manage_one(
        &mut self,
        now: Time,
        action: ZoneAction,
        lba: Lba,
        zrwa: bool,
        commands: &mut CommandTable<P>,
    ) -> Result<(), Status> {
        let (zone, unit) = self.zone_at(lba)?;
        if unit != 0 || action == ZoneAction::Write {
            return Err(Status::InvalidField);
        }
        if action == ZoneAction::Open && zrwa {
            self.ftl.zones_mut().open_with_zrwa(zone).map_err(status_of)?;
            self.buffer.open_window(zone.0, self.ftl.shape().zrwa_size);
            return Ok(());
        }
        self.act(now, zone, action, commands).map_err(status_of)
    }

    /// The zone of a block, and the unit in it.
    fn zone_at(&self, lba: Lba) -> Result<(ZoneId, u32), Status> {
        let unit_sectors = self.unit_sectors();
        if !lba.0.is_multiple_of(unit_sectors) {
            return Err(Status::InvalidField);
        }
        let units = u64::from(self.ftl.shape().zones) * u64::from(self.ftl.shape().size);
        let unit = lba.0 / unit_sectors;
        if unit >= units { Err(Status::LbaOutOfRange) } else { Ok(self.zone_of(unit as u32)) }
    }

    /// Select all: zones in other states are left alone. Opening all of them fails if there are not
    /// resources for all.
    fn manage_all(
        &mut self,
        now: Time,
        action: ZoneAction,
        commands: &mut CommandTable<P>,
    ) -> Result<(), Status> {
        let selected = |(zone, it): (ZoneId, &leyden_ftl::zoned::Zone)| {
            action.selects(it.state).map(|is_selected| is_selected.then_some(zone))
        };
        let zones: Option<Vec<_>> = self.ftl.zones().all().map(selected).collect();
        let zones = zones.ok_or(Status::InvalidField)?;
        if action == ZoneAction::Open {
            self.ftl.zones().may_open_all().map_err(status_of)?;
        }
        for zone in zones.into_iter().flatten() {
            self.act(now, zone, action, commands).map_err(status_of)?;
        }
        Ok(())
    }

    /// Does `action` to `zone`, and what follows from it.
    fn act(
        &mut self,
        now: Time,
        zone: ZoneId,
        action: ZoneAction,
        commands: &mut CommandTable<P>,
    ) -> Result<(), Refused> {
        let before = self.ftl.zones().get(zone).clone();
        if action == ZoneAction::Finish && before.has_zrwa {
            // Units of the area above the write pointer were never committed.
            self.ftl.zones().may(zone, action)?;
            self.end_waiting_of(now, zone, Status::ZoneFull, commands);
            self.buffer.close_window(zone.0);
        }
        let after = self.ftl.zones_mut().apply(zone, action)?;
        match after {
            ZoneState::Empty if before.state != ZoneState::Empty => self.reset(now, zone, commands),
            ZoneState::Full if before.state != ZoneState::Full => self.finish(now, zone, commands),
            ZoneState::Offline if before.state != ZoneState::Offline => {
                self.reset(now, zone, commands);
            }
            _ => {}
        }
        Ok(())
    }

    /// Nothing of `zone` is needed any more, programmed or not.
    fn reset(&mut self, now: Time, zone: ZoneId, commands: &mut CommandTable<P>) {
        self.counters.resets += 1;
        self.end_waiting_of(now, zone, Status::ZoneInvalidWrite, commands);
        self.buffer.discard(zone.0);
        for id in self.waiters.settled(zone, u32::MAX) {
            self.wait_over(now, id, commands);
        }
        self.plain.remove(&zone);
        self.ftl.drop_data(zone);
        self.offer(now, zone);
        self.pump_all(now);
    }

    /// Nothing more will be written to `zone`: what is buffered of it does not wait for full pages.
    fn finish(&mut self, now: Time, zone: ZoneId, commands: &CommandTable<P>) {
        self.counters.finishes += 1;
        if self.is_written_out(zone, commands) {
            self.ftl.close_body(zone);
        } else {
            self.buffer.force(zone.0, self.buffer.end(zone.0));
        }
        self.offer(now, zone);
    }

    /// Explicit commit of what a Zone Random Write Area holds, up to and including the block at `lba`. It waits, as
    /// a write does, for room for what it moves.
    fn ask_commit(&mut self, now: Time, id: RequestId, lba: Lba, commands: &mut CommandTable<P>) {
        let asked = self.zone_at(lba).and_then(|(zone, last)| {
            self.units_to_commit(zone, last)?;
            Ok(zone)
        });
        match asked {
            Ok(zone) => {
                let sectors = self.unit_sectors();
                commands.request_mut(id).units = Units::new(lba.0, sectors, sectors);
                self.queue_in_zrwa(now, id, zone, commands);
            }
            Err(status) => commands.complete(now, id, status),
        }
    }

    /// How many units of a zone's area a commit up to and including unit `last` moves.
    pub(super) fn units_to_commit(&self, zone: ZoneId, last: u32) -> Result<u32, Status> {
        let shape = self.ftl.shape();
        let state = self.ftl.zones().get(zone);
        let (wp, end) = (state.wp, last + 1);
        if !state.has_zrwa || last < wp || end > (wp + shape.zrwa_size).min(shape.capacity) {
            return Err(Status::ZoneInvalidOperation);
        }
        if !(end - wp).is_multiple_of(shape.zrwa_granularity) {
            return Err(Status::InvalidField);
        }
        Ok(end - wp)
    }

    fn set_extension(&mut self, lba: Lba, data: Box<[u8]>) -> Result<(), Status> {
        let (zone, unit) = self.zone_at(lba)?;
        let bytes = self.ftl.shape().extension_bytes;
        if unit != 0 || bytes == 0 || data.len() > bytes as usize {
            return Err(Status::InvalidField);
        }
        self.ftl.zones_mut().set_extension(zone, data).map_err(status_of)
    }

    /// Zone Management Receive.
    pub(super) fn report(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let Action::ZoneReport { lba, filter, partial, most } = commands.request(id).action else {
            return commands.complete(now, id, Status::InvalidOpcode);
        };
        let from = match self.zone_at(lba) {
            Ok((zone, _)) => zone,
            Err(status) => return commands.complete(now, id, status),
        };
        let matches = |state| filter == ZoneFilter::All || filter == ZoneFilter::In(state);
        let all = self.ftl.zones().all().skip(from.index());
        let found: Vec<ZoneId> =
            all.filter(|(_, zone)| matches(zone.state)).map(|(zone, _)| zone).collect();
        let zones: Vec<_> =
            found.iter().take(most as usize).map(|&zone| self.descriptor(zone)).collect();
        let count = if partial { zones.len() } else { found.len() } as u64;
        let report = Output::Zones(Box::new(ZoneReport { count, zones }));
        commands.complete_with(now, id, Status::Success, report);
    }

    /// A zone as a report describes it.
    pub(super) fn descriptor(&self, id: ZoneId) -> ZoneDescriptor {
        let (shape, zone) = (self.ftl.shape(), self.ftl.zones().get(id));
        let start = u64::from(id.0 * shape.size);
        let is_written = zone.state.is_active() || zone.state == ZoneState::Empty;
        let lba = |unit: u64| Lba(unit * self.unit_sectors());
        ZoneDescriptor {
            state: zone.state,
            start: lba(start),
            capacity: u64::from(shape.capacity) * self.unit_sectors(),
            write_pointer: is_written.then(|| lba(start + u64::from(zone.wp))),
            has_zrwa: zone.has_zrwa,
            is_changed: zone.is_changed,
            extension: zone.extension.clone(),
        }
    }
}

//! The execution of each command, from its arrival in the controller.

use std::collections::BTreeSet;

use leyden_buffer::PoolKind;
use leyden_buffer::Region;
use leyden_ftl::zoned::{Refusal, Refused, ZoneId, ZoneState};
use leyden_nand::Ppn;
use leyden_sim::Time;

use super::Zoned;
use crate::controller::{CommandTable, RequestId};
use crate::units::Units;
use crate::{Action, CopyRange, Lba, MOST_COPY_RANGES, Op, Payload, Status};

/// The status of a command that the zones refuse.
pub(super) const fn status_of(refused: Refused) -> Status {
    match refused {
        Refused::State(Refusal::InvalidTransition) => Status::ZoneInvalidTransition,
        Refused::State(Refusal::Full) => Status::ZoneFull,
        Refused::State(Refusal::ReadOnly) => Status::ZoneReadOnly,
        Refused::State(Refusal::Offline) => Status::ZoneOffline,
        Refused::TooManyActive => Status::TooManyActiveZones,
        Refused::TooManyOpen => Status::TooManyOpenZones,
        Refused::NoZrwa => Status::ZrwaUnavailable,
        Refused::InvalidOperation => Status::ZoneInvalidOperation,
    }
}

impl<P: Payload> Zoned<P> {
    /// A command, with its data if it is a write, is in the controller.
    #[inline]
    pub(super) fn execute(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let request = commands.request(id);
        let op = request.op();
        if let Some((lba, sectors)) = request.action.extent() {
            match self.units(lba, sectors) {
                Ok(units) => commands.request_mut(id).units = units,
                Err(status) => return commands.complete(now, id, status),
            }
        }
        if self.is_halted && !matches!(op, Op::Read | Op::ZoneReport | Op::WritePrepare) {
            // All that was ever acknowledged is where the last dump left it.
            let status = if op == Op::Flush { Status::Success } else { Status::WriteFault };
            return commands.complete(now, id, status);
        }
        match op {
            Op::Read => self.read(now, id, commands),
            Op::Copy => self.copy(now, id, commands),
            Op::Write | Op::WriteZeroes | Op::ZoneAppend => {
                if let Err(status) = self.write(now, id, commands) {
                    commands.complete(now, id, status);
                }
            }
            Op::Flush => self.flush(now, id, commands),
            Op::Trim => self.trim(now, id, commands),
            // Announcements of writes mean nothing to a drive that never moves data.
            Op::WritePrepare => commands.complete(now, id, Status::Success),
            Op::Zone(_) => self.manage(now, id, commands),
            Op::ZoneReport => self.report(now, id, commands),
        }
    }

    /// The units that a range of sectors covers; or what is wrong with it. Logical blocks are mapping units.
    fn units(&self, lba: Lba, sectors: u32) -> Result<Units, Status> {
        let unit_sectors = self.unit_sectors();
        let whole = |sectors: u64| sectors.is_multiple_of(unit_sectors);
        if sectors == 0 || !whole(lba.0) || !whole(u64::from(sectors)) {
            return Err(Status::InvalidField);
        }
        let units = u64::from(self.ftl.shape().zones) * u64::from(self.ftl.shape().size);
        match lba.0.checked_add(u64::from(sectors)) {
            Some(end) if end <= units * unit_sectors => {
                Ok(Units::new(lba.0, u64::from(sectors), unit_sectors))
            }
            Some(_) => Err(Status::LbaOutOfRange),
            None => Err(Status::InvalidField),
        }
    }

    /// Reads what is written: from the buffer, or from flash; everything else reads as zeroes.
    fn read(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let units = commands.units(id);
        if let Err(status) = self.may_read(units) {
            return commands.complete(now, id, status);
        }
        let request = commands.request_mut(id);
        let mut index = 0;
        request.pending = self.fetch(now, id, units, |content| {
            if P::STORED {
                P::gather(&mut request.read, units.part(index), &content);
            }
            index += 1;
        });
        if request.pending == 0 {
            commands.deliver(now, id);
        }
    }

    /// The units that a read of these sectors covers; or what is wrong with it.
    pub(super) fn readable(&self, lba: Lba, sectors: u32) -> Result<Units, Status> {
        let units = self.units(lba, sectors)?;
        self.may_read(units)?;
        Ok(units)
    }

    /// Whether `units` can be read.
    fn may_read(&self, units: Units) -> Result<(), Status> {
        let first = units.first().0;
        let (from, _) = self.zone_of(first);
        let (to, _) = self.zone_of(first + units.count() - 1);
        if from != to && !self.ftl.shape().reads_across {
            return Err(Status::ZoneBoundary);
        }
        let mut zones = (from.0..=to.0).map(ZoneId);
        if zones.any(|zone| self.ftl.zones().get(zone).state == ZoneState::Offline) {
            return Err(Status::ZoneOffline);
        }
        Ok(())
    }

    /// Hands what `units` hold to `take`, and starts the flash reads that bring it. Returns how many.
    fn fetch(&mut self, now: Time, id: RequestId, units: Units, mut take: impl FnMut(P)) -> u32 {
        let first = units.first().0;
        let mut pending = 0;
        // A run of units in the same flash page is one flash read.
        let mut run: Option<(Ppn, u32)> = None;
        for index in 0..units.count() {
            let (zone, unit) = self.zone_of(first + index);
            let (content, page) = self.newest(zone, unit);
            take(content);
            run = match (run, page) {
                (Some((current, count)), Some(page)) if current == page => Some((page, count + 1)),
                (previous, page) => {
                    pending += u32::from(previous.is_some());
                    if let Some((page, count)) = previous {
                        self.ftl.read(now, page, count, id.0);
                    }
                    page.map(|page| (page, 1))
                }
            };
        }
        pending += u32::from(run.is_some());
        if let Some((page, count)) = run {
            self.ftl.read(now, page, count, id.0);
        }
        pending
    }

    /// A flash read for a command has ended. With the last of them what a read has read goes out, and what a copy
    /// has read is written.
    pub(super) fn host_read_ended(
        &mut self,
        now: Time,
        id: RequestId,
        commands: &mut CommandTable<P>,
    ) {
        let request = commands.request_mut(id);
        request.pending -= 1;
        if request.pending > 0 {
            return;
        }
        if request.op() == Op::Copy {
            self.copied(now, id, commands);
        } else {
            commands.deliver(now, id);
        }
    }

    /// Reads what is to be copied, all of it as it is now.
    fn copy(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let Action::Copy { ranges, .. } = &commands.request(id).action else { return };
        let sources = match self.may_copy(ranges, commands.units(id)) {
            Ok(sources) => sources,
            Err(status) => return commands.complete(now, id, status),
        };
        let mut content = Vec::new();
        let mut pending = 0;
        for units in sources {
            pending += self.fetch(now, id, units, |unit| content.push(unit));
        }
        self.copies.insert(id.0, content);
        commands.request_mut(id).pending = pending;
        if pending == 0 {
            self.copied(now, id, commands);
        }
    }

    /// The units of a copy's sources, all of which can be read.
    fn may_copy(&self, ranges: &[CopyRange], to: Units) -> Result<Vec<Units>, Status> {
        if ranges.len() > MOST_COPY_RANGES || to.count() > self.ftl.shape().copy_limit {
            return Err(Status::SizeLimit);
        }
        let source = |range: &CopyRange| {
            let units = self.units(range.lba, range.sectors)?;
            self.may_read(units).map(|()| units)
        };
        ranges.iter().map(source).collect()
    }

    /// Continues a copy whose source has been read: from here on it is a write.
    fn copied(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let written =
            if self.is_halted { Err(Status::WriteFault) } else { self.write(now, id, commands) };
        if let Err(status) = written {
            self.copies.remove(&id.0);
            commands.complete(now, id, status);
        }
    }

    /// The content of a unit, and the flash page that it must be read from, if any.
    #[inline]
    pub(super) fn newest(&mut self, zone: ZoneId, unit: u32) -> (P, Option<Ppn>) {
        if let Some((content, page)) = self.on_flash(zone, unit) {
            return (content, Some(page));
        }
        let content = self.buffer.read(zone.0, unit, self.ftl.zones().get(zone).wp);
        self.counters.read_hits += u64::from(content.is_some());
        (content.unwrap_or_default(), None)
    }

    /// The content of a unit on flash, and its page; `None` if the unit is not below the settled ones.
    #[inline]
    fn on_flash(&self, zone: ZoneId, unit: u32) -> Option<(P, Ppn)> {
        if unit >= self.buffer.settled(zone.0) {
            return None;
        }
        let place = self.ftl.lies(zone, unit);
        let medium = self.ftl.medium();
        Some((medium.content(place), medium.geometry().page_of(place)))
    }

    /// The result of a read of a unit if it took no time and left no trace.
    pub(super) fn peek(&self, zone: ZoneId, unit: u32) -> P {
        if let Some((content, _)) = self.on_flash(zone, unit) {
            return content;
        }
        let wp = self.ftl.zones().get(zone).wp;
        self.buffer.peek(zone.0, unit, wp).unwrap_or_default()
    }

    /// Deallocation is advice, and a zone is deallocated by a reset: nothing changes.
    fn trim(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let units = commands.units(id);
        let (from, _) = self.zone_of(units.first().0);
        let (to, _) = self.zone_of(units.first().0 + units.count() - 1);
        let mut zones = (from.0..=to.0).map(ZoneId);
        let is_offline = zones.any(|it| self.ftl.zones().get(it).state == ZoneState::Offline);
        let status = if is_offline { Status::ZoneOffline } else { Status::Success };
        commands.complete(now, id, status);
    }

    /// Counts what a FLUSH waits for in `zones`, and what it does not.
    fn count_flush(&mut self, zones: &BTreeSet<ZoneId>) {
        if self.region != Region::None {
            let passed = self.buffer.pool(PoolKind::Protected).used();
            self.counters.flushes_past_protected += u64::from(passed > 0);
            self.counters.flush_passed_units += u64::from(passed);
        }
        let units: u32 = zones.iter().map(|zone| self.buffer.unprotected(zone.0)).sum();
        self.counters.flushes_waited += u64::from(units > 0);
        self.counters.flush_waited_units += u64::from(units);
        self.counters.flush_waited_zones += zones.len() as u64;
        self.counters.flush_waited_peak.raise_to(units);
    }

    /// FlashWaiters until everything unprotected that was acknowledged is on flash.
    fn flush(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let mut zones = std::mem::take(&mut self.plain);
        zones.retain(|zone| self.buffer.unprotected(zone.0) > 0);
        self.plain.clone_from(&zones);
        self.count_flush(&zones);
        commands.request_mut(id).pending = zones.len() as u32;
        if zones.is_empty() {
            return commands.complete(now, id, Status::Success);
        }
        self.flushes += 1;
        for zone in zones {
            let end = self.buffer.end(zone.0);
            self.waiters.add(zone, end, id);
            self.buffer.force(zone.0, end);
            self.offer(now, zone);
        }
    }
}

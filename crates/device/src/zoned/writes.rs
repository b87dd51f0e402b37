//! Writes and appends: checks, the write pointer, and the way into the buffer.

use leyden_buffer::PoolKind;
use leyden_buffer::Region;
use leyden_buffer::zoned::{BelowProtected, DuringFlush};
use leyden_ftl::zoned::{ZoneAction, ZoneId};
use leyden_sim::Time;

use super::Zoned;
use super::commands::status_of;
use crate::controller::{CommandTable, RequestId};
use crate::units::Units;
use crate::{Action, Lba, Op, Output, Payload, Status};

/// The next unit of a write that waits for a Zone Random Write Area: it enters as a whole.
pub(super) const IN_ZRWA: u32 = u32::MAX;

/// The flags of a write.
#[derive(Clone, Copy, Debug)]
struct Flags {
    plp: bool,
    is_append: bool,
}

impl<P: Payload> Zoned<P> {
    /// A write or an append has arrived. All checks precede any change: state, write pointer, boundary,
    /// resources (ZNS 1.1 leaves the order open where several apply; this is QEMU's).
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn write(
        &mut self,
        now: Time,
        id: RequestId,
        commands: &mut CommandTable<P>,
    ) -> Result<(), Status> {
        let units = commands.units(id);
        let (zone, offset) = self.zone_of(units.first().0);
        let asked = match commands.request(id).action {
            Action::Write { plp, .. } | Action::Copy { plp, .. } => Flags { plp, is_append: false },
            Action::ZoneAppend { plp, .. } => Flags { plp, is_append: true },
            _ => Flags { plp: false, is_append: false },
        };
        if asked.plp && self.region == Region::None {
            return Err(Status::InvalidField); // nothing is protected that it could ask for
        }
        let state = self.ftl.zones().get(zone);
        let (wp, has_zrwa) = (state.wp, state.has_zrwa);
        let at = if asked.is_append {
            self.check_append(zone, offset, units.count())?;
            wp
        } else {
            offset
        };
        state.state.after(ZoneAction::Write).map_err(|refusal| status_of(refusal.into()))?;
        if has_zrwa {
            if commands.request(id).op() == Op::Copy {
                // TP 4076 does not say what a copy into an area is.
                return Err(Status::ZoneInvalidOperation);
            }
            self.queue_in_zrwa(now, id, zone, commands);
            return Ok(());
        }
        if at != wp {
            return Err(Status::ZoneInvalidWrite);
        }
        if at + units.count() > self.ftl.shape().capacity {
            return Err(Status::ZoneBoundary);
        }
        let kind = self.pool_of(asked.plp);
        self.check_order(zone, kind, commands)?;
        self.ftl.zones_mut().apply(zone, ZoneAction::Write).map_err(status_of)?;
        self.ftl.zones_mut().advance(zone, wp + units.count());
        match commands.request(id).op() {
            Op::Copy => self.counters.copied_units += u64::from(units.count()),
            _ => self.counters.units_written += u64::from(units.count()),
        }
        self.counters.appends += u64::from(asked.is_append);
        let first = u64::from(zone.0 * self.ftl.shape().size + at) * self.unit_sectors();
        let sectors = u64::from(units.count()) * self.unit_sectors();
        let request = commands.request_mut(id);
        request.units = Units::new(first, sectors, self.unit_sectors());
        request.waiting_since = now;
        self.waiting[kind.index()].push_back(id);
        self.take_in_waiting(now, commands);
        Ok(())
    }

    fn check_append(&self, zone: ZoneId, offset: u32, units: u32) -> Result<(), Status> {
        if offset != 0 || units > self.ftl.shape().append_limit {
            return Err(Status::InvalidField);
        }
        if self.ftl.zones().get(zone).has_zrwa {
            return Err(Status::ZoneInvalidOperation);
        }
        Ok(())
    }

    /// The pool that a write's data goes to.
    pub(super) const fn pool_of(&self, plp: bool) -> PoolKind {
        match self.region {
            Region::Full => PoolKind::Protected,
            Region::Selective if plp => PoolKind::Protected,
            Region::None | Region::Selective => PoolKind::Plain,
        }
    }

    /// Refuses a protected write above unprotected data, if it is to be refused.
    fn check_order(
        &self,
        zone: ZoneId,
        kind: PoolKind,
        commands: &CommandTable<P>,
    ) -> Result<(), Status> {
        let may = self.below_protected == BelowProtected::Promote
            || kind == PoolKind::Plain
            || self.region == Region::Full;
        let waits = |id: &RequestId| self.zone_of(commands.units(*id).first().0).0 == zone;
        if may
            || self.buffer.unprotected(zone.0) == 0
                && !self.waiting[PoolKind::Plain.index()].iter().any(waits)
        {
            return Ok(());
        }
        Err(Status::SequenceError)
    }

    /// Lets waiting writes in until neither pool takes another unit. A write that goes into one pool may be what a
    /// write for the other waits for: by the order within their zone, or by the room that a promotion leaves.
    pub(super) fn take_in_waiting(&mut self, now: Time, commands: &mut CommandTable<P>) {
        loop {
            let before = self.fill_and_waiting();
            for kind in PoolKind::ALL {
                self.take_in_waiting_for(now, kind, commands);
            }
            let is_waited = self.waiting.iter().any(|waiting| !waiting.is_empty());
            if !is_waited || self.fill_and_waiting() == before {
                return;
            }
        }
    }

    /// Of each pool, the units in use and the writes that wait: equal before and after if nothing was let in.
    #[inline]
    fn fill_and_waiting(&self) -> [(u32, usize); 2] {
        PoolKind::ALL.map(|kind| (self.buffer.pool(kind).used(), self.waiting[kind.index()].len()))
    }

    /// Lets writes that wait for `kind` in, as far as there is room.
    fn take_in_waiting_for(&mut self, now: Time, kind: PoolKind, commands: &mut CommandTable<P>) {
        if self.is_suspended(kind) {
            return;
        }
        while let Some(&id) = self.waiting[kind.index()].front() {
            let zone = self.zone_of(commands.units(id).first().0).0;
            if commands.request(id).next_unit == IN_ZRWA {
                if !self.ftl.zones().get(zone).has_zrwa {
                    commands.complete(now, id, Status::ZoneFull); // it is, since this write has come
                } else if !self.take_in_zrwa(now, id, zone, commands) {
                    return;
                }
                self.waiting[kind.index()].pop_front();
            } else {
                if !self.take_in(now, id, kind, commands) {
                    return;
                }
                self.waiting[kind.index()].pop_front();
                self.admitted(now, id, kind, commands);
            }
        }
    }

    /// Writes to `kind` wait for a FLUSH to end.
    #[inline]
    fn is_suspended(&self, kind: PoolKind) -> bool {
        kind == PoolKind::Plain && self.flushes > 0 && self.during_flush == DuringFlush::Suspend
    }

    /// Takes units of a write into the buffer until it is full. True if the write is all in.
    #[inline]
    fn take_in(
        &mut self,
        now: Time,
        id: RequestId,
        kind: PoolKind,
        commands: &mut CommandTable<P>,
    ) -> bool {
        let units = commands.units(id);
        let done = commands.request(id).next_unit;
        let (zone, next) = self.zone_of(units.first().0 + done);
        if self.buffer.end(zone.0) != next {
            return false; // an earlier write of the zone waits for the other pool
        }
        if kind == PoolKind::Protected && !self.protect_below(now, zone) {
            return false;
        }
        let left = units.count() - done;
        let count = left.min(self.buffer.pool(kind).room());
        let request = commands.request_mut(id);
        for index in done..done + count {
            let content = match &request.action {
                Action::Write { data, .. } | Action::ZoneAppend { data, .. } if P::STORED => {
                    P::written(data, units.part(index))
                }
                Action::Copy { .. } => self.copies[&id.0][index as usize].clone(),
                _ => P::default(),
            };
            self.buffer.push(zone.0, kind, content);
        }
        request.next_unit += count;
        if kind == PoolKind::Plain && count > 0 {
            self.plain.insert(zone);
        }
        self.offer(now, zone);
        count == left
    }

    /// Protects what is below a protected write; or sees that it gets to flash. True if that is done.
    fn protect_below(&mut self, now: Time, zone: ZoneId) -> bool {
        if self.buffer.unprotected(zone.0) == 0 {
            return true;
        }
        if self.buffer.promote(zone.0) {
            return true;
        }
        self.buffer.force(zone.0, self.buffer.end(zone.0));
        self.offer(now, zone);
        false
    }

    /// All of a write is in the buffer: it is acknowledged, unless it forces unit access.
    fn admitted(
        &mut self,
        now: Time,
        id: RequestId,
        kind: PoolKind,
        commands: &mut CommandTable<P>,
    ) {
        self.copies.remove(&id.0);
        let request = commands.request(id);
        self.counters.stalled += now - request.waiting_since;
        let fua = match request.action {
            Action::Write { fua, .. }
            | Action::ZoneAppend { fua, .. }
            | Action::WriteZeroes { fua, .. }
            | Action::Copy { fua, .. } => fua,
            _ => false,
        };
        let units = request.units;
        let (zone, first) = self.zone_of(units.first().0);
        let end = first + units.count();
        if end < self.ftl.shape().capacity && self.ftl.zones().get(zone).state.takes_no_more() {
            // It has waited for room since before a Finish.
            self.buffer.force(zone.0, end);
            self.offer(now, zone);
        }
        if !fua || kind == PoolKind::Protected {
            return self.end(now, id, Status::Success, commands);
        }
        if self.buffer.settled(zone.0) >= end {
            return self.end(now, id, Status::Success, commands);
        }
        commands.request_mut(id).pending = 1;
        self.waiters.add(zone, end, id);
        self.buffer.force(zone.0, end);
        self.offer(now, zone);
    }

    /// Ends a command; an append returns where it has written.
    pub(super) fn end(
        &self,
        now: Time,
        id: RequestId,
        status: Status,
        commands: &mut CommandTable<P>,
    ) {
        let request = commands.request(id);
        let output = match request.action {
            Action::ZoneAppend { .. } if status == Status::Success => {
                Output::Appended(Lba(u64::from(request.units.first().0) * self.unit_sectors()))
            }
            _ => Output::None,
        };
        commands.complete_with(now, id, status, output);
    }

    /// A write to a zone with a Zone Random Write Area, or a commit of it, behind others to the same zone that wait for
    /// what they commit to have room.
    pub(super) fn queue_in_zrwa(
        &mut self,
        now: Time,
        id: RequestId,
        zone: ZoneId,
        commands: &mut CommandTable<P>,
    ) {
        let kind = PoolKind::Protected;
        commands.request_mut(id).waiting_since = now;
        let is_of_zone = |&id: &RequestId| self.zone_of(commands.units(id).first().0).0 == zone;
        let is_behind = self.waiting[kind.index()].iter().any(is_of_zone);
        if is_behind || !self.take_in_zrwa(now, id, zone, commands) {
            commands.request_mut(id).next_unit = IN_ZRWA;
            self.waiting[kind.index()].push_back(id);
        }
    }

    /// A write to a zone with a Zone Random Write Area (TP 4076): anywhere in it, in any order; one that
    /// ends beyond it commits what makes room for it. True if it has ended, well or not; false if there is
    /// no room for what it commits.
    fn take_in_zrwa(
        &mut self,
        now: Time,
        id: RequestId,
        zone: ZoneId,
        commands: &mut CommandTable<P>,
    ) -> bool {
        let units = commands.units(id);
        let shape = *self.ftl.shape();
        let at = self.zone_of(units.first().0).1;
        if matches!(commands.request(id).action, Action::Zone { .. }) {
            return self.take_commit(now, id, zone, at, commands);
        }
        let (wp, end) = (self.ftl.zones().get(zone).wp, at + units.count());
        let limit = wp + shape.zrwa_size;
        if end > shape.capacity {
            commands.complete(now, id, Status::ZoneBoundary);
            return true;
        }
        if at < wp || end > limit + shape.zrwa_size {
            commands.complete(now, id, Status::ZoneInvalidWrite);
            return true;
        }
        let beyond = end.saturating_sub(limit);
        let commit = beyond.next_multiple_of(shape.zrwa_granularity).min(shape.capacity - wp);
        if commit > self.buffer.pool(PoolKind::Protected).room() {
            self.empty_protected(now);
            return false;
        }
        if let Err(refused) = self.ftl.zones_mut().apply(zone, ZoneAction::Write) {
            commands.complete(now, id, status_of(refused));
            return true;
        }
        // Units that it commits itself lie in the area as it was.
        let within = limit.clamp(at, end) - at;
        self.write_window(id, zone, 0..within, at, wp, commands);
        self.commit(now, zone, commit);
        self.write_window(id, zone, within..units.count(), at, wp + commit, commands);
        self.counters.units_written += u64::from(units.count());
        self.counters.stalled += now - commands.request(id).waiting_since;
        commands.complete(now, id, Status::Success);
        true
    }

    /// Commits the area of a zone up to and including unit `last`. True if the command has ended, well or not; false
    /// if there is no room for what it commits.
    fn take_commit(
        &mut self,
        now: Time,
        id: RequestId,
        zone: ZoneId,
        last: u32,
        commands: &mut CommandTable<P>,
    ) -> bool {
        let units = match self.units_to_commit(zone, last) {
            Ok(units) => units,
            Err(status) => {
                commands.complete(now, id, status);
                return true;
            }
        };
        if units > self.buffer.pool(PoolKind::Protected).room() {
            self.empty_protected(now);
            return false;
        }
        let done = self.ftl.zones_mut().apply(zone, ZoneAction::FlushZrwa).map_err(status_of);
        if done.is_ok() {
            self.commit(now, zone, units);
        }
        commands.complete(now, id, done.err().unwrap_or(Status::Success));
        true
    }

    /// Puts a part of a write that begins at unit `at` into the area of a zone, which begins at `wp`.
    fn write_window(
        &mut self,
        id: RequestId,
        zone: ZoneId,
        part: std::ops::Range<u32>,
        at: u32,
        wp: u32,
        commands: &CommandTable<P>,
    ) {
        let request = commands.request(id);
        for index in part {
            let content = match &request.action {
                Action::Write { data, .. } if P::STORED => {
                    P::written(data, request.units.part(index))
                }
                _ => P::default(),
            };
            self.buffer.write_window(zone.0, at + index - wp, content);
        }
    }

    /// Writes out everything that is protected: a commit needs room for all that it moves at once.
    pub(super) fn empty_protected(&mut self, now: Time) {
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            if self.buffer.force(zone.0, self.buffer.kept(zone.0)) {
                self.offer(now, zone);
            }
        }
    }

    /// Commits the first `units` units of a zone's area.
    pub(super) fn commit(&mut self, now: Time, zone: ZoneId, units: u32) {
        if units == 0 {
            return;
        }
        let wp = self.ftl.zones().get(zone).wp + units;
        self.buffer.commit_window(zone.0, units);
        self.ftl.zones_mut().advance(zone, wp);
        if !self.ftl.zones().get(zone).has_zrwa {
            self.buffer.close_window(zone.0);
        }
        self.offer(now, zone);
    }
}

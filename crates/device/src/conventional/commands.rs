//! The execution of each command, from its arrival in the controller.
//!
//! Reads ask the buffer, then the map; writes go into the buffer as far as there is room; FLUSH and
//! FUA wait for flash if nothing else protects the buffer; trims deallocate. What happens when flash
//! operations end is in [`super`].

use leyden_buffer::{PoolKind, Region, WriteBuffer, Written};
use leyden_ftl::page_mapped::Ftl;
use leyden_nand::{Lpn, Ppn};
use leyden_sim::Time;

use super::atomic::Entry;
use super::{Changed, Conventional};
use crate::controller::{CommandTable, Request, RequestId};
use crate::units::Units;
use crate::{Action, DataKind, Lba, Op, Payload, Status};

/// How many units before it a unit's place in the buffer's index is brought near.
const UNITS_EXPECTED: u32 = 4;

impl<P: Payload> Conventional<P> {
    /// A command, with its data if it is a write, is in the controller.
    #[inline]
    pub(super) fn execute(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        if let Some((lba, sectors)) = commands.request(id).action.extent() {
            let status = self.check_extent(lba, sectors);
            if status != Status::Success {
                commands.complete(now, id, status);
                return;
            }
            let units = Units::new(lba.0, u64::from(sectors), self.unit_sectors());
            commands.request_mut(id).units = units;
        }
        if let Some(status) = self.refusal(commands.request(id)) {
            commands.complete(now, id, status);
            return;
        }
        match commands.request(id).action {
            Action::Read { hint, .. } => {
                self.on_hint(now, hint);
                self.read(now, id, commands);
            }
            // Nothing is protected that the flag could ask for.
            Action::Write { plp: true, .. } if self.region == Region::None => {
                commands.complete(now, id, Status::InvalidField);
            }
            Action::Write { kind, hint, .. } => {
                self.note_write(now, commands.units(id), kind == DataKind::Log);
                self.on_hint(now, hint);
                self.write(now, id, commands);
            }
            Action::Flush { .. } => self.flush(now, id, commands),
            Action::Trim { .. } | Action::WriteZeroes { .. } => {
                self.note_trim(commands.units(id));
                self.trim(now, id, commands);
            }
            Action::WritePrepare { .. } => self.write_prepare(now, id, commands),
            Action::ZoneAppend { .. }
            | Action::Copy { .. }
            | Action::Zone { .. }
            | Action::ZoneExtension { .. }
            | Action::ZoneReport { .. } => commands.complete(now, id, Status::InvalidOpcode),
        }
    }

    /// How a command ends at once on a drive that may write nothing any more; `None` if it is executed.
    #[inline]
    fn refusal(&self, request: &Request<P>) -> Option<Status> {
        let op = request.op();
        match op {
            _ if !self.is_halted => None,
            Op::Read | Op::WritePrepare => None,
            // All that was ever acknowledged is where the last dump left it.
            Op::Flush => Some(Status::Success),
            _ => Some(Status::WriteFault),
        }
    }

    /// The status of a range of sectors: success, or its fault.
    #[inline]
    fn check_extent(&self, lba: Lba, sectors: u32) -> Status {
        match lba.0.checked_add(u64::from(sectors)) {
            _ if sectors == 0 => Status::InvalidField,
            Some(end) if end <= self.capacity_sectors() => Status::Success,
            _ => Status::LbaOutOfRange,
        }
    }

    /// Reads each unit from the buffer, from flash (one operation for neighbours in a page), or
    /// as zeroes.
    fn read(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let units = commands.units(id);
        let mut run: Option<(Ppn, u32)> = None;
        let mut pending = 0;
        for index in 0..units.count() {
            let lpn = Lpn(units.first().0 + index);
            let (content, page) = match self.writer.buffer.read(lpn) {
                Some(content) => {
                    self.counters.read_hits += 1;
                    (content, None)
                }
                None => match self.ftl.map().get(lpn) {
                    Some(unit) => (self.ftl.content(unit), Some(self.ftl.geometry().page_of(unit))),
                    None => (P::default(), None),
                },
            };
            if P::STORED {
                let request = commands.request_mut(id);
                P::gather(&mut request.read, units.part(index), &content);
            }
            run = match (run, page) {
                (Some((current, count)), Some(page)) if current == page => Some((page, count + 1)),
                (previous, page) => {
                    if let Some((page, count)) = previous {
                        self.ftl.read(now, page, count, id.0);
                        pending += 1;
                    }
                    page.map(|page| (page, 1))
                }
            };
        }
        if let Some((page, count)) = run {
            self.ftl.read(now, page, count, id.0);
            pending += 1;
        }
        commands.request_mut(id).pending = pending;
        if pending == 0 {
            commands.deliver(now, id);
        }
    }

    /// Brings in the rest of units written in part, then takes the data into the buffer.
    #[inline(always)]
    fn write(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let units = commands.units(id);
        self.counters.units_written += u64::from(units.count());
        let pending = if units.are_whole() { 0 } else { self.read_rest(now, id, units) };
        commands.request_mut(id).pending = pending;
        if pending == 0 {
            self.queue_write(now, id, commands);
        }
    }

    /// Reads the units that a write touches in part from flash; returns how many.
    #[inline(never)]
    fn read_rest(&mut self, now: Time, id: RequestId, units: Units) -> u32 {
        let mut pending = 0;
        for lpn in units.partial() {
            if self.writer.buffer.read(lpn).is_some() {
                continue; // merged in DRAM
            }
            if let Some(unit) = self.ftl.map().get(lpn) {
                self.ftl.read_rest(now, self.ftl.geometry().page_of(unit), id.0);
                pending += 1;
            }
        }
        pending
    }

    /// A write has all its data: it is next, or behind those that wait for room.
    #[inline]
    pub(super) fn queue_write(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        commands.request_mut(id).waiting_since = now;
        let pool = self.pool_of(&commands.request(id).action);
        if !self.waiting[pool.index()].is_empty() || !self.take_in(now, id, pool, commands) {
            self.waiting[pool.index()].push_back(id);
        }
        if pool == PoolKind::Protected && !self.waiting[PoolKind::Plain.index()].is_empty() {
            self.take_in_waiting(now, commands); // what has moved to this pool has left room in the other
        }
        self.writer.pump_idle(now, &mut self.ftl);
    }

    /// The pool that a write's data goes to: FUA asks for what the protected one gives.
    #[inline]
    fn pool_of(&self, action: &Action<P>) -> PoolKind {
        let asks = match action {
            Action::Write { plp, fua, .. } => *plp || *fua,
            Action::WriteZeroes { fua, .. } => *fua,
            _ => false,
        };
        match self.region {
            Region::Full => PoolKind::Protected,
            Region::Selective if asks => PoolKind::Protected,
            Region::None | Region::Selective => PoolKind::Plain,
        }
    }

    /// Takes units of a write into a pool until it is full; what is left of a unit that it covers
    /// in part is what the unit holds now, and not when the command came. True if the write is all in.
    #[inline(always)]
    fn take_in(
        &mut self,
        now: Time,
        id: RequestId,
        pool: PoolKind,
        commands: &mut CommandTable<P>,
    ) -> bool {
        // Most writes are no more than data: without what others need they take a sixth fewer instructions.
        let waits_for_flash = self.region == Region::None;
        match commands.request(id).action {
            Action::Write { fua, .. } if self.atomic.is_none() && !(fua && waits_for_flash) => {
                self.take_in_as::<true>(now, id, pool, commands)
            }
            _ => self.take_in_as::<false>(now, id, pool, commands),
        }
    }

    /// As [`Conventional::take_in`]. With `ONLY_DATA`, of a write that is not atomic, has no zeroes and waits for no unit.
    #[inline(never)]
    fn take_in_as<const ONLY_DATA: bool>(
        &mut self,
        now: Time,
        id: RequestId,
        pool: PoolKind,
        commands: &mut CommandTable<P>,
    ) -> bool {
        let units = commands.units(id);
        let asked = Entry { pool, is_group: false };
        let entry = if ONLY_DATA { Some(asked) } else { self.entry(id, asked, commands) };
        let Some(Entry { pool, is_group }) = entry else { return false };
        let request = commands.request_mut(id);
        let (data, fua, zeroes) = match &request.action {
            Action::Write { data, fua, .. } => (data, *fua, false),
            Action::WriteZeroes { data, fua, .. } => (data, *fua, true),
            _ => unreachable!("only writes have data to take in"),
        };
        let (fua, zeroes) = (fua && !ONLY_DATA, zeroes && !ONLY_DATA);
        // Deallocated units are as durable as trims are.
        let forces_trims = fua && zeroes && self.region != Region::Full;
        let fua = fua && self.region == Region::None;
        let keeps_groups = !ONLY_DATA && self.writer.buffer.keeps_groups();
        while request.next_unit < units.count() {
            let index = request.next_unit;
            if zeroes && !units.is_partial(index) {
                request.next_unit += 1; // deallocated
                continue;
            }
            let lpn = Lpn(units.first().0 + index);
            self.writer.buffer.expect(Lpn(lpn.0.wrapping_add(UNITS_EXPECTED)));
            if keeps_groups && !self.writer.may_overwrite(&self.ftl, lpn, pool) {
                return false;
            }
            let content = self.content_of(lpn, data, zeroes, units, index);
            let slot = match self.writer.buffer.write(lpn, content, pool) {
                Written::Inserted(slot) | Written::Coalesced(slot) => slot,
                Written::Full => return false,
            };
            request.next_unit += 1;
            if fua && !is_group {
                request.pending += 1;
                self.writer.wait_for(&self.ftl, slot, id);
            }
        }
        if is_group {
            self.writer.group(units);
            if fua {
                request.pending += self.writer.wait_for_group(&self.ftl, units, id);
            }
        }
        if forces_trims && self.ftl.has_unsaved_trims() {
            request.pending += 1;
            self.dropped.push(id);
        }
        self.counters.stalled += now - request.waiting_since;
        if request.pending == 0 {
            commands.complete(now, id, Status::Success);
        }
        true
    }

    /// The entry of a write: `asked`, unless it is atomic. `None` if it has to wait with all of its units.
    #[inline]
    fn entry(&mut self, id: RequestId, asked: Entry, commands: &CommandTable<P>) -> Option<Entry> {
        let Some(atomic) = &self.atomic else { return Some(asked) };
        let (request, units) = (commands.request(id), commands.units(id));
        let Action::Write { lba, sectors, .. } = &request.action else { return Some(asked) };
        let (lba, sectors) = (lba.0, u64::from(*sectors));
        let survives = atomic.survives(lba, sectors);
        let is_atomic = survives || atomic.is_normal(lba, sectors);
        if request.next_unit > 0 || units.count() < 2 || !is_atomic {
            return Some(asked);
        }
        let is_group = self.region != Region::Full && survives;
        self.writer.enter(&self.ftl, units, Entry { is_group, ..asked })
    }

    /// The new content of `lpn`, unit `index` of those that a write touches: a unit that it covers
    /// in part keeps the rest of its present content.
    #[inline(always)]
    fn content_of(
        &self,
        lpn: Lpn,
        data: &P::WriteData,
        zeroes: bool,
        units: Units,
        index: u32,
    ) -> P {
        if !P::STORED {
            return P::default();
        }
        if !units.is_partial(index) {
            return P::written(data, units.part(index));
        }
        let old = newest(&self.writer.buffer, &self.ftl, lpn);
        let change = if zeroes { P::zeroed } else { P::merged };
        change(&old, data, units.part(index))
    }

    /// Lets waiting writes in, as far as there is room.
    #[inline(always)]
    pub(super) fn take_in_waiting(&mut self, now: Time, commands: &mut CommandTable<P>) {
        let grouping = &mut self.writer.grouping;
        (grouping.wants_room, grouping.wants_table) = (false, false);
        if self.waiting.iter().any(|waiting| !waiting.is_empty()) {
            self.take_in_all_waiting(now, commands);
        }
    }

    #[inline(never)]
    fn take_in_all_waiting(&mut self, now: Time, commands: &mut CommandTable<P>) {
        for pool in PoolKind::ALL {
            while let Some(&id) = self.waiting[pool.index()].front() {
                if !self.take_in(now, id, pool, commands) {
                    break;
                }
                self.waiting[pool.index()].pop_front();
            }
        }
    }

    /// With a protected buffer a flush has nothing to do; else it waits for what is buffered.
    #[inline(never)]
    fn flush(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let (ticket, trims) = match self.region {
            Region::Full => (None, false),
            Region::None | Region::Selective => {
                (self.writer.buffer.begin_flush(), self.ftl.has_unsaved_trims())
            }
        };
        if ticket.is_none() && !trims && self.flushes.is_empty() {
            commands.complete(now, id, Status::Success);
            return;
        }
        self.flushes.push_back((ticket, id));
        self.writer.pump_idle(now, &mut self.ftl);
    }

    /// Deallocates the whole units of the range. Parts of units keep their data on a trim (NVM Command
    /// Set 1.0, 3.2.3: the range is a hint); zeroes in part of a unit are a write like any other.
    #[inline(never)]
    fn trim(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        if !self.trims.is_empty() || !self.deallocate(now, id, commands) {
            self.trims.push_back(id);
            self.writer.pump_woken(now, &mut self.ftl);
            if self.writer.buffer.keeps_groups() {
                self.writer.pump_idle(now, &mut self.ftl);
            }
        }
    }

    /// Goes on with trims that wait for the mapping table.
    #[inline]
    pub(super) fn continue_trims(&mut self, now: Time, commands: &mut CommandTable<P>) {
        while let Some(&id) = self.trims.front() {
            if !self.deallocate(now, id, commands) {
                break;
            }
            self.trims.pop_front();
        }
    }

    /// Deallocates as much of a trim's range as the mapping table's protection allows, a mapping page
    /// at a time. True if that was all of it; the command goes on then.
    fn deallocate(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) -> bool {
        let (first, end) = commands.units(id).whole();
        let mut at = Lpn(first.0 + commands.request(id).next_unit);
        while at < end {
            let stop = self.trimmed_until(at, end);
            if self.ftl.store().writes_back() {
                let page = self.ftl.map().page_of(at);
                // Units in flight to flash could be taken for data after a cut.
                let buffered = self.ftl.store().may_be_scanned(page)
                    && !self.writer.buffer.lpns_in(at, stop).is_empty();
                let mapped = self.ftl.map().next_mapped(at, stop).is_some();
                if (mapped || buffered) && !self.ftl.may_trim(page) {
                    commands.request_mut(id).next_unit = at.0 - first.0;
                    return false;
                }
                if buffered {
                    self.ftl.note_trim(page);
                }
            }
            self.discard_buffered(at, stop);
            while let Some(lpn) = self.ftl.map().next_mapped(at, stop) {
                self.ftl.trim(now, lpn);
                at = Lpn(lpn.0 + 1);
            }
            at = stop;
        }
        commands.request_mut(id).next_unit = 0;
        self.after(now, Changed::Settled, None, commands);
        if commands.request(id).op() == Op::Trim {
            commands.complete(now, id, Status::Success);
        } else {
            self.write(now, id, commands);
        }
        true
    }

    /// The end of a trim of `at..end` in one step: that of a mapping page, if these are written back.
    #[inline]
    fn trimmed_until(&self, at: Lpn, end: Lpn) -> Lpn {
        if !self.ftl.store().writes_back() {
            return end;
        }
        let page = self.ftl.map().page_of(at);
        let most = Lpn(at.0.saturating_add(self.ftl.store().trim_room().max(1)));
        self.ftl.map().lpns_of(page).1.min(end).min(most)
    }

    fn discard_buffered(&mut self, first: Lpn, end: Lpn) {
        for lpn in self.writer.buffer.lpns_in(first, end) {
            let Some(freed) = self.writer.buffer.discard(lpn) else {
                continue;
            };
            while let Some(request) = self.writer.let_go(freed.slot, freed.staged) {
                self.dropped.push(request);
            }
        }
    }
}

/// The present content of `lpn`: in the buffer, or on flash, or zeroes.
pub(super) fn newest<P: Payload>(buffer: &WriteBuffer<P>, ftl: &Ftl<P>, lpn: Lpn) -> P {
    let on_flash = || ftl.map().get(lpn).map(|unit| ftl.content(unit));
    buffer.read(lpn).or_else(on_flash).unwrap_or_default()
}

//! The drive: takes commands, drives the layers below, hands back completions.

use std::collections::VecDeque;

use leyden_buffer::{FlushTicket, Region, WriteBuffer, Written};
use leyden_ftl::page_mapped::{Ended, Ftl};
use leyden_nand::{DieId, Geometry, Lpn};
use leyden_sim::{Digest, Span, Time};

use crate::command::SECTOR_BYTES;
use crate::frontend::{Frontend, Passage};
use crate::requests::{Request, RequestId, Requests};
use crate::units::Units;
use crate::writer::Writer;
use crate::{
    BlockDevice, Command, CommandId, Completion, Config, ConfigError, Op, Payload, Status,
};

/// A conventional (page-mapped) SSD.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Lba, Op, Ssd, Stamp, Status};
/// use leyden_sim::Time;
///
/// let mut ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
/// let write = Command { data: 7, ..Command::new(Op::Write, Lba(0), 8) };
/// ssd.submit(ssd.now(), write);
/// let mut done = Vec::new();
/// while let Some(time) = ssd.next_event() {
///     ssd.advance(time, &mut done);
/// }
/// assert_eq!(done[0].status, Status::Success);
///
/// ssd.submit(ssd.now(), Command::new(Op::Read, Lba(0), 8));
/// while let Some(time) = ssd.next_event() {
///     ssd.advance(time, &mut done);
/// }
/// assert_eq!(done[1].data, [Stamp(7)]);
/// ```
#[derive(Debug)]
pub struct Ssd<P: Payload> {
    pub(crate) now: Time,
    pub(crate) frontend: Frontend,
    pub(crate) requests: Requests<P>,
    pub(crate) writer: Writer<P>,
    pub(crate) ftl: Ftl<P>,
    pub(crate) region: Region,
    /// Writes that wait for room in the buffer, first come, first served.
    waiting: VecDeque<RequestId>,
    /// Flushes that wait for data to be on flash, in order.
    flushes: VecDeque<(FlushTicket, RequestId)>,
    pub(crate) next_id: u64,
    pub(crate) digest: Digest,
    pub(crate) counters: Counters,
}

/// What the drive itself counts; the layers count the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) units_written: u64,
    pub(crate) read_hits: u64,
    pub(crate) rmw_reads: u64,
    pub(crate) stalled: Span,
}

impl<P: Payload> Ssd<P> {
    /// An empty drive. Everything random in it comes from `seed`.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.frontend.check().map_err(|error| ConfigError::within("frontend", error))?;
        let geometry = config
            .nand
            .geometry(config.ftl.mapping_unit)
            .map_err(|error| ConfigError::within("nand", (error.key, error.problem)))?;
        let streams = config.ftl.placement.streams();
        let (slots, threshold) = config
            .buffer
            .slots(geometry.unit_bytes(), geometry.units_per_page(), streams)
            .map_err(|error| ConfigError::within("buffer", (error.key, error.problem)))?;
        let ftl = Ftl::new(&config.ftl, &config.nand, geometry, seed)
            .map_err(|error| ConfigError::within("ftl", (error.key, error.problem)))?;
        let buffer = WriteBuffer::new(&config.buffer, slots, threshold);
        Ok(Self {
            now: Time::ZERO,
            frontend: Frontend::new(&config.frontend),
            requests: Requests::new(),
            writer: Writer::new(buffer, &ftl, streams),
            ftl,
            region: config.buffer.region,
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            next_id: 0,
            digest: Digest::default(),
            counters: Counters::default(),
        })
    }

    /// The latest time the drive has been told. A new driver begins here.
    pub const fn now(&self) -> Time {
        self.now
    }
    /// The flash's shape.
    pub const fn geometry(&self) -> &Geometry {
        self.ftl.geometry()
    }
    /// Mapping units that can be addressed.
    pub fn mapping_units(&self) -> u32 {
        self.ftl.map().len()
    }
    /// Fingerprint of everything the flash did and every command that ended.
    pub const fn digest(&self) -> Digest {
        self.digest
    }
    /// Bytes of memory that grow with capacity.
    pub fn memory_bytes(&self) -> u64 {
        self.ftl.memory_bytes()
    }
    /// Erases of every block; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.ftl.blocks().wear()
    }
    /// True if no command and no flash operation is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.ftl.is_idle() && self.frontend.is_idle()
    }
    /// Lets flash operations take no time, to precondition a drive quickly. Everything else, like
    /// placement and garbage collection, is as ever.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn set_untimed(&mut self, untimed: bool) {
        assert!(self.is_idle(), "the drive is at work");
        self.ftl.set_untimed(untimed);
    }

    /// Asserts that the drive's structures agree with each other and that every page programmed is
    /// accounted for. Costs a pass over the drive's state.
    ///
    /// # Panics
    /// If they do not: a bug of ours.
    pub fn check(&self) {
        if let Err(violation) = self.ftl.check() {
            panic!("broken invariant: {violation}");
        }
    }

    /// A command, with its data if it is a write, is in the controller.
    fn arrive(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let request = self.requests.get(id);
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        let status = match request.op {
            Op::Flush => Status::Success,
            _ if request.sectors == 0 => Status::InvalidField,
            _ if end.is_none_or(|end| end > self.capacity_sectors()) => Status::LbaOutOfRange,
            _ => Status::Success,
        };
        if status != Status::Success {
            self.complete(now, id, status, out);
            return;
        }
        match request.op {
            Op::Read => self.read(now, id),
            Op::Write => self.write(now, id, out),
            Op::Flush => self.flush(now, id, out),
            Op::Trim => self.trim(now, id, out),
            Op::WriteZeroes => self.write_zeroes(now, id, out),
        }
    }

    /// Reads each unit from the buffer, from flash (one operation for neighbours in a page), or
    /// as zeroes.
    fn read(&mut self, now: Time, id: RequestId) {
        let units = self.units_of(id);
        let mut run: Option<(leyden_nand::Ppn, u32)> = None;
        let mut pending = 0;
        for index in 0..units.count {
            let lpn = Lpn(units.first.0 + index);
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
                let request = self.requests.get_mut(id);
                P::gather(&mut request.read, index, units.count, content);
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
        self.requests.get_mut(id).pending = pending;
        if pending == 0 {
            self.deliver(now, id);
        }
    }

    /// Brings in the rest of units written in part, then takes the data into the buffer.
    fn write(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let units = self.units_of(id);
        self.counters.units_written += u64::from(units.count);
        let mut pending = 0;
        for lpn in units.partial() {
            if self.writer.buffer.read(lpn).is_some() {
                continue; // merged in DRAM
            }
            if let Some(unit) = self.ftl.map().get(lpn) {
                self.ftl.read(now, self.ftl.geometry().page_of(unit), 1, id.0);
                self.counters.rmw_reads += 1;
                pending += 1;
            }
        }
        self.requests.get_mut(id).pending = pending;
        if pending == 0 {
            self.queue_write(now, id, out);
        }
    }

    /// A write has all its data: it is next, or behind those that wait for room.
    #[inline]
    fn queue_write(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        self.requests.get_mut(id).waiting_since = now;
        if !self.waiting.is_empty() || !self.take_in(now, id, out) {
            self.waiting.push_back(id);
        }
        self.writer.pump_idle(now, &mut self.ftl);
    }

    /// Takes units of a write into the buffer until it is full. True if the write is all in.
    #[inline]
    fn take_in(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) -> bool {
        let units = self.units_of(id);
        let fua = self.requests.get(id).fua && self.region == Region::None;
        loop {
            let request = self.requests.get_mut(id);
            let index = request.next_unit;
            if index == units.count {
                break;
            }
            if request.op == Op::WriteZeroes && !units.is_partial(index) {
                request.next_unit += 1; // deallocated
                continue;
            }
            let content = P::written(request.data, index);
            let lpn = Lpn(units.first.0 + index);
            let slot = match self.writer.buffer.write(lpn, content) {
                Written::Inserted(slot) | Written::Coalesced(slot) => slot,
                Written::Full => return false,
            };
            let request = self.requests.get_mut(id);
            request.next_unit += 1;
            if fua {
                request.pending += 1;
                self.writer.wait_for(&self.ftl, slot, id);
            }
        }
        let request = self.requests.get(id);
        self.counters.stalled += now - request.waiting_since;
        if request.pending == 0 {
            self.complete(now, id, Status::Success, out);
        }
        true
    }

    /// Lets waiting writes in, as far as there is room.
    #[inline]
    fn take_in_waiting(&mut self, now: Time, out: &mut Vec<Completion<P>>) {
        while let Some(&id) = self.waiting.front() {
            if !self.take_in(now, id, out) {
                break;
            }
            self.waiting.pop_front();
        }
    }

    /// With a protected buffer a flush has nothing to do; else it waits for what is buffered.
    fn flush(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let ticket = match self.region {
            Region::Full => None,
            Region::None => self.writer.buffer.begin_flush(),
        };
        match ticket {
            None => self.complete(now, id, Status::Success, out),
            Some(ticket) => {
                self.flushes.push_back((ticket, id));
                self.writer.pump_idle(now, &mut self.ftl);
            }
        }
    }

    /// Deallocates the whole units of the range; parts of units keep their data (NVM Command Set
    /// 1.0, 3.2.3: the range is a hint).
    fn trim(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let units = self.units_of(id);
        let (first, end) = units.whole();
        self.deallocate(now, first, end, out);
        self.complete(now, id, Status::Success, out);
    }

    /// Deallocates whole units; zeroes in part of a unit are a write like any other.
    fn write_zeroes(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let (first, end) = self.units_of(id).whole();
        self.deallocate(now, first, end, out);
        self.write(now, id, out);
    }

    fn deallocate(&mut self, now: Time, first: Lpn, end: Lpn, out: &mut Vec<Completion<P>>) {
        self.discard_buffered(now, first, end, out);
        let mut next = first;
        while let Some(lpn) = self.ftl.map().next_mapped(next, end) {
            self.ftl.trim(now, lpn);
            next = Lpn(lpn.0 + 1);
        }
        self.settle_flushes(now, out);
        self.take_in_waiting(now, out);
        self.writer.pump_starved(now, &mut self.ftl);
        self.writer.pump_idle(now, &mut self.ftl);
    }

    fn discard_buffered(&mut self, now: Time, first: Lpn, end: Lpn, out: &mut Vec<Completion<P>>) {
        for lpn in self.writer.buffer.lpns_in(first, end) {
            let Some(freed) = self.writer.buffer.discard(lpn) else {
                continue;
            };
            while let Some(request) = self.writer.let_go(freed.slot, freed.staged) {
                self.settled(now, request, out);
            }
        }
    }

    /// One of the units a FUA write waits for is on flash, or trimmed.
    fn settled(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let units = self.units_of(id).count;
        let request = self.requests.get_mut(id);
        request.pending -= 1;
        if request.pending == 0 && request.next_unit == units {
            self.complete(now, id, Status::Success, out);
        }
    }

    /// Ends the flushes that have nothing left to wait for.
    #[inline]
    fn settle_flushes(&mut self, now: Time, out: &mut Vec<Completion<P>>) {
        while let Some(&(ticket, id)) = self.flushes.front() {
            if !self.writer.buffer.is_flushed(ticket) {
                break;
            }
            self.flushes.pop_front();
            self.complete(now, id, Status::Success, out);
        }
    }

    /// A flash operation has ended: its die is free, and perhaps room in the buffer.
    #[inline]
    fn flash_ended(&mut self, now: Time, die: DieId, ended: Ended, out: &mut Vec<Completion<P>>) {
        match ended {
            Ended::HostRead(tag) => self.host_read_ended(now, RequestId(tag), out),
            Ended::UserProgram { page, tag, failed } => {
                let mut settled = Vec::new(); // stays empty, and so unallocated, without FUA
                self.writer.end_program(now, &mut self.ftl, (page, tag, failed), |request| {
                    settled.push(request);
                });
                for request in settled {
                    self.settled(now, request, out);
                }
                self.settle_flushes(now, out);
                self.take_in_waiting(now, out);
                self.writer.pump_starved(now, &mut self.ftl);
            }
            Ended::Internal => {}
        }
        self.writer.pump(now, &mut self.ftl, die);
        if self.ftl.is_idle() {
            self.give_up_if_stuck(now, out);
        }
        self.writer.pump_idle(now, &mut self.ftl);
    }

    fn host_read_ended(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let request = self.requests.get_mut(id);
        request.pending -= 1;
        if request.pending > 0 {
            return;
        }
        match request.op {
            Op::Read => self.deliver(now, id),
            _ => self.queue_write(now, id, out), // the rest of a unit written in part
        }
    }

    /// Nothing is under way, and writes wait all the same: the flash has no room left.
    fn give_up_if_stuck(&mut self, now: Time, out: &mut Vec<Completion<P>>) {
        if self.waiting.is_empty() && self.flushes.is_empty() && !self.writer.is_waited_for() {
            return;
        }
        self.writer.pump_all(now, &mut self.ftl);
        if !self.ftl.is_idle() {
            return;
        }
        for id in self.waiting.drain(..).collect::<Vec<_>>() {
            self.writer.forget(id);
            self.complete(now, id, Status::WriteFault, out);
        }
        for (_, id) in self.flushes.drain(..).collect::<Vec<_>>() {
            self.complete(now, id, Status::WriteFault, out);
        }
        for id in self.writer.forget_all() {
            self.complete(now, id, Status::WriteFault, out);
        }
    }

    fn deliver(&mut self, now: Time, id: RequestId) {
        let bytes = u64::from(self.requests.get(id).sectors) * SECTOR_BYTES;
        self.frontend.deliver(now, id, bytes);
    }

    #[inline]
    fn complete(&mut self, now: Time, id: RequestId, status: Status, out: &mut Vec<Completion<P>>) {
        let request = self.requests.get_mut(id);
        self.digest.add(request.id.0).add(now.as_ns()).add(u64::from(status.code()));
        out.push(Completion {
            id: request.id,
            op: request.op,
            tag: request.tag,
            submitted: request.submitted,
            time: now,
            status,
            data: std::mem::take(&mut request.read),
        });
        self.requests.remove(id);
        self.frontend.leave(now);
    }

    #[inline]
    fn unit_sectors(&self) -> u64 {
        u64::from(self.ftl.geometry().unit_bytes()) / SECTOR_BYTES
    }

    #[inline]
    fn units_of(&self, id: RequestId) -> Units {
        let request = self.requests.get(id);
        Units::new(request.lba.0, u64::from(request.sectors), self.unit_sectors())
    }
}

impl<P: Payload> BlockDevice<P> for Ssd<P> {
    #[inline]
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        let id = CommandId(self.next_id);
        self.next_id += 1;
        let bytes = match command.op {
            Op::Write => u64::from(command.sectors) * SECTOR_BYTES,
            _ => 0,
        };
        let request = self.requests.insert(Request {
            id,
            op: command.op,
            lba: command.lba,
            sectors: command.sectors,
            fua: command.fua,
            tag: command.tag,
            submitted: now,
            data: command.data,
            read: P::ReadData::default(),
            pending: 0,
            next_unit: 0,
            waiting_since: now,
        });
        self.frontend.submit(now, request, bytes);
        id
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match (self.frontend.next_event(), self.ftl.next_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// At the same instant the flash goes first, then what passes the front end.
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        assert!(now >= self.now, "time ran backwards");
        while let Some(time) = self.next_event().filter(|&time| time <= now) {
            self.now = time;
            while let Some((outcome, ended)) = self.ftl.next_ended(time) {
                let what = outcome.operation.kind.fingerprint();
                self.digest.add(time.as_ns()).add(what ^ u64::from(outcome.failed) << 63);
                self.flash_ended(time, outcome.die, ended, completions);
            }
            while let Some(passage) = self.frontend.next_passage(time) {
                match passage {
                    Passage::Arrived(id) => self.arrive(time, id, completions),
                    Passage::Delivered(id) => {
                        self.complete(time, id, Status::Success, completions);
                    }
                }
            }
            if self.ftl.is_idle() {
                self.give_up_if_stuck(time, completions);
            }
        }
        self.now = now;
    }

    fn capacity_sectors(&self) -> u64 {
        u64::from(self.mapping_units()) * self.unit_sectors()
    }
}

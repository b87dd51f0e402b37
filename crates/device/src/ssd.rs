//! The drive: takes commands, drives the layers below, hands back completions.

use std::collections::VecDeque;

use leyden_buffer::schedule::{ScheduleConfig, Shape};
use leyden_buffer::{FlushTicket, Region, WriteBuffer};
use leyden_ftl::page_mapped::{Ended, Ftl};
use leyden_ftl::place::Streams;
use leyden_nand::{DieId, Geometry, Lpn};
use leyden_sim::{ConfigError, Digest, Time};

use crate::command::SECTOR_BYTES;
use crate::frontend::{Frontend, Passage};
use crate::hints::bytes_of;
use crate::power::{PowerState, PowerSupply};
use crate::requests::{Request, RequestId, Requests};
use crate::stats::SsdStats;
use crate::units::Units;
use crate::writer::Writer;
use crate::{
    Action, BlockDevice, Command, CommandId, Completion, Config, Lba, Op, Output, Payload, Status,
};

/// A conventional (page-mapped) SSD.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Lba, Ssd, Stamp, Status};
/// use leyden_sim::Time;
///
/// let mut ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
/// ssd.submit(ssd.now(), Command::write(Lba(0), 8, 7));
/// let mut done = Vec::new();
/// while let Some(time) = ssd.next_event() {
///     ssd.advance(time, &mut done);
/// }
/// assert_eq!(done[0].status, Status::Success);
///
/// ssd.submit(ssd.now(), Command::read(Lba(0), 8));
/// while let Some(time) = ssd.next_event() {
///     ssd.advance(time, &mut done);
/// }
/// assert_eq!(done[1].data().unwrap(), &[Stamp(7)]);
/// ```
#[derive(Debug)]
pub struct Ssd<P: Payload> {
    pub(crate) config: Box<Config>,
    /// `None` if the power is never cut.
    pub(crate) power: Option<PowerSupply>,
    pub(crate) power_state: PowerState,
    pub(crate) now: Time,
    pub(crate) frontend: Frontend,
    pub(crate) requests: Requests<P>,
    pub(crate) writer: Writer<P>,
    pub(crate) ftl: Ftl<P>,
    pub(crate) region: Region,
    /// Writes that wait for room in the buffer, first come, first served.
    pub(crate) waiting: VecDeque<RequestId>,
    /// Flushes that wait for data to be on flash, in order; without a ticket, for trims only.
    pub(crate) flushes: VecDeque<(Option<FlushTicket>, RequestId)>,
    /// Trims that wait for mapping pages to be allowed to be dirty, in order.
    pub(crate) trims: VecDeque<RequestId>,
    /// Ends of commands that have come while there was no power.
    pub(crate) refused: VecDeque<Completion<P>>,
    pub(crate) next_id: u64,
    pub(crate) digest: Digest,
    pub(crate) counters: SsdStats,
}

/// The flash's shape; and slots of the buffer, and how many of them begin the writing out.
pub(crate) fn shape(config: &Config) -> Result<(Geometry, (u32, u32)), ConfigError> {
    let geometry =
        config.nand.geometry(config.ftl.mapping_unit).map_err(|error| error.within("nand"))?;
    let slots = config
        .buffer
        .slots(
            geometry.unit_bytes(),
            geometry.units_per_page(),
            Streams::new(&config.ftl).of_host(),
        )
        .map_err(|error| error.within("buffer"))?;
    Ok((geometry, slots))
}

impl<P: Payload> Ssd<P> {
    /// An empty drive. Everything random in it comes from `seed`.
    pub fn new(config: &Config, seed: u64) -> Result<Self, ConfigError> {
        config.frontend.check().map_err(|error| error.within("frontend"))?;
        let in_ftl = |error: ConfigError| error.within("ftl");
        config.ftl.check_unit().map_err(in_ftl)?;
        let (geometry, (slots, threshold)) = shape(config)?;
        let streams = Streams::new(&config.ftl).of_host();
        let power = PowerSupply::new(config, geometry, slots)?;
        let durability = PowerSupply::durability(power.as_ref());
        let mut ftl =
            Ftl::new(&config.ftl, &config.nand, geometry, seed, durability).map_err(in_ftl)?;
        let shape = Shape {
            slots,
            mapping_pages: ftl.map().pages(),
            entries_per_mapping_page: ftl.map().entries_per_page(),
            batch_units: geometry.dies() * geometry.units_per_page(),
        };
        let short = |&die: &DieId| ftl.dump_blocks(die) < durability.dump_blocks_per_die;
        if let Some(die) = (0..geometry.dies()).map(DieId).find(short) {
            let problem = format!(
                "of the blocks of die {}, {} are good, and {} are kept back for dumps",
                die.0,
                ftl.dump_blocks(die),
                durability.dump_blocks_per_die
            );
            return Err(ConfigError::new("nand.faults.factory_bad_blocks", problem));
        }
        let buffer = WriteBuffer::new(&config.buffer, shape, threshold);
        if config.buffer.schedule != ScheduleConfig::default() {
            ftl.store_mut().watch();
        }
        Ok(Self {
            config: Box::new(config.clone()),
            power,
            power_state: PowerState::On,
            now: Time::ZERO,
            frontend: Frontend::new(&config.frontend),
            requests: Requests::new(),
            writer: Writer::new(buffer, &ftl, streams),
            ftl,
            region: config.buffer.region,
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            trims: VecDeque::new(),
            refused: VecDeque::new(),
            next_id: 0,
            digest: Digest::default(),
            counters: SsdStats::default(),
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
        self.ftl.wear()
    }
    /// True if no command and no flash operation is under way.
    pub fn is_idle(&self) -> bool {
        self.power_state == PowerState::On
            && self.requests.is_empty()
            && self.ftl.is_idle()
            && self.frontend.is_idle()
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

    /// One of the units a FUA write waits for is on flash, or trimmed.
    pub(crate) fn settled(&mut self, now: Time, id: RequestId, out: &mut Vec<Completion<P>>) {
        let units = self.units_of(id).count();
        let request = self.requests.get_mut(id);
        request.pending -= 1;
        if request.pending == 0 && request.next_unit == units {
            self.complete(now, id, Status::Success, out);
        }
    }

    /// Ends the flushes that have nothing left to wait for.
    #[inline]
    pub(crate) fn settle_flushes(&mut self, now: Time, out: &mut Vec<Completion<P>>) {
        while let Some(&(ticket, id)) = self.flushes.front() {
            let flushed = ticket.is_none_or(|ticket| self.writer.buffer.is_flushed(ticket));
            if !flushed || self.ftl.has_unsaved_trims() {
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
            Ended::Internal if self.flushes.is_empty() => {}
            Ended::Internal => self.settle_flushes(now, out),
        }
        self.writer.pump(now, &mut self.ftl, die);
        self.continue_trims(now, out);
        self.writer.pump_woken(now, &mut self.ftl);
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
        match request.op() {
            Op::Read => self.deliver(now, id),
            _ => self.queue_write(now, id, out), // the rest of a unit written in part
        }
    }

    /// Nothing is under way, and writes wait all the same: the flash has no room left.
    fn give_up_if_stuck(&mut self, now: Time, out: &mut Vec<Completion<P>>) {
        if self.waiting.is_empty()
            && self.flushes.is_empty()
            && self.trims.is_empty()
            && !self.writer.is_waited_for()
        {
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
        for id in self.trims.drain(..).collect::<Vec<_>>() {
            self.complete(now, id, Status::WriteFault, out);
        }
        for id in self.writer.forget_all() {
            self.complete(now, id, Status::WriteFault, out);
        }
    }

    pub(crate) fn deliver(&mut self, now: Time, id: RequestId) {
        let sectors = self.requests.get(id).action.extent().map_or(0, |(_, sectors)| sectors);
        self.frontend.deliver(now, id, u64::from(sectors) * SECTOR_BYTES);
    }

    /// A command has come to a drive without power: it ends at once.
    #[cold]
    fn refuse(&mut self, now: Time, id: CommandId, command: &Command<P>) {
        let status = Status::NotReady;
        self.digest.add(id.0).add(now.as_ns()).add(u64::from(status.code()));
        self.refused.push_back(Completion {
            id,
            op: command.op(),
            tag: command.tag,
            submitted: now,
            time: now,
            status,
            output: Output::None,
        });
    }

    #[inline]
    pub(crate) fn complete(
        &mut self,
        now: Time,
        id: RequestId,
        status: Status,
        out: &mut Vec<Completion<P>>,
    ) {
        let request = self.requests.get_mut(id);
        self.digest.add(request.id.0).add(now.as_ns()).add(u64::from(status.code()));
        let op = request.op();
        let output = match op {
            Op::Read if status == Status::Success => {
                Output::Read(std::mem::take(&mut request.read))
            }
            _ => Output::None,
        };
        out.push(Completion {
            id: request.id,
            op,
            tag: request.tag,
            submitted: request.submitted,
            time: now,
            status,
            output,
        });
        self.requests.remove(id);
        self.frontend.leave(now);
    }

    #[inline]
    pub(crate) fn unit_sectors(&self) -> u64 {
        u64::from(self.ftl.geometry().unit_bytes()) / SECTOR_BYTES
    }

    #[inline]
    pub(crate) fn units_of(&self, id: RequestId) -> Units {
        self.requests.get(id).units
    }
}

impl<P: Payload> BlockDevice<P> for Ssd<P> {
    #[inline]
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        let id = CommandId(self.next_id);
        self.next_id += 1;
        if self.power_state == PowerState::Off {
            self.refuse(now, id, &command);
            return id;
        }
        let (bytes, hint) = match &command.action {
            Action::Write { sectors, hint, .. } => (u64::from(*sectors) * SECTOR_BYTES, *hint),
            Action::Read { hint, .. } => (0, *hint),
            Action::WritePrepare { ranges } => (bytes_of(ranges), None),
            Action::Flush | Action::Trim { .. } | Action::WriteZeroes { .. } => (0, None),
        };
        let request = self.requests.insert(Request {
            id,
            action: command.action,
            tag: command.tag,
            submitted: now,
            units: Units::NONE,
            read: P::ReadData::default(),
            pending: 0,
            next_unit: 0,
            waiting_since: now,
        });
        if let Some(hint) = hint {
            self.expect_hint(hint);
        }
        self.frontend.submit(now, request, bytes);
        id
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        if self.power_state != PowerState::On {
            // What was refused has ended already.
            let refused = (!self.refused.is_empty()).then_some(self.now);
            match self.power_state {
                PowerState::Recovering(ready_at) => return refused.or(Some(ready_at)),
                _ if refused.is_some() => return refused,
                _ => {}
            }
        }
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
            if !self.refused.is_empty() {
                completions.extend(self.refused.drain(..));
                continue;
            }
            if let PowerState::Recovering(_) = self.power_state {
                self.become_ready(time);
            }
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

    #[inline]
    fn expect(&self, reads: impl Iterator<Item = Lba>) {
        let (unit_sectors, units) = (self.unit_sectors(), u64::from(self.mapping_units()));
        let units = reads.map(|lba| lba.0 / unit_sectors).filter(|&unit| unit < units);
        self.ftl.map().warm(units.map(|unit| Lpn(unit as u32)));
    }

    fn capacity_sectors(&self) -> u64 {
        u64::from(self.mapping_units()) * self.unit_sectors()
    }
}

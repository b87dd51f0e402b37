//! The conventional namespace: any unit can be written at any time.
//!
//! **What lives here**: what reads, writes, flushes and trims mean ([`commands`]), how data gets from the
//! buffer to the dies ([`writer`]), zombie hints ([`hints`]), and what a power cut must save ([`dump`]).
//! **What doesn't**: what is buffered ([`leyden_buffer`]) and where data lies ([`leyden_ftl`]).
//!
//! **Invariants**: what follows the end of a flash operation happens in one order ([`Conventional::after`]).

mod atomic;
mod build;
mod commands;
mod dies;
mod dump;
mod grouping;
mod hints;
mod in_flight;
mod inspect;
mod provision;
mod sampled;
mod saved;
mod stats;
mod write_out;
mod writer;

use std::collections::VecDeque;

use leyden_buffer::schedule::ScheduleConfig;
use leyden_buffer::{FlushTicket, Region, WriteBuffer};
use leyden_ftl::page_mapped::{Ended, Ftl};
use leyden_nand::{DieId, Geometry, Interrupted, Lpn, Outcome};
use leyden_power::Program;
use leyden_sim::Time;

pub use dump::Item;
pub use hints::HintStats;
pub use inspect::{DumpPageHolds, DumpPageView};
pub use provision::{Provision, provision_of};
pub use stats::SsdStats;

use crate::atomic::Atomicity;
use crate::controller::power::{CutLoss, PowerLoss, PowerSupply, Recovery};
use crate::controller::{CommandTable, Controller, DriveOps, Namespace, RequestId, ToDump, ops};
use crate::lba::SECTOR_BYTES;
use crate::{Action, Lba, Op, Payload, Status};
use writer::Writer;

/// A conventional (page-mapped) SSD.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Lba, Ssd, Stamp, Status};
/// use leyden_sim::Time;
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
pub type Ssd<P> = Controller<P, Conventional<P>>;

/// The namespace of a page-mapped drive.
#[derive(Clone, Debug)]
pub struct Conventional<P: Payload> {
    buffer_config: leyden_buffer::Config,
    writer: Writer<P>,
    ftl: Ftl<P>,
    region: Region,
    atomic: Option<Atomicity>,
    /// Writes that wait for room in a pool of the buffer, first come, first served.
    waiting: [VecDeque<RequestId>; 2],
    /// Flushes that wait for data to be on flash, in order; without a ticket, for trims only.
    flushes: VecDeque<(Option<FlushTicket>, RequestId)>,
    /// Trims that wait for mapping pages to be allowed to be dirty, in order.
    trims: VecDeque<RequestId>,
    /// Commands with FUA, once for each unit that a trim has dropped, and for zeroes: until that trim is on flash.
    dropped: Vec<RequestId>,
    /// Nothing may be written any more.
    is_halted: bool,
    pub(crate) counters: SsdStats,
}

/// The change by an event: decides which waiting commands are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Changed {
    /// Nothing but that a die is free again.
    Nothing,
    /// Something that only a FLUSH may wait for.
    Little,
    /// Data was settled: there may be room in the buffer, and garbage on the dies.
    Settled,
}

impl<P: Payload> Conventional<P> {
    pub(crate) const fn ftl(&self) -> &Ftl<P> {
        &self.ftl
    }

    pub(crate) const fn buffer(&self) -> &WriteBuffer<P> {
        &self.writer.buffer
    }

    #[inline]
    fn unit_sectors(&self) -> u64 {
        u64::from(self.ftl.geometry().unit_bytes()) / SECTOR_BYTES
    }

    #[inline]
    fn capacity_sectors(&self) -> u64 {
        u64::from(self.ftl.map().len()) * self.unit_sectors()
    }

    /// Continues after a change, in this order: flushes end, waiting writes are taken in, dies that
    /// found nothing worth collecting look again, `die` gets its next operation, trims continue,
    /// dies write mapping pages that are due, and idle dies take buffered data.
    #[inline(always)]
    fn after(
        &mut self,
        now: Time,
        changed: Changed,
        die: Option<DieId>,
        commands: &mut CommandTable<P>,
    ) {
        if !self.flushes.is_empty() {
            self.settle_flushes(now, commands);
        }
        self.settle_dropped(now, commands);
        if changed == Changed::Settled {
            self.take_in_waiting(now, commands);
            self.writer.pump_starved(now, &mut self.ftl);
        }
        if let Some(die) = die {
            if changed != Changed::Nothing || !self.writer.has_nothing_for(&self.ftl, die) {
                self.writer.pump(now, &mut self.ftl, die);
            }
            if !self.trims.is_empty() {
                self.continue_trims(now, commands);
            }
        }
        self.writer.pump_woken(now, &mut self.ftl);
        if die.is_some() {
            self.give_up_if_stuck(now, commands); // amid a command, that one is not stuck
        }
        self.writer.pump_idle(now, &mut self.ftl);
    }

    /// Handles the next program that passes the gate of the mapping table, if one does.
    #[cold]
    #[inline(never)]
    fn next_through_gate(&mut self, now: Time, commands: &mut CommandTable<P>) -> bool {
        let passed = self.ftl.next_through_gate(now);
        passed.is_some_and(|(outcome, ended)| {
            self.ended(now, outcome, ended, commands);
            true
        })
    }

    /// An operation has ended.
    #[inline(always)]
    fn ended(&mut self, now: Time, outcome: Outcome, ended: Ended, commands: &mut CommandTable<P>) {
        commands.note_outcome(&outcome);
        let changed = match ended {
            Ended::HostRead(tag) => {
                self.host_read_ended(now, RequestId(tag), commands);
                Changed::Nothing
            }
            Ended::UserProgram { page, tag, failed } => {
                self.program_ended(now, page, tag, failed, commands);
                Changed::Settled
            }
            Ended::Internal if self.writer.grouping.wants_table => Changed::Settled,
            Ended::Internal => Changed::Little,
        };
        self.after(now, changed, Some(outcome.die), commands);
    }

    /// A page of the host's data was programmed, or not: what became of its units, and who waited for them.
    #[inline(always)]
    fn program_ended(
        &mut self,
        now: Time,
        page: leyden_nand::Ppn,
        tag: u32,
        failed: bool,
        commands: &mut CommandTable<P>,
    ) {
        let mut settled = Vec::new(); // stays empty, and so unallocated, without FUA
        let add = |id| settled.push(id);
        self.writer.end_program(now, &mut self.ftl, page, tag, failed, add);
        for request in settled {
            // After a failed program nobody is left to wait but for units that are not wanted any more.
            if failed {
                self.dropped.push(request);
            } else {
                commands.unit_settled(now, request);
            }
        }
        self.settle_dropped(now, commands);
    }

    /// A unit that a trim has dropped is as durable as that trim: where only flash keeps trims, a cut brings older data back.
    #[inline(always)]
    fn settle_dropped(&mut self, now: Time, commands: &mut CommandTable<P>) {
        if !self.dropped.is_empty() {
            self.settle_all_dropped(now, commands);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_all_dropped(&mut self, now: Time, commands: &mut CommandTable<P>) {
        if !self.ftl.has_unsaved_trims() {
            self.dropped.drain(..).for_each(|id| commands.unit_settled(now, id));
        }
    }

    /// Ends the flushes that have nothing left to wait for.
    fn settle_flushes(&mut self, now: Time, commands: &mut CommandTable<P>) {
        while let Some(&(ticket, id)) = self.flushes.front() {
            let flushed = ticket.is_none_or(|ticket| self.writer.buffer.is_flushed(ticket));
            if !flushed || self.ftl.has_unsaved_trims() {
                break;
            }
            self.flushes.pop_front();
            commands.complete(now, id, Status::Success);
        }
    }

    fn host_read_ended(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let request = commands.request_mut(id);
        request.pending -= 1;
        if request.pending > 0 {
            return;
        }
        match request.op() {
            Op::Read => commands.deliver(now, id),
            _ => self.queue_write(now, id, commands), // the rest of a unit written in part
        }
    }

    /// If no operation is in flight but commands still wait, the flash is full: they end with a fault.
    #[inline]
    fn give_up_if_stuck(&mut self, now: Time, commands: &mut CommandTable<P>) {
        if self.ftl.is_idle() && self.has_waiting() {
            self.give_up(now, commands);
        }
    }

    fn has_waiting(&self) -> bool {
        !(self.waiting.iter().all(VecDeque::is_empty)
            && self.flushes.is_empty()
            && self.trims.is_empty()
            && self.dropped.is_empty())
            || self.writer.is_waited_for()
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, now: Time, commands: &mut CommandTable<P>) {
        // Writes that were taken in since may have protected what a flush waited for.
        self.settle_flushes(now, commands);
        self.settle_dropped(now, commands);
        if !self.has_waiting() {
            return;
        }
        self.writer.pump_all(now, &mut self.ftl);
        // The second time without the table, if it could not make room.
        for _ in 0..2 {
            if self.ftl.is_idle() {
                self.ftl.set_desperate(true);
                self.writer.pump_all(now, &mut self.ftl);
                self.ftl.set_desperate(false);
                self.writer.pump_woken(now, &mut self.ftl); // what makes room may wait for the table
            }
        }
        if !self.ftl.is_idle() {
            return;
        }
        for id in self.waiting.iter_mut().flat_map(|waiting| waiting.drain(..)) {
            self.writer.forget(id);
            self.dropped.retain(|&other| other != id);
            commands.complete(now, id, Status::WriteFault);
        }
        let flushes = self.flushes.drain(..).map(|(_, id)| id);
        let mut forced = self.writer.forget_all();
        forced.append(&mut self.dropped);
        forced.sort_by_key(|request| request.0);
        forced.dedup();
        for id in flushes.chain(self.trims.drain(..)).chain(forced) {
            commands.complete(now, id, Status::WriteFault);
        }
    }
}

impl<P: Payload> Namespace<P> for Conventional<P> {
    type Item = Item<P>;

    #[inline]
    fn ops() -> &'static DriveOps<P, Self> {
        ops()
    }

    #[inline]
    fn geometry(&self) -> &Geometry {
        self.ftl.geometry()
    }

    fn region(&self) -> Region {
        self.region
    }

    #[inline]
    fn mapping_units(&self) -> u32 {
        self.ftl.map().len()
    }

    #[inline]
    fn expect(&self, action: &Action<P>) {
        if let Some((lba, _)) = action.extent() {
            self.writer.buffer.expect(Lpn((lba.0 >> self.unit_sectors().trailing_zeros()) as u32));
        }
        if let Action::Write { hint: Some(hint), .. } | Action::Read { hint: Some(hint), .. } =
            action
        {
            self.expect_hint(*hint);
        }
    }

    #[inline]
    fn expect_reads(&self, reads: impl Iterator<Item = Lba>) {
        let shift = self.unit_sectors().trailing_zeros();
        let units = u64::from(self.ftl.map().len());
        let units = reads.map(|lba| lba.0 >> shift).filter(|&unit| unit < units);
        units.map(|unit| Lpn(unit as u32)).for_each(|lpn| {
            self.writer.buffer.expect(lpn);
            self.ftl.map().expect(lpn);
        });
    }

    // Not inlined, as `next_ended`: a loop that inlines both would keep the state of both in registers.
    #[inline(never)]
    fn arrive(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        self.execute(now, id, commands);
    }

    #[inline]
    fn next_time(&self) -> Time {
        self.ftl.next_time()
    }

    #[inline(never)]
    fn next_ended(&mut self, now: Time, commands: &mut CommandTable<P>) -> bool {
        if self.ftl.has_gate_to_look_at() && self.next_through_gate(now, commands) {
            return true;
        }
        let Some(outcome) = self.ftl.next_outcome(now) else { return false };
        let ended = self.ftl.ended(outcome);
        self.ended(now, outcome, ended, commands);
        true
    }

    #[inline]
    fn instant_ended(&mut self, now: Time, commands: &mut CommandTable<P>) {
        self.give_up_if_stuck(now, commands);
    }

    fn has_events(&self) -> bool {
        !self.ftl.is_idle()
    }

    #[inline]
    fn is_idle(&self) -> bool {
        // Programs may wait for ever for a mapping page that no good block is left for.
        self.ftl.is_idle() && self.ftl.waiting_at_gate() == 0
    }

    fn set_untimed(&mut self, untimed: bool) {
        self.ftl.set_untimed(untimed);
    }

    fn forget_peaks(&mut self) {
        self.writer.buffer.forget_peak();
        self.ftl.store_mut().forget_peak();
    }

    fn memory_bytes(&self) -> u64 {
        self.ftl.memory_bytes()
    }

    fn check(&self) -> Result<(), String> {
        self.ftl.check().map_err(|violation| violation.to_string())
    }

    fn on_the_way(&self) -> Vec<Interrupted> {
        self.ftl.on_the_way()
    }

    fn dump_blocks(&self, die: DieId) -> u32 {
        self.ftl.dump_blocks(die)
    }

    fn to_dump(
        &self,
        supply: &PowerSupply,
        ended: &dyn Fn(&Interrupted) -> bool,
    ) -> ToDump<Item<P>> {
        self.pages_to_dump(supply, ended)
    }

    fn add_loss(&self, item: &Item<P>, loss: &mut CutLoss) {
        item.add_loss(self.ftl.geometry().unit_bytes(), loss);
    }

    fn dump(
        &mut self,
        supply: &PowerSupply,
        interrupted: &[(Interrupted, bool)],
        items: &[Item<P>],
        programs: &[Program],
    ) {
        self.write_dump(supply, interrupted, items, programs);
    }

    fn note_lost(&mut self, item: &Item<P>, loss: &mut PowerLoss) {
        self.note_item_lost(item, loss);
    }

    fn lose_power(&mut self, now: Time, interrupted: &[(Interrupted, bool)]) {
        self.ftl.lose_power(now, interrupted);
        if self.buffer_config.schedule != ScheduleConfig::default() {
            self.ftl.store_mut().watch();
        }
        self.writer.lose_power(&self.buffer_config, &self.ftl);
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.flushes.clear();
        self.trims.clear();
        self.dropped.clear();
        self.is_halted = false;
    }

    fn recover(&mut self) -> Recovery {
        self.recover_from_flash()
    }

    fn erase_old_dumps(&mut self) {
        self.ftl.erase_old_dumps();
    }

    fn start(&mut self, now: Time) {
        self.ftl.finish_recovery();
        self.writer.pump_all(now, &mut self.ftl);
    }

    fn halt(&mut self) {
        self.is_halted = true;
        self.writer.halt();
    }
}

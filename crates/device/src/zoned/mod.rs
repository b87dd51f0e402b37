//! The zoned namespace: zones that are written from their beginning to their end, and reset.
//!
//! **What lives here**: what commands mean to a zoned drive ([`commands`], [`manage`]), how data gets from
//! the buffer to the zones' blocks ([`dispatch`]), who waits for what ([`waiters`]), and what a power cut must
//! save ([`dump`]). **What doesn't**: the state machine, zones and blocks ([`leyden_ftl::zoned`]), and what
//! is buffered ([`leyden_buffer::zoned`]).
//!
//! Of a write the write pointer moves when it arrives, and its data enters the buffer when there is room:
//! in the order of arrival within its zone and within its pool.
//!
//! **Invariants**: a write is acknowledged when all of it is in the buffer; what is protected of a zone is
//! kept with everything below it.

mod build;
mod commands;
mod dispatch;
mod dump;
mod inspect;
mod manage;
mod provision;
mod saved;
mod stats;
mod waiters;
mod writes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use leyden_buffer::PoolKind;
use leyden_buffer::Region;
use leyden_buffer::zoned::{BelowProtected, DuringFlush, ZoneBuffer};
use leyden_ftl::zoned::{Ended, PageEnded, ZoneId, ZonedFtl};
use leyden_nand::{DieId, Geometry, Interrupted, Lpn};
use leyden_power::Program;
use leyden_sim::Time;

pub use provision::{ZonedProvision, provision_of_zones};
pub use stats::ZonedStats;

use crate::controller::power::{CutLoss, PowerLoss, PowerSupply, Recovery};
use crate::controller::{CommandTable, Controller, DriveOps, Namespace, RequestId, ToDump, ops};
use crate::lba::SECTOR_BYTES;
use crate::{Action, Lba, Op, Payload, Status};
use dispatch::DispatchOrder;
use dump::Item;
use waiters::FlashWaiters;
use writes::IN_ZRWA;

/// A zoned SSD.
///
/// ```
/// use leyden_device::{BlockDevice, Command, Config, Lba, Stamp, Status, ZnsSsd};
///
/// let mut config = Config::default();
/// config.zoned = Some(Default::default());
/// let mut ssd = ZnsSsd::<Stamp>::new(&config, 1).unwrap();
/// ssd.submit(ssd.now(), Command::zone_append(Lba(0), 8, 7));
/// let mut done = Vec::new();
/// while let Some(time) = ssd.next_event() {
///     ssd.advance(time, &mut done);
/// }
/// assert_eq!((done[0].status, done[0].appended()), (Status::Success, Some(Lba(0))));
/// ```
pub type ZnsSsd<P> = Controller<P, Zoned<P>>;

/// The namespace of a zoned drive.
#[derive(Clone, Debug)]
pub struct Zoned<P: Payload> {
    ftl: ZonedFtl<P>,
    buffer: ZoneBuffer<P>,
    region: Region,
    below_protected: BelowProtected,
    during_flush: DuringFlush,
    /// FLUSH commands that wait for something.
    flushes: u32,
    dispatch: DispatchOrder,
    /// Writes that wait for room in each pool, first come, first served.
    waiting: [VecDeque<RequestId>; 2],
    waiters: FlashWaiters,
    /// The data that copies have read, by the command, until it is in the buffer.
    copies: BTreeMap<u32, Vec<P>>,
    /// Zones that may hold data that nothing protects.
    plain: BTreeSet<ZoneId>,
    /// Nothing may be written any more.
    is_halted: bool,
    /// Units that the dump in progress does not reach.
    lost: Vec<Lpn>,
    counters: ZonedStats,
}

impl<P: Payload> Zoned<P> {
    #[inline]
    fn unit_sectors(&self) -> u64 {
        u64::from(self.ftl.geometry().unit_bytes()) / SECTOR_BYTES
    }

    /// The zone of a unit of the namespace, and which unit of the zone it is.
    #[inline]
    const fn zone_of(&self, unit: u32) -> (ZoneId, u32) {
        let size = self.ftl.shape().size;
        (ZoneId(unit / size), unit % size)
    }

    /// A page of a zone is on flash, or its program has failed.
    fn page_ended(&mut self, now: Time, ended: PageEnded, commands: &mut CommandTable<P>) {
        let zone = ended.zone;
        if self.buffer.ended(zone.0, ended.first, ended.failed) {
            self.settled(now, zone, commands);
            self.take_in_waiting(now, commands);
        }
        self.offer(now, zone);
    }

    /// More of `zone` is on flash.
    fn settled(&mut self, now: Time, zone: ZoneId, commands: &mut CommandTable<P>) {
        let settled = self.buffer.settled(zone.0);
        for id in self.waiters.settled(zone, settled) {
            self.wait_over(now, id, commands);
        }
        self.close_if_done(zone, commands);
    }

    /// Gives back the blocks that `zone` has not begun, once it takes no more data and flash holds all that it has.
    fn close_if_done(&mut self, zone: ZoneId, commands: &CommandTable<P>) {
        if self.ftl.zones().get(zone).state.takes_no_more() && self.is_written_out(zone, commands) {
            self.ftl.close_body(zone);
        }
    }

    /// True if flash holds all of `zone`. Its write pointer, and with it its state, is ahead of writes that wait for room
    /// in the buffer; what goes to its Zone Random Write Area has not moved it yet.
    fn is_written_out(&self, zone: ZoneId, commands: &CommandTable<P>) -> bool {
        let is_of_zone = |&id: &RequestId| {
            self.zone_of(commands.units(id).first().0).0 == zone
                && commands.request(id).next_unit != IN_ZRWA
        };
        self.buffer.settled(zone.0) == self.buffer.end(zone.0)
            && !self.waiting.iter().flatten().any(is_of_zone)
    }

    /// One of the zones that a FLUSH or a write with FUA waits for has got so far.
    fn wait_over(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        let request = commands.request_mut(id);
        request.pending -= 1;
        if request.pending == 0 {
            self.flushes -= u32::from(request.op() == Op::Flush);
            self.end(now, id, Status::Success, commands);
        }
    }

    /// `zone` gets no block any more. Whoever waits for it hears so.
    fn run_out(&mut self, now: Time, zone: ZoneId, commands: &mut CommandTable<P>) {
        // Units of its Zone Random Write Area stay in the buffer, and are dumped from there.
        let units = self.buffer.window(zone.0).last().map_or(0, |(offset, _)| offset + 1);
        if self.ftl.zones().get(zone).has_zrwa {
            self.commit(now, zone, units);
            self.buffer.close_window(zone.0);
        }
        self.ftl.run_out(zone);
        // Nothing more is gathered for its last page, which takes up room until there are blocks again.
        self.buffer.force(zone.0, self.buffer.end(zone.0));
        self.offer(now, zone);
        for id in self.waiters.settled(zone, u32::MAX) {
            self.waiters.forget(id);
            self.flushes -= u32::from(commands.request(id).op() == Op::Flush);
            self.end(now, id, Status::WriteFault, commands);
        }
        self.end_waiting_of(now, zone, Status::WriteFault, commands);
        self.close_if_done(zone, commands);
    }

    /// Ends the writes to `zone` that wait for room.
    fn end_waiting_of(
        &mut self,
        now: Time,
        zone: ZoneId,
        status: Status,
        commands: &mut CommandTable<P>,
    ) {
        for kind in PoolKind::ALL {
            let queue = std::mem::take(&mut self.waiting[kind.index()]);
            let (ended, kept): (VecDeque<_>, VecDeque<_>) = queue
                .into_iter()
                .partition(|&id| self.zone_of(commands.units(id).first().0).0 == zone);
            self.waiting[kind.index()] = kept;
            for id in ended {
                self.copies.remove(&id.0);
                self.end(now, id, status, commands);
            }
        }
    }

    /// Fails the commands that wait for blocks which the flash does not have.
    ///
    /// A command is given up only for a zone that has data and no block for it, for room that such a zone takes up in
    /// the buffer, or on a drive that may not write. Anything else that waits while the flash is idle is a bug of the
    /// drive's, and goes on waiting, where a checker sees it.
    #[inline]
    fn give_up_if_stuck(&mut self, now: Time, commands: &mut CommandTable<P>) {
        if self.is_stuck() {
            self.give_up(now, commands);
        }
    }

    /// Commands wait, and no flash operation is under way.
    fn is_stuck(&self) -> bool {
        let is_waited_for =
            !self.waiters.is_empty() || self.waiting.iter().any(|it| !it.is_empty());
        is_waited_for && self.ftl.medium().is_idle()
    }

    #[cold]
    #[inline(never)]
    fn give_up(&mut self, now: Time, commands: &mut CommandTable<P>) {
        self.pump_all(now);
        if !self.is_stuck() {
            return;
        }
        for zone in self.dispatch.without_block() {
            self.run_out(now, zone, commands);
        }
        // Those may have waited for a FLUSH that has ended with that, and not for flash.
        self.take_in_waiting(now, commands);
        self.write_out_all(now);
        while self.is_stuck()
            && let Some(zone) = self.hopeless(commands)
        {
            self.run_out(now, zone, commands);
            self.take_in_waiting(now, commands);
            self.write_out_all(now);
        }
    }

    /// A zone for which commands wait in vain: it has data and no block for it, or it waits for the room of those, or the
    /// drive may not write. A write that is let in where another was given up may wait for such a zone next.
    fn hopeless(&self, commands: &CommandTable<P>) -> Option<ZoneId> {
        let without_block = self.dispatch.without_block();
        if let Some(&zone) = without_block.iter().find(|&&zone| self.waiters.wait_for(zone)) {
            return Some(zone);
        }
        let mut waiting = PoolKind::ALL.iter().filter_map(|it| self.waiting[it.index()].front());
        let id = waiting.next().filter(|_| self.is_halted || !without_block.is_empty())?;
        Some(self.zone_of(commands.units(*id).first().0).0)
    }

    /// Where the room of the buffer is taken up by zones that have no block, pages of others that are not full make
    /// some.
    fn write_out_all(&mut self, now: Time) {
        if !self.is_stuck() || self.dispatch.without_block().is_empty() {
            return;
        }
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            if self.buffer.force(zone.0, self.buffer.end(zone.0)) {
                self.offer(now, zone);
            }
        }
    }
}

impl<P: Payload> Zoned<P> {
    /// Says what is kept for a zone or a command that has no use for it.
    fn check_what_waits(&self) -> Result<(), String> {
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            if self.buffer.has_window(zone.0) != self.ftl.zones().get(zone).has_zrwa {
                return Err(format!("{zone:?} and the buffer differ about its random write area"));
            }
            if self.buffer.unprotected(zone.0) > 0 && !self.plain.contains(&zone) {
                return Err(format!("{zone:?} holds plain data that no FLUSH knows of"));
            }
        }
        let waits = self.waiting.iter().map(VecDeque::len).sum::<usize>();
        if self.ftl.medium().is_idle() && waits == 0 && !self.copies.is_empty() {
            return Err(format!("{} copies keep what they have read", self.copies.len()));
        }
        if self.waiters.is_empty() && self.flushes > 0 {
            return Err(format!("{} FLUSH commands wait for nothing", self.flushes));
        }
        Ok(())
    }
}

impl<P: Payload> Namespace<P> for Zoned<P> {
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
        self.ftl.shape().zones * self.ftl.shape().size
    }

    #[inline]
    fn expect(&self, _: &Action<P>) {}

    #[inline]
    fn expect_reads(&self, _: impl Iterator<Item = Lba>) {}

    #[inline]
    fn arrive(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>) {
        self.execute(now, id, commands);
    }

    #[inline]
    fn next_time(&self) -> Time {
        self.ftl.medium().next_time()
    }

    #[inline]
    fn next_ended(&mut self, now: Time, commands: &mut CommandTable<P>) -> bool {
        let Some((outcome, ended)) = self.ftl.next_ended(now) else { return false };
        commands.note_outcome(&outcome);
        match ended {
            Ended::HostRead(tag) => self.host_read_ended(now, RequestId(tag), commands),
            Ended::Page(page) => self.page_ended(now, page, commands),
            Ended::Erase => self.place_waiting(now),
            Ended::Stale => {}
        }
        self.pump(now, outcome.die);
        true
    }

    #[inline]
    fn instant_ended(&mut self, now: Time, commands: &mut CommandTable<P>) {
        self.give_up_if_stuck(now, commands);
    }

    fn has_events(&self) -> bool {
        !self.ftl.medium().is_idle()
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.ftl.medium().is_idle()
    }

    fn set_untimed(&mut self, untimed: bool) {
        self.ftl.medium_mut().set_untimed(untimed);
    }

    fn forget_peaks(&mut self) {
        self.buffer.forget_peaks();
        self.counters.flush_waited_peak = leyden_sim::Level::default();
    }

    fn memory_bytes(&self) -> u64 {
        self.ftl.memory_bytes() + self.buffer.memory_bytes()
    }

    fn check(&self) -> Result<(), String> {
        self.buffer.check()?;
        self.check_what_waits()?;
        self.ftl.check(|zone| self.buffer.settled(zone.0))
    }

    fn on_the_way(&self) -> Vec<Interrupted> {
        self.ftl.medium().on_the_way().collect()
    }

    fn dump_blocks(&self, die: DieId) -> u32 {
        self.ftl.dump_blocks(die)
    }

    fn to_dump(&self, supply: &PowerSupply, _: &dyn Fn(&Interrupted) -> bool) -> ToDump<Item<P>> {
        self.pages_to_dump(supply)
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
        self.settle_cut(supply, interrupted);
        self.write_dump(supply, items, programs);
    }

    fn note_lost(&mut self, item: &Item<P>, loss: &mut PowerLoss) {
        self.note_item_lost(item, loss);
    }

    fn lose_power(&mut self, now: Time, interrupted: &[(Interrupted, bool)]) {
        self.ftl.lose_power(now, interrupted);
        self.buffer.clear();
        self.dispatch = self.dispatch.cleared();
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.waiters = FlashWaiters::new(self.ftl.shape().zones);
        self.copies.clear();
        self.plain.clear();
        self.flushes = 0;
        self.lost.clear();
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
        for zone in (0..self.ftl.shape().zones).map(ZoneId) {
            self.offer(now, zone);
        }
        self.pump_all(now);
    }

    fn halt(&mut self) {
        self.is_halted = true;
        self.dispatch.halt();
    }
}

//! From the buffer to flash: gathers pages of one stream each and hands them to dies that are free.
//!
//! A die that has nothing to do asks for work ([`Writer::pump`]): collecting garbage if it is short
//! of blocks, else writing the host's data, else collecting in the background. Dies with nothing to
//! do at all wait in a set until there is.

use std::collections::VecDeque;

use leyden_buffer::{Failed, PoolKind, SlotId, WriteBuffer, Written};
use leyden_ftl::page_mapped::{Ftl, GcStep, UserUnit};
use leyden_ftl::place::StreamId;
use leyden_nand::{DieId, Lpn, Ppn};
use leyden_sim::Time;

use super::dies::DieSet;
use super::grouping::Grouping;
use super::in_flight::InFlight;
use crate::Payload;
use crate::controller::RequestId;

/// How many units are drawn at once, if pages are no larger.
const UNITS_DRAWN: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Writer<P: Payload> {
    pub(super) buffer: WriteBuffer<P>,
    /// Slots taken from the buffer, waiting for the rest of their page, by stream.
    pub(super) staged: Vec<VecDeque<SlotId>>,
    /// FUA writes, by the slots they wait for.
    waiters: Vec<(SlotId, RequestId)>,
    /// How many of them wait for a slot whose program has not started.
    pub(super) urgent: u32,
    /// The group that keeps the units of an atomic write together.
    pub(super) grouping: Grouping,
    /// Dies that had nothing to do when they last asked.
    idle: DieSet,
    /// Of those, the ones that want to collect but found no victim worth it.
    starved: DieSet,
    /// The die to begin with when looking for one.
    cursor: u32,
    dies: u32,
    pub(super) units_per_page: usize,
    in_flight: InFlight,
    /// Nothing may be written any more.
    halted: bool,
}

impl<P: Payload> Writer<P> {
    pub(super) fn new(buffer: WriteBuffer<P>, ftl: &Ftl<P>, streams: u8) -> Self {
        let dies = ftl.geometry().dies();
        Self {
            buffer,
            staged: vec![VecDeque::new(); usize::from(streams)],
            waiters: Vec::new(),
            urgent: 0,
            grouping: Grouping::default(),
            idle: DieSet::full(dies),
            starved: DieSet::empty(dies),
            cursor: 0,
            dies,
            units_per_page: ftl.geometry().units_per_page() as usize,
            // A die has a program in progress and accepts another.
            in_flight: InFlight::new(2 * dies * ftl.geometry().units_per_page()),
            halted: false,
        }
    }

    /// Forgets everything: the power is gone. `config` is the one the buffer was made with.
    pub(super) fn lose_power(&mut self, config: &leyden_buffer::Config, ftl: &Ftl<P>) {
        let streams = self.staged.len() as u8;
        let buffer = self.buffer.emptied(config);
        *self = Self::new(buffer, ftl, streams);
    }

    /// Takes dumped data back into the buffer, which held it before.
    pub(super) fn put_back(&mut self, lpn: Lpn, content: P) {
        let written = self.buffer.write(lpn, content, PoolKind::Protected);
        assert!(written != Written::Full, "the buffer held this before the power failed");
    }

    /// Writes nothing any more, until the power has failed and returned.
    pub(super) fn halt(&mut self) {
        self.halted = true;
    }

    /// The writer's state for a snapshot, besides the buffer.
    pub(super) fn staged(&self) -> (&[VecDeque<SlotId>], u32) {
        (&self.staged, self.cursor)
    }

    /// Continues from a snapshot. False if it is not one of this writer.
    pub(super) fn restore(&mut self, staged: Vec<VecDeque<SlotId>>, cursor: u32) -> bool {
        let fits = staged.len() == self.staged.len() && cursor < self.dies;
        if fits {
            (self.staged, self.cursor) = (staged, cursor);
        }
        fits
    }

    /// While it is `on`, all that is buffered is on its way to flash, protected or not, and in pages that are not full.
    pub(super) fn write_out(&mut self, now: Time, ftl: &mut Ftl<P>, on: bool) {
        if on {
            self.urgent += 1;
            self.pump_idle(now, ftl);
        } else {
            self.urgent -= 1;
        }
    }

    /// Finds out which dies have something to do, after a snapshot was loaded.
    pub(super) fn wake(&mut self, ftl: &Ftl<P>) {
        for die in (0..self.dies).map(DieId).filter(|&die| ftl.wants_collection(die)) {
            self.starved.insert(die);
        }
    }

    /// Lets `request` wait until `slot` is on flash, ahead of what is buffered.
    pub(super) fn wait_for(&mut self, ftl: &Ftl<P>, slot: SlotId, request: RequestId) {
        if self.buffer.take(slot) {
            self.stage(ftl, slot);
            self.stage_group(ftl, slot);
        }
        self.waiters.push((slot, request));
        self.urgent += 1;
    }

    /// Forgets `slot`, which a trim has freed; returns who waited for it, one call each.
    pub(super) fn let_go(&mut self, slot: SlotId, staged: bool) -> Option<RequestId> {
        if staged {
            self.staged.iter_mut().for_each(|slots| slots.retain(|&other| other != slot));
        }
        self.urgent -= u32::from(self.grouping.has_left(slot));
        let waiter = self.waiter_of(slot)?;
        self.urgent -= 1;
        Some(waiter)
    }

    /// True if there is data that should be on its way to flash.
    #[inline]
    fn wants_writing(&self) -> bool {
        self.buffer.wants_writing() || self.urgent > 0 || self.grouping.wants_room
    }

    /// Gives every idle die something to do, if there is something.
    #[inline(always)]
    pub(super) fn pump_idle(&mut self, now: Time, ftl: &mut Ftl<P>) {
        if !self.idle.is_empty() && self.wants_writing() {
            self.pump_all_idle(now, ftl);
        }
    }

    #[inline(never)]
    fn pump_all_idle(&mut self, now: Time, ftl: &mut Ftl<P>) {
        // Once around from the cursor; dies that can't take anything stay idle.
        let start = self.cursor;
        for (from, to) in [(start, self.dies), (0, start)] {
            let mut at = from;
            while let Some(die) = self.idle.next(at).filter(|die| die.0 < to) {
                if self.pump(now, ftl, die) {
                    self.cursor = (die.0 + 1) % self.dies;
                }
                if !self.wants_writing() {
                    return;
                }
                at = die.0 + 1;
            }
        }
    }

    /// Lets the dies look again that found no victim worth collecting: data elsewhere has moved.
    #[inline]
    pub(super) fn pump_starved(&mut self, now: Time, ftl: &mut Ftl<P>) {
        if !self.starved.is_empty() {
            self.pump_all_starved(now, ftl);
        }
    }

    #[inline(never)]
    fn pump_all_starved(&mut self, now: Time, ftl: &mut Ftl<P>) {
        let mut at = 0;
        while let Some(die) = self.starved.next(at) {
            self.pump(now, ftl, die);
            at = die.0 + 1;
        }
    }

    /// Asks the dies that have got something of the map to write.
    #[inline]
    pub(super) fn pump_woken(&mut self, now: Time, ftl: &mut Ftl<P>) {
        while let Some(die) = ftl.next_woken() {
            self.pump(now, ftl, die);
        }
    }

    /// Asks every die once more, whether or not there seemed to be anything to do.
    pub(super) fn pump_all(&mut self, now: Time, ftl: &mut Ftl<P>) {
        (0..self.dies).for_each(|die| {
            self.pump(now, ftl, DieId(die));
        });
    }

    /// True if it is certain that `die`, which has just read for the host, has nothing to do: it had nothing
    /// when it last asked, and nothing has changed since.
    #[inline]
    pub(super) fn has_nothing_for(&self, ftl: &Ftl<P>, die: DieId) -> bool {
        self.idle.contains(die)
            && !self.starved.contains(die)
            && !self.wants_writing()
            && !ftl.store().has_changes()
    }

    /// Gives `die` something to do, if it accepts it and there is something. True if it started.
    #[inline]
    pub(super) fn pump(&mut self, now: Time, ftl: &mut Ftl<P>, die: DieId) -> bool {
        if self.halted || !ftl.accepts(die) {
            return false;
        }
        if ftl.store().has_changes() {
            self.note_changes(ftl);
        }
        let gc_first = ftl.gc_goes_first(die);
        // Programs that have ended, and so room in the buffer, may wait for a mapping page.
        let started = ftl.map_step(now, die)
            || (gc_first && ftl.gc_step(now, die) == GcStep::Started)
            || (self.wants_writing() && self.write_page(now, ftl, die))
            || (!gc_first && ftl.gc_step(now, die) == GcStep::Started);
        if started {
            self.idle.remove(die);
            self.starved.remove(die);
        } else {
            self.idle.insert(die);
            if ftl.wants_collection(die) {
                self.starved.insert(die);
            }
        }
        started
    }

    /// Tells the buffer which pages of the mapping table have become dirty or clean.
    #[inline(never)]
    fn note_changes(&mut self, ftl: &mut Ftl<P>) {
        for (page, dirty) in ftl.store_mut().take_changes() {
            self.buffer.note_map_page(page.0, dirty);
        }
    }

    /// Programs a page of user data on `die`, if there is one that it may take.
    #[inline]
    fn write_page(&mut self, now: Time, ftl: &mut Ftl<P>, die: DieId) -> bool {
        let Some(stream) = self.full_page(ftl, die) else {
            return false;
        };
        let count = if self.buffer.keeps_groups() {
            self.gather(stream)
        } else {
            self.staged[stream.index()].len().min(self.units_per_page)
        };
        let is_awaited = !self.waiters.is_empty() || self.grouping.is_hurried();
        let staged = &mut self.staged[stream.index()];
        let units = (0..count).map(|_| {
            let slot = staged.pop_front().expect("as many are staged");
            let (lpn, content) = self.buffer.start(slot);
            self.in_flight.begin(slot);
            if is_awaited {
                self.urgent -= count_waiting(&self.waiters, slot);
                self.urgent -= u32::from(self.grouping.has_left(slot));
            }
            UserUnit { lpn, content, source: slot.0 }
        });
        ftl.program(now, die, stream, units);
        true
    }

    /// A stream with a page for `die`, gathering one if need be; a partial one only if somebody
    /// waits for it.
    #[inline]
    fn full_page(&mut self, ftl: &Ftl<P>, die: DieId) -> Option<StreamId> {
        if self.staged.len() > 1 {
            return self.full_page_of_any(ftl, die);
        }
        if !ftl.may_program(die, StreamId(0)) {
            return None;
        }
        while self.staged[0].len() < self.units_per_page {
            if !self.draw_pages(ftl) {
                return self.partial_page(ftl, die);
            }
        }
        Some(StreamId(0))
    }

    #[inline(never)]
    fn full_page_of_any(&mut self, ftl: &Ftl<P>, die: DieId) -> Option<StreamId> {
        loop {
            for (stream, slots) in self.staged.iter().enumerate() {
                let stream = StreamId(stream as u8);
                if slots.len() >= self.units_per_page && ftl.may_program(die, stream) {
                    return Some(stream);
                }
            }
            // Not further ahead for streams that this die has no room for.
            if self.staged.iter().any(|slots| slots.len() >= 2 * self.units_per_page) {
                return None;
            }
            if !self.draw_unit(ftl) {
                return self.partial_page(ftl, die);
            }
        }
    }

    /// The fullest stream that `die` may take, if somebody waits.
    #[inline(never)]
    fn partial_page(&self, ftl: &Ftl<P>, die: DieId) -> Option<StreamId> {
        let urgent = self.urgent > 0 || self.grouping.wants_room;
        if !self.buffer.is_forced() && !urgent {
            return None;
        }
        (0..self.staged.len() as u8)
            .map(StreamId)
            .filter(|&stream| ftl.may_program(die, stream))
            .max_by_key(|stream| self.staged[stream.index()].len())
            .filter(|stream| !self.staged[stream.index()].is_empty())
    }

    /// Stages what the schedule yields next, of the only stream: some pages at once, which costs the simulator less.
    /// False if it has nothing.
    #[inline]
    fn draw_pages(&mut self, ftl: &Ftl<P>) -> bool {
        let count = self.units_per_page.max(UNITS_DRAWN);
        let staged = &mut self.staged[0];
        let before = staged.len();
        let drawn = self.buffer.take_next(count, |slot, _| staged.push_back(slot)) > 0;
        if self.buffer.keeps_groups() {
            self.stage_groups_from(ftl, 0, before);
        }
        drawn
    }

    /// Stages the unit that the schedule yields next. False if it has nothing.
    ///
    /// Unit by unit: which stream's page is full next must depend on the data alone, or else a period in the
    /// draws meets the round of the dies, and one die gets all the cold data.
    fn draw_unit(&mut self, ftl: &Ftl<P>) -> bool {
        let (staged, mut drawn) = (&mut self.staged, None);
        let stage = |slot, lpn| {
            staged[ftl.stream_for(lpn).index()].push_back(slot);
            drawn = Some(slot);
        };
        self.buffer.take_next(1, stage);
        if let Some(slot) = drawn {
            self.stage_group(ftl, slot);
        }
        drawn.is_some()
    }

    #[inline]
    pub(super) fn stage(&mut self, ftl: &Ftl<P>, slot: SlotId) {
        let of_group = if self.buffer.is_grouped(slot) { self.stream_of_group(slot) } else { None };
        let stream = of_group.unwrap_or_else(|| ftl.stream_for(self.buffer.lpn(slot)));
        self.staged[stream.index()].push_back(slot);
    }

    /// The program of a page of user data has ended: its units are mapped, or tried again. Calls
    /// `settled` for every request whose wait for one of them is over.
    #[inline]
    pub(super) fn end_program(
        &mut self,
        now: Time,
        ftl: &mut Ftl<P>,
        page: Ppn,
        tag: u32,
        failed: bool,
        mut settled: impl FnMut(RequestId),
    ) {
        let units = ftl.units(tag);
        for unit in 0..units {
            self.expect_ends(ftl);
            let slot = SlotId(ftl.source(tag, unit));
            if failed {
                self.fail(ftl, slot, &mut settled);
                continue;
            }
            if let Some(lpn) = self.buffer.settle(slot) {
                ftl.commit(now, page, unit, lpn);
            }
            if !self.waiters.is_empty() {
                while let Some(request) = self.waiter_of(slot) {
                    settled(request);
                }
            }
        }
        ftl.end_program(now, page, tag);
    }

    /// A unit of the host's data has ended. Brings near what the ends one and two pages later will change; the former
    /// needs what the latter has brought.
    #[inline]
    fn expect_ends(&mut self, ftl: &Ftl<P>) {
        self.in_flight.end();
        let units = self.units_per_page as u32;
        let lpn = self.buffer.lpn(self.in_flight.ahead(2 * units));
        self.buffer.expect(lpn);
        ftl.map().expect(lpn);
        ftl.expect_old(self.buffer.lpn(self.in_flight.ahead(units)));
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, ftl: &Ftl<P>, slot: SlotId, settled: &mut impl FnMut(RequestId)) {
        match self.buffer.fail(slot) {
            Failed::Again => {
                self.stage(ftl, slot);
                self.urgent += count_waiting(&self.waiters, slot);
            }
            Failed::LeftTo(newer) => {
                let moved: Vec<_> = std::iter::from_fn(|| self.waiter_of(slot)).collect();
                for request in moved {
                    if self.buffer.is_started(newer) {
                        self.waiters.push((newer, request));
                    } else {
                        self.wait_for(ftl, newer, request);
                    }
                }
            }
            Failed::Unwanted => {
                while let Some(request) = self.waiter_of(slot) {
                    settled(request);
                }
            }
        }
    }

    /// True if anyone waits for a slot.
    pub(super) const fn is_waited_for(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Forgets what `request` waits for: it has been given up.
    pub(super) fn forget(&mut self, request: RequestId) {
        let (buffer, urgent) = (&self.buffer, &mut self.urgent);
        self.waiters.retain(|&(slot, other)| {
            let keep = other != request;
            *urgent -= u32::from(!keep && !buffer.is_started(slot));
            keep
        });
    }

    /// Forgets every wait; returns who waited, each once.
    pub(super) fn forget_all(&mut self) -> Vec<RequestId> {
        self.urgent = 0;
        self.grouping.give_up();
        let mut requests: Vec<_> = self.waiters.drain(..).map(|(_, request)| request).collect();
        requests.sort_by_key(|request| request.0);
        requests.dedup();
        requests
    }

    /// Takes one of those who wait for `slot`, in the order they came.
    #[inline(never)]
    fn waiter_of(&mut self, slot: SlotId) -> Option<RequestId> {
        let at = self.waiters.iter().position(|&(other, _)| other == slot)?;
        Some(self.waiters.remove(at).1)
    }
}

/// How many requests wait for `slot`.
#[inline(never)]
fn count_waiting(waiters: &[(SlotId, RequestId)], slot: SlotId) -> u32 {
    waiters.iter().filter(|&&(other, _)| other == slot).count() as u32
}

//! A layer that loses some commands which would change the drive: they end with a write fault, and never
//! reach it.
//!
//! **What lives here**: [`Faulty`], which may stand between a page cache and the drive. A drive itself fails
//! writes only when it has run out of blocks, and then all of them; a cache must also cope with one that
//! fails among others that don't.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Hint, Lba, Op, Output, Payload, Recovery, Region,
    Status,
};
use leyden_host::{Cut, Layers, Powered};
use leyden_sim::{Ratio, Rng, Span, Time};

/// How long it takes to find out that a command is lost.
const TIMEOUT: Span = Span::from_us(50);

/// Failures injected since the power last came: a run compares a cache's reported failures with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultLog(Rc<RefCell<Faults>>);

#[derive(Clone, Debug, Default)]
struct Faults {
    /// The sectors of each.
    lost: Vec<Range<u64>>,
    /// How many of them have ended; they do so in their order.
    told: usize,
}

impl FaultLog {
    /// How many commands were made fail.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().lost.len()
    }

    /// How many of them have ended, with the write fault that tells of it.
    pub(crate) fn told(&self) -> usize {
        self.0.borrow().told
    }

    /// True if a command that was made fail had anything to do with `sectors`.
    pub(crate) fn touches(&self, sectors: &Range<u64>) -> bool {
        self.touches_since(0, sectors)
    }

    /// The same of all but the first `before` of them.
    pub(crate) fn touches_since(&self, before: usize, sectors: &Range<u64>) -> bool {
        let lost = &self.0.borrow().lost;
        lost.iter().skip(before).any(|lost| lost.start < sectors.end && sectors.start < lost.end)
    }

    fn push(&self, sectors: Range<u64>) {
        self.0.borrow_mut().lost.push(sectors);
    }

    fn clear(&self) {
        *self.0.borrow_mut() = Faults::default();
    }
}

/// Loses a share of writes, trims and write-zeroes.
#[derive(Debug)]
pub(crate) struct Faulty<P: Payload, D> {
    device: D,
    log: FaultLog,
    share: Ratio,
    rng: Rng,
    /// In the order of their ends.
    lost: VecDeque<Completion<P>>,
}

impl<P: Payload, D> Faulty<P, D> {
    pub(crate) fn new(device: D, share: Ratio, rng: Rng, log: FaultLog) -> Self {
        Self { device, log, share, rng, lost: VecDeque::new() }
    }
}

impl<P: Payload, D: BlockDevice<P>> BlockDevice<P> for Faulty<P, D> {
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        let changes = matches!(command.op(), Op::Write | Op::Trim | Op::WriteZeroes);
        if !changes || !self.rng.chance(self.share) {
            return self.device.submit(now, command);
        }
        if let Some((lba, sectors)) = command.extent() {
            self.log.push(lba.0..lba.0 + u64::from(sectors));
        }
        // No layer above tells commands apart by their numbers.
        let (id, time) = (CommandId(u64::MAX), now + TIMEOUT);
        let (op, tag, status) = (command.op(), command.tag, Status::WriteFault);
        let output = Output::None;
        let ended = Completion { id, op, tag, submitted: now, time, status, output };
        self.lost.push_back(ended);
        id
    }

    fn next_event(&self) -> Option<Time> {
        Time::earliest([self.lost.front().map(|ended| ended.time), self.device.next_event()])
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        while let Some(ended) = self.lost.pop_front_if(|ended| ended.time <= now) {
            self.device.advance(ended.time, completions);
            completions.push(ended);
            self.log.0.borrow_mut().told += 1;
        }
        self.device.advance(now, completions);
    }

    fn announce(&mut self, now: Time, hint: Hint) {
        self.device.announce(now, hint);
    }

    fn expect(&self, reads: impl Iterator<Item = Lba>) {
        self.device.expect(reads);
    }

    fn capacity_sectors(&self) -> u64 {
        self.device.capacity_sectors()
    }
}

impl<P: Payload, D: Powered<P>> Powered<P> for Faulty<P, D> {
    type Drive = D::Drive;

    fn drive(&self) -> &D::Drive {
        self.device.drive()
    }

    fn drive_mut(&mut self) -> &mut D::Drive {
        self.device.drive_mut()
    }

    fn now(&self) -> Time {
        self.device.now()
    }

    fn mapping_units(&self) -> u32 {
        self.device.mapping_units()
    }

    fn region(&self) -> Region {
        self.device.region()
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        self.lost.clear();
        self.log.clear();
        self.device.cut_power(now)
    }

    fn restore_power(&mut self, now: Time) -> Recovery {
        self.device.restore_power(now)
    }

    fn take_lost_units(&mut self) -> Vec<u32> {
        self.device.take_lost_units()
    }

    fn layers(&self) -> Layers {
        self.device.layers()
    }

    fn check(&self) {
        self.device.check();
    }

    fn fingerprint(&self) -> u64 {
        self.device.fingerprint()
    }
}

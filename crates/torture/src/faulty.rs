//! A layer that loses some commands which would change the drive: they end with a write fault, and never
//! reach it.
//!
//! **What lives here**: [`Faulty`], which may stand between a page cache and the drive. A drive itself fails
//! writes only when it has run out of blocks, and then all of them; a cache must also cope with one that
//! fails among others that don't.

use std::collections::VecDeque;

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Hint, Lba, Op, Output, Recovery, Stamp, Status,
};
use leyden_host::{Cut, Layers, Powered};
use leyden_sim::{Ratio, Rng, Span, Time};

/// How long it takes to find out that a command is lost.
const TIMEOUT: Span = Span::from_us(50);

/// Loses a share of writes, trims and write-zeroes.
#[derive(Debug)]
pub(crate) struct Faulty<D> {
    device: D,
    share: Ratio,
    rng: Rng,
    /// In the order of their ends.
    lost: VecDeque<Completion<Stamp>>,
}

impl<D> Faulty<D> {
    pub(crate) fn new(device: D, share: Ratio, rng: Rng) -> Self {
        Self { device, share, rng, lost: VecDeque::new() }
    }
}

impl<D: BlockDevice<Stamp>> BlockDevice<Stamp> for Faulty<D> {
    fn submit(&mut self, now: Time, command: Command<Stamp>) -> CommandId {
        let changes = matches!(command.op(), Op::Write | Op::Trim | Op::WriteZeroes);
        if !changes || !self.rng.chance(self.share) {
            return self.device.submit(now, command);
        }
        // Nobody above tells commands apart by their numbers.
        let (id, time) = (CommandId(u64::MAX), now + TIMEOUT);
        let (op, tag, status) = (command.op(), command.tag, Status::WriteFault);
        let output = Output::None;
        let ended = Completion { id, op, tag, submitted: now, time, status, output };
        self.lost.push_back(ended);
        id
    }

    fn next_event(&self) -> Option<Time> {
        [self.lost.front().map(|ended| ended.time), self.device.next_event()]
            .into_iter()
            .flatten()
            .min()
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<Stamp>>) {
        while let Some(ended) = self.lost.pop_front_if(|ended| ended.time <= now) {
            self.device.advance(ended.time, completions);
            completions.push(ended);
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

impl<D: Powered<Stamp>> Powered<Stamp> for Faulty<D> {
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

    fn keeps_acknowledged(&self) -> bool {
        self.device.keeps_acknowledged()
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        self.lost.clear();
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

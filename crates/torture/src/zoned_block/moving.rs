//! A host whose file system is made anew again and again: every so many commands the journal is somewhere else.
//!
//! It stands for whoever reads superblocks: what it says has nothing to do with what the blocks hold. So it also stands
//! for one that reads them wrongly, and a device that believed it would lose data.

use leyden_device::{BlockDevice, Command, CommandId, Completion, Hint, Payload, Region};
use leyden_host::zoned_block::superblock::{Journal, Why};
use leyden_host::{Cut, Layers, Powered};
use leyden_sim::{Rng, Time};

use super::OnOurs;
use crate::traced::TracedPayload;

/// Pieces of a journal at most.
const MOST_PIECES: u64 = 3;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Moving<P: Payload> {
    device: OnOurs<P>,
    rng: Rng,
    /// Commands from one journal to the next.
    every: u32,
    until_next: u32,
}

impl<P: Payload> Moving<P> {
    /// `every`: 0 for a journal that nobody ever looks for.
    pub(super) fn new(device: OnOurs<P>, every: u32, rng: Rng) -> Self {
        Self { device, rng, every, until_next: 1 }
    }

    /// Somewhere on the device, in order and apart; one time in four there is none.
    fn journal(&mut self) -> Journal {
        if self.rng.below(4) == 0 {
            return Journal::Nowhere(Why::NoFileSystem);
        }
        let unit_bytes = self.device.capacity_sectors() / u64::from(self.device.mapping_units())
            * leyden_device::SECTOR_BYTES;
        let units = u64::from(self.device.mapping_units());
        let longest = units.div_ceil(4);
        let (mut at, mut ranges) = (self.rng.below(units), Vec::new());
        for _ in 0..=self.rng.below(MOST_PIECES) {
            let end = (at + 1 + self.rng.below(longest)).min(units);
            if at < end {
                ranges.push(at * unit_bytes..end * unit_bytes);
            }
            at = end + 1 + self.rng.below(longest);
        }
        Journal::At(ranges)
    }
}

impl<P: Payload> BlockDevice<P> for Moving<P> {
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        if self.every > 0 {
            self.until_next -= 1;
            if self.until_next == 0 {
                self.until_next = self.every;
                let journal = self.journal();
                self.device.found_journal(now, Vec::new(), journal);
            }
        }
        self.device.submit(now, command)
    }

    fn next_event(&self) -> Option<Time> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>) {
        self.device.advance(now, completions);
    }

    fn advance_until_completion(
        &mut self,
        now: Time,
        limit: Time,
        completions: &mut Vec<Completion<P>>,
    ) -> Time {
        self.device.advance_until_completion(now, limit, completions)
    }

    fn announce(&mut self, now: Time, hint: Hint) {
        self.device.announce(now, hint);
    }

    fn capacity_sectors(&self) -> u64 {
        self.device.capacity_sectors()
    }
}

impl<P: TracedPayload> Powered<P> for Moving<P> {
    type Drive = OnOurs<P>;

    fn drive(&self) -> &OnOurs<P> {
        &self.device
    }

    fn drive_mut(&mut self) -> &mut OnOurs<P> {
        &mut self.device
    }

    fn now(&self) -> Time {
        Powered::now(&self.device)
    }

    fn mapping_units(&self) -> u32 {
        self.device.mapping_units()
    }

    fn region(&self) -> Region {
        self.device.region()
    }

    fn cut_power(&mut self, now: Time) -> Cut {
        self.device.cut_power(now)
    }

    fn restore_power(&mut self, now: Time) -> leyden_device::Recovery {
        self.device.restore_power(now)
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

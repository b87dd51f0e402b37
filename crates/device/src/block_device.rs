//! Devices that a host can drive: the drive, and the host's layers above it.

use leyden_sim::Time;

use crate::{Command, CommandId, Completion, Hint, Lba, Payload};

/// A device that a host can drive: the drive itself, or a host layer on top of it. A state machine
/// that reads no clock: drivers hand it commands and the time.
pub trait BlockDevice<P: Payload> {
    /// Takes a command that arrives at `now`. Never blocks: a command that finds every queue slot
    /// taken waits its turn. `now` must not run backwards over calls.
    fn submit(&mut self, now: Time, command: Command<P>) -> CommandId;

    /// When something next happens, if anything is under way.
    fn next_event(&self) -> Option<Time>;

    /// Lets everything up to and including `now` happen, and appends the commands that ended, in
    /// `(time, sequence)` order.
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion<P>>);

    /// Lets everything happen until commands end, or up to and including `limit`; returns the time
    /// reached. `now` is the driver's clock: what is overdue happens then.
    #[inline]
    fn advance_until_completion(
        &mut self,
        now: Time,
        limit: Time,
        completions: &mut Vec<Completion<P>>,
    ) -> Time {
        let mut reached = now;
        while let Some(event) = self.next_event().filter(|&event| event <= limit) {
            if event > reached && !completions.is_empty() {
                break;
            }
            reached = self.step(reached.max(event), limit, completions);
        }
        if completions.is_empty() { limit } else { reached }
    }

    /// Lets the instant `now` happen, at which something is due, and returns it. A layer that has nothing to do until a
    /// command ends below it may let what is below run on until then, up to and including `limit`; it returns the time
    /// of what happened last.
    #[inline]
    fn step(&mut self, now: Time, _limit: Time, completions: &mut Vec<Completion<P>>) -> Time {
        self.advance(now, completions);
        now
    }

    /// Hears that the host holds newer data for the range of `hint`, which it will write before long.
    /// A layer that knows of a way to the drive passes it on; others forget it, which is harmless.
    #[inline]
    fn announce(&mut self, _now: Time, _hint: Hint) {}

    /// Hears of reads that will be submitted soon, so that it can bring near what it needs for
    /// them. Changes nothing but the simulator's speed; need not be called.
    #[inline]
    fn expect(&self, _reads: impl Iterator<Item = Lba>)
    where
        Self: Sized,
    {
    }

    /// Sectors that can be addressed.
    fn capacity_sectors(&self) -> u64;
}

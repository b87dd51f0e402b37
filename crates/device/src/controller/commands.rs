//! The command table: commands between the host and a namespace, and their ends.
//!
//! **What lives here**: the front end, the commands in the device, completions. **What doesn't**:
//! what a command means (the namespace's).
//!
//! **Invariants**: each command ends exactly once, and its queue slot goes to the next one then.

use std::collections::VecDeque;

use leyden_nand::Outcome;
use leyden_sim::{Digest, Time};

use super::frontend::{Frontend, FrontendEvent};
use super::requests::{Request, RequestId, Requests};
use crate::units::Units;
use crate::{
    Action, Command, CommandId, Completion, FrontendConfig, Hint, Output, Payload, SECTOR_BYTES,
    Status,
};

/// Bytes of a range in a dataset management command (NVM Command Set 1.0, figure 41).
const RANGE_BYTES: u64 = 16;

/// Bytes of a source range of a copy (NVM Command Set 1.0, 3.2.2, descriptor format 0).
const COPY_RANGE_BYTES: u64 = 32;

/// Commands on their way in and out.
#[derive(Clone, Debug)]
pub struct CommandTable<P: Payload> {
    frontend: Frontend,
    requests: Requests<P>,
    /// The ends of commands that the host has not heard of yet.
    pub(super) done: Vec<Completion<P>>,
    /// Ends of commands that have come while there was no power.
    refused: VecDeque<Completion<P>>,
    next_id: u64,
    digest: Digest,
}

impl<P: Payload> CommandTable<P> {
    pub(super) fn new(config: &FrontendConfig) -> Self {
        Self {
            frontend: Frontend::new(config),
            requests: Requests::new(),
            done: Vec::new(),
            refused: VecDeque::new(),
            next_id: 0,
            digest: Digest::default(),
        }
    }

    /// A command that is in the device.
    #[inline]
    pub fn request(&self, id: RequestId) -> &Request<P> {
        self.requests.get(id)
    }

    /// The same, to change it.
    #[inline]
    pub fn request_mut(&mut self, id: RequestId) -> &mut Request<P> {
        self.requests.get_mut(id)
    }

    /// The units that a command touches.
    #[inline]
    pub fn units(&self, id: RequestId) -> Units {
        self.requests.get(id).units
    }

    /// One of the units that a FUA write waits for is on flash, or trimmed.
    pub fn unit_settled(&mut self, now: Time, id: RequestId) {
        let units = self.units(id).count();
        let request = self.request_mut(id);
        request.pending -= 1;
        if request.pending == 0 && request.next_unit == units {
            self.complete(now, id, Status::Success);
        }
    }

    /// Sends what a read has read to the host; it ends when that is there.
    #[inline]
    pub fn deliver(&mut self, now: Time, id: RequestId) {
        let sectors = self.requests.get(id).action.extent().map_or(0, |(_, sectors)| sectors);
        self.frontend.deliver(now, id, u64::from(sectors) * SECTOR_BYTES);
    }

    /// Ends a command.
    #[inline]
    pub fn complete(&mut self, now: Time, id: RequestId, status: Status) {
        let request = self.requests.get_mut(id);
        let is_read = matches!(request.action, Action::Read { .. });
        let output = if is_read && status == Status::Success {
            Output::Read(std::mem::take(&mut request.read))
        } else {
            Output::None
        };
        self.complete_with(now, id, status, output);
    }

    /// Ends a command that returns `output`.
    #[inline]
    pub fn complete_with(&mut self, now: Time, id: RequestId, status: Status, output: Output<P>) {
        let request = self.requests.get_mut(id);
        self.digest.add(request.id.0).add(now.as_ns()).add(u64::from(status.code()));
        let op = request.op();
        self.done.push(Completion {
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

    /// Notes what the flash has done, for the digest.
    #[inline]
    pub fn note_outcome(&mut self, outcome: &Outcome) {
        let what = outcome.operation.kind.fingerprint() ^ u64::from(outcome.failed) << 63;
        self.digest.add(outcome.time.as_ns()).add(what);
    }

    /// The data of writes in flight, and the data that reads in flight have got so far.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (Option<&P::WriteData>, &P::ReadData)> {
        self.requests.iter().map(|request| (request.action.data(), &request.read))
    }

    /// How many commands are in the device.
    pub(crate) fn pending(&self) -> usize {
        self.requests.len()
    }

    /// Fingerprint of everything so far.
    pub(super) const fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) const fn digest_mut(&mut self) -> &mut Digest {
        &mut self.digest
    }

    /// The state for a snapshot: the number of the next command, and the digest.
    pub(super) const fn state(&self) -> (u64, Digest) {
        (self.next_id, self.digest)
    }

    pub(super) const fn restore(&mut self, (next_id, digest): (u64, Digest)) {
        (self.next_id, self.digest) = (next_id, digest);
    }

    #[inline]
    const fn next_id(&mut self) -> CommandId {
        let id = CommandId(self.next_id);
        self.next_id += 1;
        id
    }

    /// Takes a command in.
    #[inline]
    pub(super) fn submit(&mut self, now: Time, command: Command<P>) -> CommandId {
        let id = self.next_id();
        let bytes = match &command.action {
            Action::Write { sectors, .. } | Action::ZoneAppend { sectors, .. } => {
                u64::from(*sectors) * SECTOR_BYTES
            }
            Action::ZoneExtension { data, .. } => data.len() as u64,
            Action::WritePrepare { ranges } => bytes_of(ranges),
            Action::Copy { ranges, .. } => ranges.len() as u64 * COPY_RANGE_BYTES,
            _ => 0,
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
        self.frontend.submit(now, request, bytes);
        id
    }

    /// A command has come to a drive without power: it ends at once.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, now: Time, command: &Command<P>) -> CommandId {
        let (id, status) = (self.next_id(), Status::NotReady);
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
        id
    }

    /// True if there are ends of refused commands to hand out.
    #[inline]
    pub(super) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Lets the host hear of the commands that were refused.
    pub(super) fn hand_out_refused(&mut self) {
        self.done.extend(self.refused.drain(..));
    }

    /// When a command next arrives or is delivered; [`Time::MAX`] if none will, or only at the end of time.
    #[inline]
    pub(super) fn next_time(&self) -> Time {
        self.frontend.next_time()
    }

    /// True if a command is to arrive or to be delivered.
    pub(super) fn has_passages(&self) -> bool {
        self.frontend.has_passages()
    }

    /// The next command to arrive or be delivered at `now`.
    #[inline]
    pub(super) fn next_passage(&mut self, now: Time) -> Option<FrontendEvent> {
        self.frontend.next_passage(now)
    }

    /// True if no command is anywhere in the device.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.frontend.is_idle()
    }

    /// Takes no command in before `ready`.
    pub(super) fn hold_until(&mut self, ready: Time) {
        self.frontend.hold_until(ready);
    }

    /// Forgets every command: the power is gone.
    pub(super) fn lose_power(&mut self) {
        self.requests.clear();
        self.frontend.lose_power();
    }
}

/// Bytes that a command of `ranges` brings with it.
const fn bytes_of(ranges: &[Hint]) -> u64 {
    ranges.len() as u64 * RANGE_BYTES
}

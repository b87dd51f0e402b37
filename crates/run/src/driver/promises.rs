//! Checks reads against what the drive has promised to keep, in runs whose power is cut.
//!
//! **What lives here**: the driver's side of the durability model ([`leyden_oracle`]). Without cuts,
//! [`super::Verifier`] does: it remembers no commands.
//!
//! **Invariants**
//! - After each cut, every mapping unit is looked at, whether the workload will read it or not. If a
//!   promised version is missing and the drive has not reported it lost, the run ends.
//! - Content from before the run reads like zeroes, and is not distinguished from them.
//! - About 140 bytes are kept for each mapping unit, and 100 for each command since the last cut.

use leyden_device::{Completion, Op, Region, Stamp, Status};
use leyden_oracle::{Ended, Id, Oracle, Promise};
use leyden_sim::Time;
use leyden_workload::Request;

use super::{Content, DriveError, Outage};

/// So many units are looked at as one read.
const LOOK_UNITS: usize = 1 << 12;

/// Gives each write a stamp of its own and checks each read, over power cuts too.
#[derive(Clone, Debug)]
pub struct Promises {
    oracle: Oracle,
    unit_sectors: u32,
    /// The oracle's number of the command in each slot; `None` for one without sectors.
    slots: Vec<Option<Id>>,
}

impl Promises {
    /// For a device of `units` mapping units of `unit_sectors` that was never written, and that promises
    /// `promise`.
    pub fn new(units: u32, unit_sectors: u32, promise: Promise) -> Self {
        Self { oracle: Oracle::new(units, unit_sectors, promise), unit_sectors, slots: Vec::new() }
    }

    /// The promise of a device whose buffer has the protected region `region`.
    pub const fn of(region: Region) -> Promise {
        match region {
            Region::None => Promise::None,
            Region::Full => Promise::Full,
            Region::Selective => Promise::Selective,
        }
    }

    /// See [`Oracle::flushing_trims`].
    #[must_use]
    pub fn flushing_trims(self, flushes_trims: bool) -> Self {
        Self { oracle: self.oracle.flushing_trims(flushes_trims), ..self }
    }

    /// Looks at every unit: what recovery has left.
    fn look_at_all(&mut self, at: Time, left: &[Stamp]) -> Result<(), DriveError> {
        let mut stamps = Vec::with_capacity(LOOK_UNITS);
        for (chunk, lba) in left.chunks(LOOK_UNITS).zip((0..).step_by(LOOK_UNITS)) {
            stamps.clear();
            stamps.extend(chunk.iter().map(|stamp| stamp.0));
            let sectors = stamps.len() as u32 * self.unit_sectors;
            let lba = lba * u64::from(self.unit_sectors);
            let op = leyden_oracle::Op::Read;
            let request = leyden_oracle::Request { op, lba, sectors, fua: false, plp: false };
            let look = self.oracle.submit(at, request);
            self.oracle.complete(at, look, Ended::Done, &stamps)?;
        }
        Ok(())
    }
}

/// The oracle's name for it; `None` if it can neither change anything nor fail to.
fn promised_op(request: &Request) -> Option<leyden_oracle::Op> {
    let op = match request.op {
        Op::Read => leyden_oracle::Op::Read,
        Op::Write => leyden_oracle::Op::Write,
        Op::Flush if request.sectors > 0 => leyden_oracle::Op::Sync,
        Op::Flush => leyden_oracle::Op::Flush,
        Op::Trim => leyden_oracle::Op::Trim,
        Op::WriteZeroes => leyden_oracle::Op::WriteZeroes,
        Op::WritePrepare | Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => return None,
    };
    let is_empty = op != leyden_oracle::Op::Flush && request.sectors == 0;
    (!is_empty).then_some(op)
}

impl Content<Stamp> for Promises {
    fn submit(&mut self, slot: u32, now: Time, request: &Request) -> u64 {
        let slot = slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        self.slots[slot] = promised_op(request).map(|op| {
            let Request { lba, sectors, fua, .. } = *request;
            let request = leyden_oracle::Request { op, lba: lba.0, sectors, fua, plp: false };
            self.oracle.submit(now, request)
        });
        self.slots[slot].map_or(0, |id| id.0)
    }

    #[inline]
    fn minds_unwritten(&self) -> bool {
        true
    }

    fn unwritten(&mut self, units: Vec<u32>) {
        self.oracle.note_unwritten(units);
    }

    fn complete(&mut self, slot: u32, completion: &Completion<Stamp>) -> Result<(), DriveError> {
        let Some(id) = self.slots[slot as usize].take() else { return Ok(()) };
        let ended = match completion.status {
            Status::Success => Ended::Done,
            _ => Ended::Failed,
        };
        let stamps: Vec<u64> =
            completion.data().into_iter().flatten().map(|stamp| stamp.0).collect();
        Ok(self.oracle.complete(completion.time, id, ended, &stamps)?)
    }

    fn cut(&mut self, outage: &Outage<Stamp>) -> Result<Option<u64>, DriveError> {
        let before = self.oracle.losses().confirmed;
        self.oracle.cut(outage.at);
        self.slots.fill(None);
        self.oracle.note_loss_allowed(outage.lost.iter().copied());
        self.oracle.note_uncertain(outage.uncertain.iter().cloned().flatten());
        self.oracle.restore(outage.back_at);
        self.look_at_all(outage.back_at, &outage.left)?;
        self.oracle.compact();
        Ok(Some(self.oracle.losses().confirmed - before))
    }
}

//! What a host can ask of a drive, and what it hears back.

use leyden_sim::Time;

use crate::{Hint, Payload};

/// Bytes of a logical block. Addresses and lengths of commands count in these, as block traces and
/// the Linux block layer do; a namespace with larger logical blocks is its edge's business.
pub const SECTOR_BYTES: u64 = 512;

/// A logical block address, in sectors of [`SECTOR_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lba(pub u64);

/// What to do (NVM command set, in brackets its opcode).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// Read (02h).
    Read,
    /// Write (01h).
    Write,
    /// Flush (00h): on completion, every write acknowledged before it survives a power cut.
    Flush,
    /// Dataset management, deallocate (09h): the range reads as zeroes from now on.
    Trim,
    /// Write zeroes (08h): as `Trim`, here: deallocated ranges read as zeroes.
    WriteZeroes,
    /// Dataset management (09h) with the range attribute "write prepare": the ranges in
    /// [`Command::ranges`] will be overwritten before long. Changes no promise.
    WritePrepare,
}

/// One command. `lba` and `sectors` are ignored by `Flush` and `WritePrepare`.
#[derive(Clone, Debug)]
pub struct Command<P: Payload> {
    /// What to do.
    pub op: Op,
    /// Where it begins.
    pub lba: Lba,
    /// How many sectors it covers.
    pub sectors: u32,
    /// Force unit access: a write completes only when it would survive a power cut.
    pub fua: bool,
    /// The data belongs to a log: the stream that the host has set aside for it (NVM Express Base 2.0,
    /// streams directive). Ignored but by `Write`, and by drives that do not ask
    /// (`ftl.log_stream`).
    pub is_log: bool,
    /// What to write; ignored but by `Write`.
    pub data: P::WriteData,
    /// Handed back in the completion: the driver's own note, like the thread that asked.
    pub tag: u32,
    /// A hint that rides along on a `Read` or `Write`; ignored on other commands.
    pub hint: Option<Hint>,
    /// What a `WritePrepare` names: up to [`MOST_RANGES`]. Ignored but by `WritePrepare`.
    pub ranges: Option<Box<[Hint]>>,
}

/// The most ranges of a dataset management command (NVM Command Set 1.0, 3.2.3).
pub const MOST_RANGES: usize = 256;

impl<P: Payload> Command<P> {
    /// A command without data or flags.
    pub fn new(op: Op, lba: Lba, sectors: u32) -> Self {
        let data = P::WriteData::default();
        Self { op, lba, sectors, fua: false, is_log: false, data, tag: 0, hint: None, ranges: None }
    }
}

/// The device's name for a command, unique over its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u64);

/// How a command ended: NVMe status codes (status code type, status code).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// 0h / 00h.
    Success,
    /// 0h / 02h: a length of zero sectors, or one that overflows.
    InvalidField,
    /// 0h / 80h: the range ends beyond the namespace.
    LbaOutOfRange,
    /// 2h / 80h: the flash has no room left to write (its spare blocks are used up).
    WriteFault,
    /// 2h / 81h: what was stored there can't be read back.
    UnrecoveredRead,
}

impl Status {
    /// The NVMe status field: status code type in bits 10:8, status code in bits 7:0 (NVM Express
    /// Base 2.0, figure 88).
    pub const fn code(self) -> u16 {
        match self {
            Self::Success => 0x000,
            Self::InvalidField => 0x002,
            Self::LbaOutOfRange => 0x080,
            Self::WriteFault => 0x280,
            Self::UnrecoveredRead => 0x281,
        }
    }
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Completion<P: Payload> {
    /// Which command.
    pub id: CommandId,
    /// What it was.
    pub op: Op,
    /// The driver's own note from the command.
    pub tag: u32,
    /// When it was submitted.
    pub submitted: Time,
    /// When it ended.
    pub time: Time,
    /// How it ended.
    pub status: Status,
    /// What was read: one entry per mapping unit touched, in address order; empty but for `Read`.
    pub data: P::ReadData,
}

/// What every layer that a host can drive offers: the drive itself, and the host layers on top of
/// it. A state machine that reads no clock: drivers hand it commands and the time.
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
        mut now: Time,
        limit: Time,
        completions: &mut Vec<Completion<P>>,
    ) -> Time {
        while let Some(event) = self.next_event().filter(|&event| event <= limit) {
            now = now.max(event);
            self.advance(now, completions);
            if !completions.is_empty() {
                return now;
            }
        }
        limit
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

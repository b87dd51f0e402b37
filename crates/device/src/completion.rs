//! Completions of a drive's commands.

use leyden_sim::Time;

use crate::{Lba, Op, Payload, Status, ZoneReport};

/// The device's name for a command, unique over its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u64);

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Completion<P: Payload> {
    /// Which command.
    pub id: CommandId,
    /// The command's kind.
    pub op: Op,
    /// The driver's own note from the command.
    pub tag: u32,
    /// When it was submitted.
    pub submitted: Time,
    /// When it ended.
    pub time: Time,
    /// How it ended.
    pub status: Status,
    /// The results beside the status.
    pub output: Output<P>,
}

impl<P: Payload> Completion<P> {
    /// The data of a read; `None` if it was no read, or has failed.
    #[inline]
    pub const fn data(&self) -> Option<&P::ReadData> {
        match &self.output {
            Output::Read(data) => Some(data),
            Output::None | Output::Appended(_) | Output::Zones(_) => None,
        }
    }

    /// Where an append has written; `None` if it was none, or has failed.
    #[inline]
    pub const fn appended(&self) -> Option<Lba> {
        match self.output {
            Output::Appended(lba) => Some(lba),
            _ => None,
        }
    }

    /// The zones of a report; `None` if it was none, or has failed.
    pub fn zones(&self) -> Option<&ZoneReport> {
        match &self.output {
            Output::Zones(report) => Some(report),
            _ => None,
        }
    }
}

/// The results of a command beside its status.
#[derive(Clone, Debug)]
pub enum Output<P: Payload> {
    /// Nothing: it has failed, or there is nothing to return.
    None,
    /// The data of a read.
    Read(P::ReadData),
    /// Where an append has written (ALBA).
    Appended(Lba),
    /// Zones.
    Zones(Box<ZoneReport>),
}

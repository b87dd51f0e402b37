//! A read-only view of what a drive is doing.

use leyden_ftl::page_mapped::ProgramCause;
use leyden_nand::Kind;
pub use leyden_nand::Phase;

use crate::{Payload, Ssd};

/// A flash operation in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// Its die.
    pub die: u32,
    /// The die's channel.
    pub channel: u32,
    /// The operation's kind.
    pub kind: ActivityKind,
    /// The page that it reads or programs, or the block that it erases.
    pub address: u32,
    /// How far it is.
    pub phase: Phase,
}

/// The kind of a flash operation, and its purpose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ActivityKind {
    /// A read of data that the host waits for.
    HostRead,
    /// A read of the drive's own; garbage collection makes nearly all of them.
    OwnRead,
    /// A program of data that the host has written.
    HostProgram,
    /// A program of data that garbage collection copies.
    CopyProgram,
    /// A program of a page of the mapping table or of its journal.
    MappingProgram,
    /// A block is made free.
    Erase,
}

impl<P: Payload> Ssd<P> {
    /// The activity of each die that is not idle.
    pub fn activity(&self) -> impl Iterator<Item = Activity> + '_ {
        let ftl = self.namespace().ftl();
        ftl.activity().map(|it| {
            let (kind, address) = match it.operation.kind {
                Kind::HostRead(page) => (ActivityKind::HostRead, page.0),
                Kind::Read(page) => (ActivityKind::OwnRead, page.0),
                Kind::Erase(block) => (ActivityKind::Erase, block.0),
                Kind::Program(page) => {
                    let kind = match ftl.cause_of(&it.operation) {
                        ProgramCause::User => ActivityKind::HostProgram,
                        ProgramCause::Gc => ActivityKind::CopyProgram,
                        ProgramCause::Map | ProgramCause::GcMap | ProgramCause::Journal => {
                            ActivityKind::MappingProgram
                        }
                    };
                    (kind, page.0)
                }
            };
            let (die, channel) = (it.die.index() as u32, it.channel.index() as u32);
            Activity { die, channel, kind, address, phase: it.phase }
        })
    }

    /// Programs that have ended, and wait at the gate of the mapping table to change it.
    pub fn waiting_at_gate(&self) -> u64 {
        self.namespace().ftl().waiting_at_gate()
    }
}

//! Everything that a run depends on, written out, so that a failing run can be kept and made
//! smaller. Drawn from a seed in [`draw`].

mod bank;
pub(crate) mod chance;
mod check;
mod device;
mod draw;
mod host;
mod plain;
pub(crate) mod tiny;

pub(crate) use device::draw_levelling;
pub(crate) use plain::plain_device;

pub(crate) use draw::{DRAW_VERSION, draw_rounds, draw_work, mixed, rng};
pub use host::Host;

use leyden_device::Config;
use leyden_sim::{Ratio, Span};
use serde::{Deserialize, Serialize};

pub(crate) use bank::draw_failed_programs;

use crate::traced::Grain;

/// A drive, its work, and its power cuts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Where commands and the drive's own chances come from.
    pub seed: u64,
    /// The grain of its content.
    #[serde(default)]
    pub grain: Grain,
    /// The drive.
    pub device: Config,
    /// The host layers above it; none, for most seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The host's work.
    pub work: Work,
    /// From one power cut to the next.
    pub rounds: Vec<Round>,
}

/// The host's work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Write this share of the drive once, in order, before the first round.
    pub fill: Ratio,
    /// Commands under way at once.
    pub queue_depth: u32,
    /// How often each command occurs.
    pub mix: Mix,
    /// Share of writes and write-zeroes that carry FUA.
    pub fua: Ratio,
    /// Share of commands that begin or end inside a mapping unit.
    pub unaligned: Ratio,
    /// Share of commands that go to the hot part of the drive.
    pub hot: Ratio,
    /// How large that part is.
    pub hot_part: Ratio,
    /// Share of commands that go on where the one before ended.
    pub sequential: Ratio,
    /// The most mapping units of a command.
    pub largest_units: u32,
    /// Share of commands that come with zombie hints, true ones and others.
    #[serde(default)]
    pub hints: Ratio,
    /// How many tenants take turns, each in a part of the drive of its own.
    #[serde(default = "one")]
    pub tenants: u32,
    /// Commands go where those of a recorded trace went.
    #[serde(default)]
    pub trace: bool,
    /// Share of moments at which the host looks late for what has completed.
    pub late: Ratio,
    /// Share of the writes that ask for the protected part of the buffer.
    #[serde(default)]
    pub plp: Ratio,
}

const fn one() -> u32 {
    1
}

/// Weights of the commands. A command whose weight is made 0 becomes a write; the others stay.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Reads, in thousandths of all commands; the rest are writes.
    pub reads: u32,
    /// Trims.
    pub trims: u32,
    /// Write-zeroes.
    pub write_zeroes: u32,
    /// Flushes.
    pub flushes: u32,
}

/// Commands, then a power cut, then what is looked at after it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The number that its commands are drawn by: it keeps them when other rounds go.
    pub number: u64,
    /// Commands before the cut is timed.
    pub commands: u32,
    /// Before its commands, the drive is saved and loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reload: bool,
    /// Those of them that are left out, first and last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<(u32, u32)>,
    /// When the power fails.
    pub cut: Cut,
    /// How long it is off.
    pub off: Span,
    /// Cuts during the recovery, each at this share of the recovery it interrupts.
    pub again: Vec<Ratio>,
    /// Commands go on while the drive still recovers.
    pub early: bool,
    /// Assert the drive's invariants after recovery.
    pub check: bool,
    /// The reads after the recovery, before anything else.
    pub verify: Verify,
}

impl Round {
    /// Commands that are not left out.
    pub fn kept(&self) -> u32 {
        let end = self.commands;
        let skipped = |&(first, last): &(u32, u32)| {
            u64::from(last.saturating_add(1).min(end).saturating_sub(first))
        };
        u64::from(end).saturating_sub(self.skip.iter().map(skipped).sum()) as u32
    }
}

/// When the power fails, once the round's commands have been submitted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// So much later; commands go on.
    After(Span),
    /// When so many more things have happened, at the very moment of the next; commands go on.
    AtEvent {
        /// How many.
        events: u32,
        /// Before the events of that moment, or after them.
        before: bool,
    },
    /// When so many programs of the mapping table or its journal have begun; commands go on.
    AtTablePage {
        /// How many; 1 is the first.
        pages: u32,
    },
    /// When a protocol of the device has begun its next stage for the so-manyth time; commands go on.
    AtStage {
        /// How many times; 1 is the first.
        stages: u32,
    },
    /// When so many pages of a collection's copies have begun to be programmed; commands go on.
    AtCopy {
        /// How many; 1 is the first.
        pages: u32,
    },
    /// When so many more things have happened after the next program that fails, if one does; commands go on.
    AfterFailure {
        /// How many.
        events: u32,
    },
    /// So long after a FLUSH submitted then has completed; commands go on.
    AfterFlush(Span),
    /// When so many trims and a FLUSH have completed, with nothing else under way or buffered.
    AfterTrims {
        /// How many.
        trims: u32,
    },
    /// So long after the last command has completed.
    Idle(Span),
    /// Not at all.
    Never,
}

/// The reads after a recovery.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Nothing.
    Nothing,
    /// So many reads at random places.
    Some(u32),
    /// The whole drive.
    All,
}

//! Reports of broken promises.

use std::fmt;

use leyden_sim::Time;

use crate::{Id, Op};

/// A read returned what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The mapping unit.
    pub unit: u32,
    /// The fault.
    pub problem: Problem,
    /// The stamp that was returned, if any; 0 is zeroes.
    pub found: Option<u64>,
    /// When the read was submitted.
    pub submitted: Time,
    /// When it completed.
    pub completed: Time,
    /// The stamps that it might have returned; the earliest are left out if there are many.
    pub allowed: Vec<u64>,
    /// The newest version that had to be kept, or any later one.
    pub promised: Option<Promised>,
    /// The unit's history, in order; the oldest is left out if there is much.
    pub history: Vec<Event>,
}

/// The fault of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// A version older than one that had to be there, with no cut in between.
    Stale,
    /// After a power cut, a version older than a promised one.
    Lost,
    /// A stamp that no command gave the unit.
    NeverWritten,
    /// A version that recovery had not left, as an earlier read has shown, or which a later one had
    /// replaced as an earlier read has shown.
    Reappeared,
    /// The read failed.
    Unreadable,
    /// An atomic command shows elsewhere, and not here, where nothing newer does.
    Torn {
        /// The promise.
        command: Id,
    },
}

/// A version that had to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promised {
    /// The command.
    pub id: Id,
    /// The kind of command.
    pub op: Op,
    /// When it was submitted.
    pub submitted: Time,
    /// When it was acknowledged.
    pub acknowledged: Time,
    /// Why it had to be kept.
    pub why: Why,
}

/// Why a version had to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Acknowledged, and there was no power cut.
    NoCut,
    /// Acknowledged, and the whole buffer is protected.
    Protected,
    /// Written with FUA.
    Fua,
    /// Written with the PLP flag.
    Plp,
    /// A FLUSH submitted after the acknowledgement had completed.
    Flushed {
        /// When the FLUSH was submitted.
        submitted: Time,
        /// When it completed.
        completed: Time,
    },
}

/// The fate of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has not ended.
    InFlight,
    /// It succeeded.
    Acknowledged,
    /// It failed.
    Failed,
    /// The power was cut before it ended.
    Cut,
}

/// A line of a unit's history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A command that changed the unit, or a FLUSH.
    Command {
        /// Which; also its stamp.
        id: Id,
        /// The kind of command.
        op: Op,
        /// With FUA.
        fua: bool,
        /// When it was submitted.
        submitted: Time,
        /// When it ended, if it has.
        ended: Option<Time>,
        /// Its fate.
        fate: Fate,
    },
    /// A power cut.
    Cut(Time),
    /// Power came back.
    Restored(Time),
}

fn stamp_text(stamp: u64) -> String {
    if stamp == 0 { "zeroes".to_owned() } else { format!("#{stamp}") }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.map_or_else(|| "nothing".to_owned(), stamp_text);
        write!(
            f,
            "unit {}: {}: a read from {} to {} ns returned {found}",
            self.unit,
            self.problem,
            self.submitted.as_ns(),
            self.completed.as_ns()
        )?;
        if let Some(promised) = &self.promised {
            write!(f, "\n  promised: {promised}")?;
        }
        let allowed: Vec<_> = self.allowed.iter().map(|&stamp| stamp_text(stamp)).collect();
        write!(f, "\n  might have returned: {}", allowed.join(", "))?;
        write!(f, "\n  history of the unit:")?;
        self.history.iter().try_for_each(|event| write!(f, "\n    {event}"))
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Torn { command } = self {
            return write!(f, "atomic write #{} is there in part", command.0);
        }
        f.write_str(match self {
            Self::Stale => "a stale read",
            Self::Lost => "a promised write was lost",
            Self::NeverWritten => "content that was never written there",
            Self::Reappeared => "a version that was gone came back",
            Self::Unreadable => "the read failed",
            Self::Torn { .. } => "an atomic write is there in part",
        })
    }
}

impl fmt::Display for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} #{}, submitted at {} ns, acknowledged at {} ns, {}",
            self.op,
            self.id.0,
            self.submitted.as_ns(),
            self.acknowledged.as_ns(),
            self.why
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCut => f.write_str("and there was no cut"),
            Self::Protected => f.write_str("with the whole buffer protected"),
            Self::Fua => f.write_str("with FUA"),
            Self::Plp => f.write_str("with the PLP flag"),
            Self::Flushed { submitted, completed } => {
                write!(f, "flushed from {} to {} ns", submitted.as_ns(), completed.as_ns())
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(at) => write!(f, "{:>12} ns  power cut", at.as_ns()),
            Self::Restored(at) => write!(f, "{:>12} ns  power restored", at.as_ns()),
            Self::Command { id, op, fua, submitted, ended, fate } => {
                let fua = if *fua { " FUA" } else { "" };
                write!(f, "{:>12} ns  {op:?}{fua} #{}", submitted.as_ns(), id.0)?;
                match (ended, fate) {
                    (Some(at), Fate::Acknowledged) => write!(f, ", acknowledged at {}", at.as_ns()),
                    (Some(at), Fate::Failed) => write!(f, ", failed at {}", at.as_ns()),
                    (Some(at), Fate::Cut) => write!(f, ", cut off at {}", at.as_ns()),
                    _ => f.write_str(", in flight"),
                }
            }
        }
    }
}

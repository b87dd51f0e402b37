//! How a run can fail.

use std::fmt;

use leyden_oracle::Problem;
use leyden_oracle::zones::ZoneProblem;
use serde::{Deserialize, Serialize};

/// The failure of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The kind of failure.
    pub kind: Kind,
    /// In how many cuts the power had failed before.
    pub cuts: u64,
    /// The whole story.
    pub message: String,
}

/// Kinds of failures; shrinking keeps the kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A promised write was lost in a power cut.
    Lost,
    /// A read returned a version that had been replaced, without a power cut.
    Stale,
    /// A read returned what was never written there.
    NeverWritten,
    /// A version that was gone came back.
    Reappeared,
    /// A read failed.
    Unreadable,
    /// An atomic write was there in part.
    Torn,
    /// The drive lacked the energy to keep what it had promised, and was not allowed to.
    Underprovisioned,
    /// The losses or the cost of a cut do not follow from its energy.
    Unjustified,
    /// A command failed, or a drive could only be read, and nothing was wrong.
    Fault,
    /// A read returned what was written elsewhere.
    Misplaced,
    /// A zone's state or write pointer is not what it must be.
    Zone,
    /// A command ended with a status that it must not have.
    Status,
    /// Commands are in the drive, and nothing happens any more.
    Stuck,
    /// The drive found one of its invariants broken.
    Panicked,
    /// Two runs of the same options differ.
    NotDeterministic,
    /// The options describe a drive that cannot be built.
    Refused,
}

impl From<ZoneProblem> for Kind {
    fn from(problem: ZoneProblem) -> Self {
        match problem {
            ZoneProblem::Lost => Self::Lost,
            ZoneProblem::Wrong => Self::NeverWritten,
            ZoneProblem::Above => Self::Reappeared,
            ZoneProblem::Pointer | ZoneProblem::State => Self::Zone,
        }
    }
}

impl From<Problem> for Kind {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Lost => Self::Lost,
            Problem::Stale => Self::Stale,
            Problem::NeverWritten => Self::NeverWritten,
            Problem::Reappeared => Self::Reappeared,
            Problem::Unreadable => Self::Unreadable,
            Problem::Torn { .. } => Self::Torn,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} power cuts: {}", self.cuts, self.message)
    }
}

impl std::error::Error for Failure {}

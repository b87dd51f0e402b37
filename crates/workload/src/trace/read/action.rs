//! Which events of a blktrace are requests: for its binary files and for blkparse's text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which of a request's events in a blktrace is taken for the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlkAction {
    /// `Q`: the file system handed it to the block layer.
    Queue,
    /// `D`: the block layer, after merging and splitting, handed it to the driver.
    #[default]
    Issue,
    /// `C`: the driver completed it.
    Complete,
}

impl BlkAction {
    /// blkparse's letter.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Queue => "Q",
            Self::Issue => "D",
            Self::Complete => "C",
        }
    }

    /// `enum blktrace_act`.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Queue => 1,
            Self::Issue => 7,
            Self::Complete => 8,
        }
    }
}

//! The threads of a key-value store, as sequences of steps.

use std::collections::VecDeque;

use super::fs::{File, FileKind};

/// The log of a memtable.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) file: File,
    /// Pairs whose puts were acknowledged.
    pub(super) puts: u64,
}

/// A thread's next step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Reads so many sectors of a file, from one on.
    Read {
        file: File,
        at: u64,
    },
    /// Writes so many sectors more of its table.
    Table {
        left: u64,
        kind: FileKind,
    },
    /// Writes a record of metadata.
    Meta,
    Flush,
    /// The table can be found, and the log is deleted.
    Installed,
    /// The compaction has ended: its inputs are deleted.
    Compacted,
}

/// A thread that does one thing after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) steps: VecDeque<Step>,
    /// The table that it writes.
    pub(super) table: File,
    /// The memtable's log, if it flushes one.
    pub(super) log: Log,
    pub(super) is_waiting: bool,
}

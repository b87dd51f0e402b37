//! One request of a workload, before any device sees it.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

/// What a request's data belongs to, where a trace knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Class {
    /// Nothing is known.
    #[default]
    Unknown,
    /// File or table data.
    Data,
    /// A database's write-ahead log.
    Wal,
    /// A file system's journal.
    Journal,
    /// A file system's other metadata.
    FsMeta,
}

impl Class {
    /// Their names, in their order.
    pub const NAMES: [&str; 5] = ["unknown", "data", "wal", "journal", "fs-meta"];

    /// What it is called.
    ///
    /// ```
    /// use leyden_workload::Class;
    /// assert_eq!((Class::Unknown.name(), Class::FsMeta.name()), ("unknown", "fs-meta"));
    /// ```
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When the host asked, from the start of the workload. Ignored by closed-loop replay.
    pub at: Time,
    /// What it asked for.
    pub op: Op,
    /// First sector (512 bytes).
    pub lba: Lba,
    /// Sectors; 0 for a flush.
    pub sectors: u32,
    /// Forced unit access.
    pub fua: bool,
    /// What the data belongs to.
    pub class: Class,
}

//! One request of a workload, before any device sees it.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::Class;

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When the host asked, from the start of the workload. Ignored by closed-loop replay.
    pub at: Time,
    /// The operation.
    pub op: Op,
    /// First sector (512 bytes).
    pub lba: Lba,
    /// Sectors; of a flush those of the file that it is for, or 0 if it is for everything.
    pub sectors: u32,
    /// Forced unit access.
    pub fua: bool,
    /// The class of the data.
    pub class: Class,
}

/// Readers keep tens of thousands of them back, to sort them.
const _: () = assert!(size_of::<Request>() == 24, "a request has grown");

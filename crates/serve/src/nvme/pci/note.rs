//! Notes to the worker of a function.

use leyden_nvme::Status;
use leyden_nvme::pci::Taken;

use crate::budget::Permit;

/// See the module.
pub(crate) enum Note {
    /// There may be commands in a queue, or room for completions.
    Rung,
    /// A command has ended.
    Ended(Ended),
    /// A request for events, by its identifier, is answered with this.
    Event(u16, u64),
    /// The client has gone, or is to go.
    Stop,
}

/// A command that has ended.
pub(crate) struct Ended {
    pub(crate) taken: Taken,
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Vec<u8>,
    /// The room of its data.
    pub(crate) permit: Option<Permit>,
}

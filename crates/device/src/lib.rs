//! The SSD: commands, front end, and the composition of the layers below.
mod command;
mod payload;
pub use command::{BlockDevice, Command, CommandId, Completion, Lba, Op, SECTOR_BYTES, Status};
pub use payload::{NoData, Payload, Stamp};

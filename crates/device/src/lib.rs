//! The SSD: commands, front end, and the composition of the layers below.
mod command;
mod config;
mod payload;
mod stats;
pub use command::{BlockDevice, Command, CommandId, Completion, Lba, Op, SECTOR_BYTES, Status};
pub use config::{Config, ConfigError, FrontendConfig};
pub use payload::{NoData, Payload, Stamp};
pub use stats::{Programs, Reads, Stats};

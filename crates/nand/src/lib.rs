//! NAND flash: channels, dies, blocks, pages, OOB, timing, wear and faults.
mod config;
mod geometry;
pub use config::{Config, ConfigError, FaultConfig};
pub use geometry::{BlockId, ChannelId, DieId, Geometry, Lpn, Ppa, Ppn};

//! The DRAM write buffer and the schedules that empty it.
mod config;
pub mod schedule;
pub use config::{Config, Region};

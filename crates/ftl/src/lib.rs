//! The flash translation layer: mapping, placement, garbage collection.
mod config;
pub mod gc;
pub mod map;
pub mod place;
pub use config::{Config, GcConfig, MapConfig};

//! Runs, comparisons and their records.

pub mod driver;
mod record;
pub use record::*;

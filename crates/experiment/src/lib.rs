//! Runs, comparisons and their records.

mod record;
pub use record::*;

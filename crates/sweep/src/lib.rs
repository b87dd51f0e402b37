//! Sweeps: a plan of many runs, its shards, and their results as Parquet.
//!
//! **What lives here**: what a plan's points are ([`Plan`]), how a shard of them is run ([`run_shard`]), the table
//! that results ([`table`]), and joining the shards' files ([`merge()`]). **What doesn't**: a single run (`leyden-run`), what a
//! figure is (`leyden-report`), and who runs the shards: any batch system, or Python.
//!
//! **Invariants**
//! - Points have a fixed order, and each the same id wherever it is run: a hash of its configuration, its inputs and the
//!   version.
//! - The merged table is the same bytes however many shards, threads and machines there were, and whatever was interrupted:
//!   nothing of the machine is in it.
//! - A shard's file appears whole or not at all. What a shard had done when it ended early is not done again.

mod error;
mod identity;
mod merge;
mod part;
mod plan;
mod points;
mod require;
mod row;
mod sample;
mod settings;
mod shard;
mod swept;
pub mod table;

pub use error::SweepError;
pub use merge::{Merged, Status, merge, read_table, status};
pub use part::Shard;
pub use plan::Plan;
pub use points::{Point, Templates};
pub use row::Row;
pub use shard::{Done, Options, run_shard};
pub use swept::{Swept, read_swept};

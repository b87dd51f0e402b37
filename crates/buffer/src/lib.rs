//! The DRAM write buffer and the schedules that empty it.
//!
//! **What lives here**: acknowledged writes that are not on flash yet: where they are
//! ([`WriteBuffer`]), in which order they leave ([`schedule`]), and what a FLUSH waits for.
//! **What doesn't**: commands and their completions (the device), pages and blocks (the FTL).
//!
//! **Invariants**
//! - A logical page has at most one slot that is not in flight, and the index points to its newest.
//! - A slot keeps its data until its program has ended; only then is its memory free.
//! - Of several versions in flight, the newest wins whatever the order their programs end in.

mod barrier;
mod buffer;
mod config;
mod index;
mod outcome;
mod pools;
mod region;
pub mod schedule;
mod slot;
pub mod zoned;

pub use buffer::{BufferState, BufferStats, FlushTicket, WriteBuffer};
pub use config::Config;
pub use outcome::{Discarded, Failed, Written};
pub use region::{PoolKind, PoolSize, PoolSizes, Region};
pub use slot::SlotId;

//! The SSD: commands, front end, and the composition of the layers below.
//!
//! **What lives here**: what a host can ask of a drive and when it gets an answer ([`Ssd`],
//! [`BlockDevice`]), and how data gets from the buffer to the dies. **What doesn't**: what is
//! buffered ([`leyden_buffer`]), where data lies on flash ([`leyden_ftl`]), how long flash
//! takes ([`leyden_nand`]); clocks, threads, files, sockets (the edges).
//!
//! **Invariants**
//! - The device is a state machine: the same commands at the same times yield the same completions.
//! - Completions come in `(time, sequence)` order; each command ends exactly once.
//! - At the same instant, what the flash has done comes before what the host asks.

mod command;
mod config;
mod dies;
mod execute;
mod frontend;
pub mod fuzz;
mod hint;
mod hints;
mod inspect;
mod payload;
mod power;
mod requests;
mod sampled;
mod snapshot;
mod ssd;
mod stats;
mod units;
mod writer;

pub use command::{
    Action, BlockDevice, Command, CommandId, Completion, Lba, MOST_RANGES, Op, Output,
    SECTOR_BYTES, Status,
};
pub use config::{Config, FrontendConfig};
pub use hint::{HINT_UNIT_BYTES, Hint};
pub use hints::HintStats;
pub use leyden_ftl::page_mapped::{DieShare, NoRoom};
pub use payload::{NoData, Payload, SectorStamps, Stamp};
pub use power::{CutCost, CutLoss, PowerLoss, Provision, Recovery, provision_of};
pub use snapshot::SnapshotError;
pub use ssd::Ssd;
pub use stats::{Programs, Reads, Stats};
pub use units::{Part, Units};

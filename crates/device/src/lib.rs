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
//! - At the same instant, completions of the flash are handled before new commands.

mod activity;
mod atomic;
mod block_device;
mod command;
mod completion;
mod config;
mod controller;
mod conventional;
mod faults;
pub mod fuzz;
mod hint;
mod lba;
mod op;
mod payload;
mod pool_fill;
mod size;
mod snapshot;
mod snapshot_error;
mod stats;
mod status;
mod units;
mod zone_report;
mod zoned;

pub use activity::{Activity, ActivityKind, Phase};
pub use atomic::{AtomicConfig, AtomicLimit, Atomicity};
pub use block_device::BlockDevice;
pub use command::{Action, Command, CopyRange, DataKind, MOST_COPY_RANGES, MOST_RANGES};
pub use completion::{CommandId, Completion, Output};
pub use config::{Config, FrontendConfig};
pub use controller::power::{CutCost, CutLoss, PowerLoss, PowerSupply, Recovery};
pub use controller::{CommandTable, Controller, DriveOps, Namespace, Request, RequestId, ToDump};
pub use conventional::{
    Conventional, DumpPageHolds, DumpPageView, HintStats, Item, Provision, Ssd, SsdStats,
    provision_of,
};
pub use faults::{FaultKind, FaultReport, FaultRule, FaultRules, FaultTarget};
pub use hint::{HINT_UNIT_BYTES, Hint};
pub use lba::{Lba, SECTOR_BYTES};
pub use leyden_buffer::Region;
pub use leyden_ftl::page_mapped::{DieShare, NoRoom, Programs, Reads};
pub use leyden_ftl::zoned::{ZoneAction, ZoneId, ZoneShape, ZoneState};
pub use leyden_nand::{Content, Geometry, Lpn};
pub use op::Op;
pub use payload::{NoData, Payload, SectorStamps, Stamp};
pub use pool_fill::PoolFill;
pub use size::{capacity_bytes, fit};
pub use snapshot_error::SnapshotError;
pub use stats::Stats;
pub use status::Status;
pub use units::{Part, Units};
pub use zone_report::{ZoneDescriptor, ZoneFilter, ZoneReport};
pub use zoned::{ZnsSsd, Zoned, ZonedProvision, ZonedStats, provision_of_zones};

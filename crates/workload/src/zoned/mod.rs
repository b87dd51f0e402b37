//! Hosts of zoned drives.
//!
//! **What lives here**: streams of writes and appends that reset their zones when they come round
//! ([`ZoneJobConfig`]), an LSM key-value store on a small zoned file system ([`LsmConfig`]), and the same of a store that
//! was recorded ([`RecordedConfig`]). **What doesn't**: time and queues (the driver's); what a drive does with it.
//!
//! A host is a state machine: [`Host::next`] says what it asks for next, [`Host::completed`] that something
//! has ended. Everything random in it comes from a seed.
//!
//! **Invariants**: a host writes each zone in order, from its beginning, and resets it only when nothing of it
//! is under way.

mod fs;
mod lsm;
mod lsm_config;
mod lsm_figures;
mod lsm_threads;
mod pace;
mod recorded;
mod streams;
mod streams_config;

use leyden_device::{Op, ZoneAction, ZoneDescriptor};
use leyden_sim::Time;

use crate::{Class, Request};

pub use lsm::{LOG, Lsm};
pub use lsm_config::{Benchmark, LsmConfig, SyncOrder, rocksdb};
pub use lsm_figures::LsmFigures;
pub use recorded::{
    Event, FileOp, FileTrace, FileTraceError, LogZoneEnd, Recorded, RecordedConfig, Role,
};
pub use streams::Streams;
pub use streams_config::{ZoneJobConfig, ZonePattern};

/// The zones of a drive, in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneLayout {
    /// Zones.
    pub zones: u32,
    /// From the beginning of a zone to the next.
    pub size: u64,
    /// The writable sectors of a zone.
    pub capacity: u64,
    /// A logical block.
    pub block: u64,
    /// A Zone Random Write Area; 0 for none.
    pub area: u64,
    /// Commits of a part of the area are multiples of this.
    pub area_step: u64,
}

/// A host's next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// This, now. `owner` is handed back when it has ended.
    Submit {
        /// The request.
        request: Request,
        /// Whose it is.
        owner: u32,
    },
    /// Ask again then, or when something has ended.
    At(Time),
    /// Ask again when something has ended.
    Wait,
    /// Nothing more will come.
    End,
}

/// A zone after a power cut.
#[derive(Clone, Debug)]
pub struct ZoneLeft {
    /// As a report describes it.
    pub descriptor: ZoneDescriptor,
    /// Sectors from its beginning that hold what was written to them. That is where a write pointer stands; of a
    /// full zone a host finds it out by reading.
    pub held: u64,
}

/// A host of a zoned drive.
pub trait Host {
    /// The next request at `now`.
    fn next(&mut self, now: Time) -> Ask;
    /// A request of `owner`'s has ended at `now`.
    fn completed(&mut self, owner: u32, now: Time);
    /// The power failed before a request of `owner`'s had ended. It may have happened or not, in part. The power is
    /// back `now`.
    fn cut_off(&mut self, owner: u32, now: Time) {
        self.completed(owner, now);
    }
    /// The power failed and is back `now`: nothing is under way any more, and the drive's zones are these.
    fn recovered(&mut self, now: Time, zones: &[ZoneLeft]);
    /// The share done, 0..=1.
    fn fraction(&self) -> f64;
    /// Names of those that are measured apart; empty for none.
    fn tenants(&self) -> Vec<String>;
    /// Which of them asks for a request of `owner`'s.
    fn tenant(&self, owner: u32) -> u8;
}

/// True if a zone is to be opened with a Zone Random Write Area: a log's, whose last block is written again with
/// each record.
pub const fn wants_area(request: &Request) -> bool {
    matches!((request.op, request.class), (Op::Zone(ZoneAction::Open), Class::Wal))
}

/// True if a request's data asks for the PLP flag: logs and what is needed to find files.
pub const fn is_protected(request: &Request) -> bool {
    matches!(request.op, Op::Write | Op::ZoneAppend)
        && matches!(request.class, Class::Wal | Class::Journal | Class::FsMeta)
}

//! Power cuts of other people's software: one recorded run of it, then many states that a drive may be left
//! in, each mounted, recovered and checked.
//!
//! **What lives here**: what a run was ([`Timeline`]), what a drive may be left with ([`cuts`]), which states
//! are tried, the processes that try them, verdicts, and making findings small. **What doesn't**: what a drive
//! promises (`leyden-oracle`, which every state here is derived from), recordings (`leyden-image`), serving a
//! drive (`leyden-serve`), and tables and exit codes (the command line).
//!
//! Three models make states from one recording: `adversarial` (any state that a volatile cache's contract
//! allows), `realistic` (the recorded drive, run again to the bit and cut) and `lying` (flushes answered and
//! not done). A [`State`] is the same for all: a moment, and the atoms that hold older versions than the newest.
//!
//! **Invariants**
//! - The same recording and seed: the same states, in the same order.
//! - A state of the model `adversarial` breaks no promise of the oracle's.
//! - Whatever is mounted or started for a state is gone before the next, and with the process that did it.

mod again;
mod answers;
mod attach;
mod audit;
mod check;
mod choose;
mod clock;
mod contract;
mod cut;
mod drive;
mod drive_history;
mod error;
mod explore;
mod extracts;
mod files;
mod files_view;
mod history;
mod inspect;
mod kits;
mod known;
mod lab;
mod launcher;
mod library;
mod locate;
mod log_writes;
mod loop_cleanup;
mod mounts;
mod network;
mod output;
mod own_program;
mod pinned;
mod pool;
mod processes;
mod questions;
mod raw;
mod realistic;
mod record;
mod recorded;
mod rights;
mod runner;
mod scripts;
mod search;
mod session;
mod shrink;
mod state;
mod store;
mod summary;
mod test_bed;
mod timeline;
mod trials;
mod trust;
mod verdict;
mod view;
mod why;
mod worker;

/// Entry points of the fuzz target and of the short fuzz test.
pub mod fuzz {
    pub use leyden_wire::fuzz::{log, log_seed};

    pub use crate::files::fuzz::{files, files_seed};
}

/// Recordings of files, performed on real file systems and compared with the rules.
pub mod truth {
    pub use crate::files::{Half, SeenFiles, not_allowed, perform};
}

pub use again::again;
pub use audit::{Audit, AuditedFlush, audit};
pub use contract::cuts;
pub use cut::{Cut, Flushes, Unsettled, Whole};
pub use drive::fit;
pub use error::CrashError;
pub use explore::{Explore, explore, explore_history};
pub use files::{
    Call, DRIVES_MOST, File, FileHistory, FilesTest, Fs, Metadata, OpenOptions, Persistence,
    make_small,
};
pub use files_view::FileDifference;
pub use history::{History, Keys, Sync};
pub use kits::{KITS, Kit, KitScripts};
pub use launcher::{Launcher, namespaces};
pub use library::{CrashTest, Disk, Workload};
pub use locate::Place;
pub use log_writes::{Imported, Moved, export, import};
pub use output::{SUMMARY, Seed};
pub use pool::Pool;
pub use raw::write_raw;
pub use realistic::Power;
pub use rights::may_mount;
pub use runner::Runner;
pub use session::{NO_FS, Plan, RecordPlan, Session, check_atoms};
pub use shrink::shrink;
pub use state::{Image, State};
pub use store::{Content, Store};
pub use summary::{Finding, Model, ModelSummary, RunVerdict, Stop, Summary, Tally};
pub use test_bed::Access;
pub use timeline::{Event, Timeline, Version};
pub use trials::{Limits, TrialProgress};
pub use verdict::{Outcome, Verdict};
pub use why::{Between, Needed, Promised, Why, explain};
pub use worker::work;

//! NAND flash: channels, dies, blocks, pages, OOB, timing, wear and faults.
//!
//! **What lives here**: what a flash array and its buses do, and how long it takes. **What
//! doesn't**: any idea of which data is valid, or why a page is programmed; that is the FTL's.
//!
//! **Timing** (design, section 3): a die does one operation at a time, from its start to its end; a
//! channel carries one transfer at a time. A program is a transfer, then array time; a read is
//! array time, then a transfer; an erase is array time only. Host reads go first: they wait for the
//! operation in progress and the host reads queued before them, no more.
//!
//! **Invariants**: pages of a block are programmed in order, once between two erases; a die has at
//! most one operation in progress and one more accepted, besides host reads.

mod activity;
mod cells;
mod channel;
mod config;
mod die;
mod flash;
mod geometry;
mod medium;
mod operation;
mod page;
mod timeline;

pub use activity::{Activity, Phase};
pub use cells::Content;
pub use config::{Config, FaultConfig, FaultTarget, Occasion};
pub use flash::{Flash, Interrupted, Outcome};
pub use geometry::{BlockId, ChannelId, DieId, Geometry, Lpn, Ppa, Ppn};
pub use medium::{Keeps, Medium, MediumState};
pub use operation::{Kind, Operation};
pub use page::{BlockUse, Health, MetaPage, PageKind};

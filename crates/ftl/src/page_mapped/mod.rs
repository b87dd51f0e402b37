//! The page-mapped FTL: every mapping unit can lie anywhere.
//!
//! **What lives here**: the mechanism. Which unit is valid and where ([`validity`]), which blocks
//! are free, open, closed or bad ([`blocks`]), what programs and copies change ([`Ftl`]), and the
//! collection of garbage, die by die ([`collect`]). **What doesn't**: which victim
//! ([`crate::gc`]), which stream ([`crate::place`]), when (the device asks), how long
//! ([`leyden_nand`]).
//!
//! **Invariants** (asserted by [`Ftl::check`])
//! - A unit is valid exactly if the map points to it; a block's count is that of its valid units.
//! - The map changes when a program has ended, never before (so a cut leaves the old version).
//! - A block is erased only when nothing in it is valid.
//! - The host never takes the last free block of a die: it is what a collection moves data to.

mod blocks;
mod check;
mod collect;
mod commit;
mod durability;
mod ftl;
mod inflight;
mod journal;
mod lead;
mod mapping;
mod moves;
mod snapshot;
mod stats;
mod validity;
mod zombies;

pub use blocks::{BlockState, Blocks, KeptBlocks};
pub use check::Violation;
pub(crate) use collect::Collection;
pub use collect::GcStep;
pub use durability::Durability;
pub use ftl::{Ended, Ftl, ProgramCause, UserUnit, WARM_UNITS};
pub(crate) use journal::JournalDie;
pub(crate) use mapping::{MapDie, map_blocks_per_die};
pub use snapshot::FtlState;
pub use stats::FtlStats;
pub use zombies::{Announced, Zombies};

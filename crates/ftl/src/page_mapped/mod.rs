//! The page-mapped FTL: every mapping unit can lie anywhere.
//!
//! **What lives here**: the mechanism, in rooms with state of their own. Where data lies and what each
//! block is worth ([`data`]), who moves data to reclaim blocks ([`collect`]), what of the mapping table
//! goes to flash ([`table`]), which programs are on their way ([`programs`]); and what puts them together
//! ([`Ftl`]): the ends of operations ([`ended`]), power cuts ([`cut`]) and the way back ([`recover`]), and the
//! state of a drive in use, drawn instead of reached ([`sampled`]).
//! **What doesn't**: which victim ([`crate::gc`]), which stream ([`crate::place`]), when (the device asks),
//! how long and what lies there ([`leyden_nand`]).
//!
//! **Invariants** (asserted by [`Ftl::check`])
//! - The map changes when a program has ended, never before (so a cut leaves the old version).
//! - A block is erased only when nothing in it is valid.
//! - The host never takes the last free block of a die: it is what a collection moves data to.
//! - After a power cut nothing is known but what the medium holds ([`Ftl::lose_power`]).

mod collect;
mod cut;
pub(crate) mod data;
mod durability;
mod ended;
mod ftl;
mod programs;
mod recover;
mod sampled;
mod state;
mod stats;
mod table;
mod violation;

pub use collect::GcStep;
pub use data::{Announced, BlockState, Blocks, Data, KeptBlocks, Zombies};
pub use durability::Durability;
pub use ended::Ended;
pub use ftl::{Ftl, UserUnit};
pub use programs::ProgramCause;
pub use sampled::{DieShare, NoRoom};
pub use state::FtlState;
pub use stats::{FtlStats, GcStats, Programs, Reads};
pub use violation::Violation;

use leyden_nand::Geometry;

/// How far ahead map entries are brought near ([`crate::map::MapTable::expect`]), in units: few enough for
/// the entries of all dies to stay in a near cache.
pub(crate) const UNITS_AHEAD: u32 = 16;

/// The blocks that a die keeps back for its share of `pages` mapping pages: a quarter more than they
/// fill, one to move pages to, one more in case a power cut leaves that in tatters, and one to fill
/// meanwhile.
pub(crate) fn map_blocks_per_die(geometry: &Geometry, pages: u32) -> u32 {
    let share = pages.div_ceil(geometry.dies());
    (share + share / 4).div_ceil(geometry.pages_per_block()) + 3
}

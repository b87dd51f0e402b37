//! The flash translation layer: mapping, placement, garbage collection.
//!
//! **What lives here**: where each logical page lies on flash ([`map`]), which data shares blocks
//! ([`place`]), how blocks are reclaimed ([`gc`]), and the mechanism that does it
//! ([`page_mapped`]). **What doesn't**: buffering and commands (above), and what flash does
//! and how long it takes ([`leyden_nand`], below).
//!
//! **Invariants**: policies decide on a read-only view, only the mechanism mutates; see
//! [`page_mapped`] for the mechanism's own.

mod config;
pub mod dump_area;
pub mod gc;
pub mod logs;
pub mod map;
pub mod page_mapped;
pub mod place;
pub mod recovery;
pub mod zoned;

pub use config::{Config, Copies, GcConfig, MapConfig, Pace};

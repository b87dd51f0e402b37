//! The write buffer of a zoned drive: two pools, and for each zone a list of what is not on flash yet, in
//! the order it was written (Selective-PLP, section 4.3).
//!
//! **What lives here**: units between their acknowledgement and flash ([`ZoneBuffer`]), the pools that
//! give them room ([`Pool`]), Zone Random Write Areas, and which zone goes to flash next ([`schedule`]).
//! **What doesn't**: write pointers and states (the FTL's zone table), commands (the device's).
//!
//! The paper's *buffer hit table* maps sectors to buffers; here a zone's list is contiguous, so a unit's
//! place in it is a subtraction. The reference bit stands per zone.
//!
//! **Invariants**
//! - What a zone has in the buffer is contiguous, from the end of what flash holds of it on. A unit
//!   leaves only when flash holds it and everything below it: a zone is kept prefix by prefix.
//! - The protected units of a zone come before its unprotected ones: what is above unprotected data
//!   could not be kept without it.

mod buffer;
mod config;
mod pool;
mod queue;
mod saved;
pub mod schedule;
#[cfg(test)]
mod tests;

pub use buffer::{BufferShape, NextPage, ZoneBuffer, ZoneBufferStats};
pub use config::{BelowProtected, DuringFlush, ZonePoolConfig, ZonePoolSizes};
pub use pool::Pool;
pub use saved::ZoneBufferState;

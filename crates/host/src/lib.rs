//! Layers between software and drive.
//!
//! **What lives here**: layers that take commands like a drive and pass them on to what is below:
//! [`PageCache`], and [`HintChannel`], the way of announcements to the drive. They offer and use
//! [`leyden_device::BlockDevice`], so they stack ([`stack`]), and their power can be cut with the
//! drive's ([`Powered`]). **What doesn't**: what software asks for (the workload), the drive, clocks,
//! threads, files.
//!
//! **Invariants**
//! - A layer is a state machine like the drive: the same commands at the same times yield the same
//!   completions, in `(time, sequence)` order, each command ending exactly once.
//! - A layer's memory is bounded by its configuration, but for a bit or so for each unit of the drive.
//! - What a layer holds is lost with the power.

pub mod hints;
#[cfg(test)]
mod mock;
pub mod page_cache;
mod powered;
mod set;
#[cfg(debug_assertions)]
mod shared;
pub mod stack;
pub mod zoned_block;

pub use hints::{Channel, HintChannel, HintChannelConfig, HintChannelStats};
pub use page_cache::{PageCache, PageCacheConfig, PageCacheStats};
pub use powered::{Cut, Layers, Powered};
pub use zoned_block::{ZonedBlock, ZonedBlockConfig, ZonedBlockStats};

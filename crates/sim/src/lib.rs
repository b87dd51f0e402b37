//! Simulated time, event queue, PRNG, units, counters, digests, configuration errors and the policy
//! registry macro.
//!
//! **What lives here**: what a discrete-event simulator of anything needs. **What doesn't**: flash,
//! commands, files, clocks. This crate knows nothing of SSDs and depends on nothing of ours.
//!
//! **Invariants**
//! - Time is whole nanoseconds; nothing in here compares floats or iterates a hash map.
//! - Events at the same time leave the queue in the order they entered it.
//! - The generator's output for a seed is fixed by golden tests: changing it is a breaking change.

mod bit_set;
mod config;
mod counters;
mod digest;
mod divisor;
mod events;
mod links;
mod outside;
mod policy;
mod rng;
mod slot_index;
pub mod sparse;
mod time;
mod units;

pub use bit_set::BitSet;
pub use config::ConfigError;
pub use counters::{Counted, Level};
pub use digest::Digest;
pub use divisor::Divisor;
pub use events::EventQueue;
pub use links::{Links, List};
pub use outside::{Outside, OutsideEntry, OutsideRegistry};
pub use policy::PolicyInfo;
/// Brings an element of an array near, without waiting for it: only the simulator's speed depends on it.
pub use prefetch_index::prefetch_index as prefetch;
pub use rng::Rng;
pub use slot_index::{SlotEntry, SlotIndex};
pub use time::{Span, Time};
pub use units::{Bytes, BytesPerSec, Capacitance, Energy, Power, Ratio, UnitError, Voltage};

// Used by the expansion of `policies!`, so that a crate which declares policies needs no
// dependencies of its own for it.
#[doc(hidden)]
pub mod macro_support {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}

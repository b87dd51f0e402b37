//! The host's requests: synthetic jobs ([`synth`]), block traces ([`trace`]), and workloads for
//! zoned drives ([`zoned`]).
//!
//! **What lives here**: where requests come from. **What doesn't**: pacing them against a device
//! (queue depth, open or closed loop), which is `experiment`'s driver.
//!
//! **Invariants**: the same specification and seed yield the same requests, on every machine.

mod class;
mod request;
pub mod synth;
#[cfg(feature = "files")]
pub mod trace;
#[cfg(feature = "files")]
pub mod zoned;
pub use class::{BadName, Class, ClassNames, NameId};
pub use request::Request;

//! Recordings: what a drive was asked, with times and bytes, from a state at rest on.
//!
//! **What lives here**: the format, byte by byte ([`mod@format`]), what writes it ([`Recorder`]), and what runs
//! it again ([`Recording`], [`Replay`]). **What doesn't**: what the drive then does, which is the device's.
//!
//! A recording stands by itself: it begins with the drive's configuration, its state and all of its bytes.
//! The device is deterministic, so a replay is the recorded drive, bit by bit, and can be cut at any
//! nanosecond; digests that were noted on the way are compared.
//!
//! **Invariants**
//! - A recording that ends early, as its process was killed, can be replayed up to its last whole frame.
//! - Bytes that occur often are kept once.

mod error;
pub mod format;
mod frames;
mod fuzz;
mod reader;
mod recorder;
mod replay;

pub use error::RecordingError;
pub(crate) use fuzz::{pack_all, unpack_all};
pub use reader::Recording;
pub use recorder::Recorded;
pub(crate) use recorder::{Base, Recorder};
pub use replay::{Diverged, Ended, Replay, ReplayError};

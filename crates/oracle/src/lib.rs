//! The promises of a drive: the durability model, apart from any drive.
//!
//! **What lives here**: which versions of each mapping unit a read may return, before a power cut
//! and after it ([`Oracle`]). **What doesn't**: any drive. This crate shares no code with the
//! device; its driver tells the oracle what it submitted and which answers came back.
//!
//! # The model
//!
//! A *version* of a unit is what one command makes of it: a write's stamp, or zeroes. One version
//! is *older* than another if it had ended before the other was submitted. Versions whose commands
//! overlapped in time are not ordered until a read shows which one stayed.
//!
//! - A read returns a version that no other had replaced for certain when the read was submitted,
//!   or one submitted before the read completed.
//! - A version is *promised* once its command has been acknowledged and the promise is kept at
//!   once ([`Promise`], FUA, the PLP flag), or a FLUSH submitted after the acknowledgement has
//!   completed: of everything, or of the file in which the unit lies ([`Op::Sync`]).
//! - After a power cut, a unit is a version submitted before the cut, but none that is older than
//!   a promised one. Commands in flight at the cut may have happened or not.
//! - What recovery has left is settled: once a read has returned it, it is promised, however its
//!   command ended. It stays, over further cuts too, until it is replaced.
//! - A command that failed may have happened or not. It replaces nothing for certain and promises
//!   nothing.
//! - A read of a unit that nothing is changing shows which version stayed, and what else there was is
//!   older. If that version was known and promised before, it can only have been in doubt because other
//!   commands failed, and these can no longer happen: it is promised again, at once.
//! - Trims and write-zeroes are writes of zeroes.
//! - A write that is atomic ([`Atomic`]) is there whole or not at all: to a read that sees several of its units, and in
//!   what a power cut leaves, unless something that may have come after it has replaced the rest. Of two such writes
//!   that overlap one comes after the other.
//! - A cache that acknowledges writes may fail to write them out ([`Oracle::note_unwritten`]). They may
//!   be gone then, and the next FLUSH has to fail, and the next of their file: those after it promise nothing of
//!   them. A FLUSH that succeeds all the same promises everything, as always.
//!
//! **Invariants**
//! - Events are ordered as the calls are, which is how the caller of a drive sees them. Times are for
//!   messages only.
//! - What [`Oracle::compact`] forgets changes no answer.
//! - Cost: constant per unit of a command, one pass over the units per cut. Memory: constant per
//!   unit, and per command since the last [`Oracle::compact`] that found every unit known.

mod command;
mod history;
mod log;
mod oracle;
mod promise;
mod view;
mod violation;
pub mod zones;

pub use command::{Effect, Ended, Id, Op, Request};
pub use oracle::{Atomic, Losses, Oracle};
pub use promise::Promise;
pub use violation::{Event, Fate, Problem, Promised, Violation, Why};

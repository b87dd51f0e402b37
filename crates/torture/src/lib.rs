//! Cuts the power of random drives at random moments, and proves that nothing promised was lost.
//!
//! **What lives here**: drawing a drive, what stands on it, its work and its power cuts from one seed ([`Options`]),
//! running that against the oracle ([`run()`]), making a failure small ([`shrink`](shrink())), and
//! running many seeds on all cores ([`campaign`]); all of that for each kind of drive ([`Subject`]). **What doesn't**: what may be lost
//! ([`leyden_oracle`]), the drive ([`leyden_device`]).
//!
//! **Invariants**
//! - A run is a function of its options: the same options, the same [`Outcome`], on every machine
//!   and however many threads there are.
//! - Each command is a function of the seed, its round and its number there. Leaving one out, or
//!   turning a feature off, does not change the others.

pub mod campaign;
mod case;
mod commands;
mod conventional;
mod coverage;
mod event_log;
pub mod exhaustive;
mod failure;
mod faulty;
mod floors;
mod fold;
pub mod fuzz;
mod guide;
mod options;
mod panics;
mod physics;
mod run;
mod search;
mod seed_file;
mod shrink;
mod subject;
mod tally;
mod traced;
pub mod zoned;
pub mod zoned_block;

pub use case::{Case, ShrunkCase};
pub use coverage::{Coverage, Point};
pub use failure::{Failure, Kind};
pub use floors::{Shortfall, floor_of, shortfalls};
pub use guide::Guide;
pub use options::{Cut, Host, Mix, Options, Round, Verify, Work};
pub use run::{Inspected, Outcome, run, run_on, run_through};
pub use seed_file::{SeedFile, SeedFileError};
pub use shrink::{Shrunk, shrink};
pub use subject::{Run, Subject};
pub use tally::Tally;
pub use traced::{Grain, Misplaced, TracedPayload};

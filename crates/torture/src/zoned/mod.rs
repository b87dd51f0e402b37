//! Torture of zoned drives.
//!
//! **What lives here**: drawing a zoned drive and its work from a seed ([`ZonedOptions`]), and running that
//! against the model of zones ([`run()`]). **What doesn't**: what may be lost ([`leyden_oracle::zones`]).
//!
//! The host keeps to what a careful host does: one change of a zone at a time, and none while writes to it are
//! under way; writes in order, several at once in zones that it knows to be open; appends in any order. It
//! also sends commands that must be refused.

pub(crate) mod cause;
mod check;
mod command;
mod judge;
mod options;
mod others;
mod power;
mod reached;
mod run;
mod subject;
mod tiny;

pub use options::ZonedOptions;
pub(crate) use options::draw_device;
pub(crate) use run::tell;
pub use run::{run, run_twice};
pub(crate) use tiny::{drives, exhaust};

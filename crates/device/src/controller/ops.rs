//! Tables of the functions of drives that no command passes through: power cuts, making and keeping.
//!
//! Generic code is compiled by every crate that uses it. The tables of the payloads that this crate knows are its statics, so
//! what they list is compiled here, once. What happens for each command is not listed: it is compiled with its caller's loop.

use std::io::{Read, Write};

use leyden_nand::Medium;
use leyden_sim::{ConfigError, Energy, Time};

use super::Controller;
use super::power::{CutCost, CutLoss, PowerLoss, Recovery};
use crate::{Config, Payload, SnapshotError};

/// Functions of a drive of payload `P` and namespace `N` that no command passes through.
#[derive(Debug)]
#[expect(clippy::type_complexity, reason = "a table of functions: each type is a signature")]
pub struct DriveOps<P: Payload, N> {
    pub(super) build: fn(&Config, u64) -> Result<Controller<P, N>, ConfigError>,
    pub(super) on_medium: fn(&Config, Medium<P>) -> Result<Controller<P, N>, ConfigError>,
    pub(super) cut_power: fn(&mut Controller<P, N>, Time) -> PowerLoss,
    pub(super) restore_power: fn(&mut Controller<P, N>, Time) -> Recovery,
    pub(super) cut_cost: fn(&Controller<P, N>) -> Option<CutCost>,
    pub(super) cut_loss: fn(&Controller<P, N>, Energy) -> Option<CutLoss>,
    pub(super) check: fn(&N) -> Result<(), String>,
    pub(super) save: fn(&Controller<P, N>, &mut dyn Write) -> Result<(), SnapshotError>,
    pub(super) load: fn(Controller<P, N>, &mut dyn Read) -> Result<Controller<P, N>, SnapshotError>,
}

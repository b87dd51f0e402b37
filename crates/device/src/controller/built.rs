//! The making of drives, and of the tables of their functions.

use leyden_nand::Medium;
use leyden_sim::ConfigError;

use super::{Controller, DriveOps, Namespace};
use crate::snapshot::{self, Resting};
use crate::{Config, Payload};

/// A namespace that knows how a drive of it is put together.
pub(crate) trait Built<P: Payload>: Namespace<P> {
    /// An empty drive.
    fn build(config: &Config, seed: u64) -> Result<Controller<P, Self>, ConfigError>;
    /// A drive on a medium that holds data, its power on.
    fn on_medium(config: &Config, medium: Medium<P>) -> Result<Controller<P, Self>, ConfigError>;
}

/// The functions as they stand in the source.
pub(crate) const fn drive_ops<P: Payload, N: Built<P> + Resting<P>>() -> DriveOps<P, N> {
    DriveOps {
        build: N::build,
        on_medium: N::on_medium,
        cut_power: Controller::lose_power,
        restore_power: Controller::regain_power,
        cut_cost: Controller::cost_of_cut,
        cut_loss: Controller::loss_of_cut,
        check: N::check,
        save: snapshot::save,
        load: snapshot::load,
    }
}

/// The functions of a drive, compiled here if its payload says so. The condition is a constant: what the other branch names is
/// not compiled.
#[inline]
pub(crate) fn ops<P: Payload, N: Built<P> + Resting<P>>() -> &'static DriveOps<P, N> {
    if const { P::IS_COMPILED } {
        P::compiled().expect("a table for each kind of drive")
    } else {
        const { &drive_ops() }
    }
}

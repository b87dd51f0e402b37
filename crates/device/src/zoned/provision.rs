//! The flash and the bank that a zoned drive needs to keep its promises, without building it.

use leyden_power::Supply;
use leyden_sim::ConfigError;

use super::build::Parts;
use crate::Config;
use crate::ZoneShape;
use crate::controller::power::PowerSupply;

/// The flash and the bank that a zoned drive needs, beside the host's data, to keep its promises
/// when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedProvision {
    /// The bank, and the most that may be asked of it; `None` if the power is never cut.
    pub supply: Option<Supply>,
    /// Its zones.
    pub zones: ZoneShape,
    /// Blocks of each die.
    pub blocks_per_die: u32,
    /// Of these, kept back for dumps.
    pub kept_blocks_per_die: u32,
}

/// The provision of a zoned drive with `config`, without building it.
///
/// # Errors
/// If a value is impossible, or the bank too small: see [`leyden_power::provision()`].
pub fn provision_of_zones(config: &Config) -> Result<ZonedProvision, ConfigError> {
    let parts = Parts::of(config)?;
    let durability = PowerSupply::durability(parts.power.as_ref());
    Ok(ZonedProvision {
        supply: parts.power.as_ref().map(PowerSupply::supply),
        zones: parts.zones,
        blocks_per_die: parts.geometry.blocks_per_die(),
        kept_blocks_per_die: durability.dump_blocks_per_die,
    })
}

//! The capacitors and blocks that a conventional drive needs to keep its promises, without building it.

use leyden_power::Supply;
use leyden_sim::ConfigError;

use super::build::shape;
use super::dump::demand;
use crate::Config;
use crate::controller::power::PowerSupply;

/// The capacitors and blocks that a drive needs, beside the host's data, to survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provision {
    /// The bank, and the most that may be asked of it; `None` if the power is never cut.
    pub supply: Option<Supply>,
    /// Mapping units that the host can address.
    pub mapping_units: u32,
    /// Blocks of each die.
    pub blocks_per_die: u32,
    /// Of these, kept back for dumps, mapping pages and their journal.
    pub kept_blocks_per_die: u32,
}

/// The provision of a drive with `config`, without building it.
///
/// # Errors
/// If a value is impossible, or the bank too small: see [`leyden_power::provision()`].
pub fn provision_of(config: &Config) -> Result<Provision, ConfigError> {
    let (geometry, pools) = shape(config)?;
    let demand = demand(config, &geometry, &pools)?;
    let power = demand.map(|demand| PowerSupply::new(config, geometry, demand)).transpose()?;
    let dump_blocks = PowerSupply::durability(power.as_ref()).dump_blocks_per_die;
    let mapping_units =
        config.ftl.logical_units(&geometry, dump_blocks).map_err(|error| error.within("ftl"))?;
    let map_pages = mapping_units.div_ceil(config.ftl.map.entries_per_page(&geometry));
    Ok(Provision {
        supply: power.as_ref().map(PowerSupply::supply),
        mapping_units,
        blocks_per_die: geometry.blocks_per_die(),
        kept_blocks_per_die: dump_blocks + config.ftl.map.kept_blocks_per_die(&geometry, map_pages),
    })
}

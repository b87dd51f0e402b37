//! What a drive must be able to save, and whether its bank reaches.

use leyden_buffer::Region;
use leyden_ftl::dump_area::root_bytes;
use leyden_ftl::map::{MapStore, ProtectionConfig};
use leyden_ftl::page_mapped::Durability;
use leyden_nand::Geometry;
use leyden_power::{Costs, Demand, Supply, provision, worst_case};
use leyden_sim::{Bytes, ConfigError};

use crate::Config;

/// A dump in place may put this many times its even share of pages on one die; the rest spills.
const IN_PLACE_SKEW: u64 = 4;

/// The capacitors of a drive, and what its dumps cost.
#[derive(Clone, Debug)]
pub(crate) struct PowerSupply {
    pub(crate) config: leyden_power::Config,
    pub(crate) costs: Costs,
    pub(crate) supply: Supply,
    /// Pages that a block holds of a dump: fewer in SLC mode.
    pub(crate) pages_per_block: u32,
    /// Blocks of each die that a dump may have. Twice as many are kept back: a dump may be needed
    /// while the one before is being erased.
    pub(crate) blocks_per_dump: u32,
    /// Pages that say what a dump holds.
    pub(crate) root_pages: u32,
}

impl PowerSupply {
    /// The supply of the drive that `config` describes; `None` if its power is never cut.
    pub(crate) fn new(
        config: &Config,
        geometry: Geometry,
        slots: u32,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(power) = &config.power else { return Ok(None) };
        let within = |error: ConfigError| error.within("power");
        power.check().map_err(within)?;
        // Blocks kept back leave no more units than there are without them.
        let units = config.ftl.logical_units(&geometry, 0).map_err(|error| error.within("ftl"))?;
        let map_pages = units.div_ceil(config.ftl.map.entries_per_page(&geometry));
        let root_pages = root_bytes(map_pages).div_ceil(geometry.page_bytes());
        let mut demand = demand(config, &geometry, slots, map_pages, root_pages);
        let costs = Costs::new(power, &config.nand, geometry);
        let room = room_per_die(power, &costs, &mut demand);
        let pages_per_block = power.dump.pages_per_block(geometry.pages_per_block());
        let supply = provision(power, &costs, &demand).map_err(within)?;
        let blocks = room.div_ceil(u64::from(pages_per_block)) as u32;
        Ok(Some(Self {
            config: power.clone(),
            costs,
            supply,
            pages_per_block,
            blocks_per_dump: blocks,
            root_pages,
        }))
    }

    /// What the FTL must be ready for with this supply.
    pub(crate) fn durability(supply: Option<&Self>) -> Durability {
        supply.map_or(Durability::default(), |supply| Durability {
            power_cuts: true,
            may_lose_map: supply.config.allow_underprovisioned,
            dump_blocks_per_die: 2 * supply.blocks_per_dump,
        })
    }
}

/// What a drive takes, beside the host's data, to keep its promises when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provision {
    /// The bank, and the most that may be asked of it; `None` if the power is never cut.
    pub supply: Option<Supply>,
    /// Mapping units that the host can address.
    pub mapping_units: u32,
    /// Blocks of each die.
    pub blocks_per_die: u32,
    /// Of these, kept back for dumps and mapping pages.
    pub kept_blocks_per_die: u32,
}

/// What the drive that `config` describes takes, without building it.
///
/// # Errors
/// If a value is impossible, or the bank too small: see [`leyden_power::provision()`].
pub fn provision_of(config: &Config) -> Result<Provision, ConfigError> {
    let (geometry, (slots, _)) = crate::ssd::shape(config)?;
    let power = PowerSupply::new(config, geometry, slots)?;
    let dump_blocks = PowerSupply::durability(power.as_ref()).dump_blocks_per_die;
    let mapping_units =
        config.ftl.logical_units(&geometry, dump_blocks).map_err(|error| error.within("ftl"))?;
    let map_pages = mapping_units.div_ceil(config.ftl.map.entries_per_page(&geometry));
    Ok(Provision {
        supply: power.map(|power| power.supply),
        mapping_units,
        blocks_per_die: geometry.blocks_per_die(),
        kept_blocks_per_die: dump_blocks + config.ftl.map.blocks_per_die(&geometry, map_pages),
    })
}

/// What the drive may have to save, at most.
fn demand(
    config: &Config,
    geometry: &Geometry,
    slots: u32,
    map_pages: u32,
    root_pages: u32,
) -> Demand {
    let page_units = geometry.units_per_page();
    let protected = match &config.ftl.map.protection {
        ProtectionConfig::Full(_) => map_pages,
        // Beside the journal in DRAM, each die may be writing a page of it.
        ProtectionConfig::Journal(journal) => {
            journal.shape(geometry, map_pages).dram_pages.saturating_add(geometry.dies())
        }
        // Beside the pages that may be dirty, each die may be writing one.
        ProtectionConfig::Partial(partial) => {
            let limit = MapStore::limit_of(partial.protected, map_pages, page_units);
            (limit + geometry.dies()).min(map_pages)
        }
        ProtectionConfig::None(_) => (page_units.min(map_pages) + geometry.dies()).min(map_pages),
    };
    let buffer = match config.buffer.region {
        Region::Full => u64::from(slots) * u64::from(geometry.unit_bytes()),
        Region::None => 0,
    };
    Demand {
        buffer: Bytes::new(buffer),
        mapping_pages: u64::from(protected),
        journal_pages: u64::from(root_pages),
        most_on_one_die: None,
    }
}

/// Pages of a dump for which every die keeps room.
fn room_per_die(power: &leyden_power::Config, costs: &Costs, demand: &mut Demand) -> u64 {
    if !power.dump.is_in_place() {
        return worst_case(demand, costs, power).room_per_die;
    }
    let pages = demand.pages(power, costs);
    let share = pages.div_ceil(u64::from(costs.geometry.dies()));
    let room = (share * IN_PLACE_SKEW).min(pages);
    let pages_per_block = u64::from(power.dump.pages_per_block(costs.geometry.pages_per_block()));
    // Whole blocks are kept back: pages may use all of that.
    demand.most_on_one_die = Some(room.next_multiple_of(pages_per_block));
    room
}

//! The drive's demand at a power cut, and whether its bank reaches.

use leyden_ftl::page_mapped::Durability;
use leyden_nand::Geometry;
use leyden_power::{Budget, Costs, Demand, Failures, Supply, provision, worst_case};
use leyden_sim::{ConfigError, Ratio, Span, Time};

use crate::Config;

/// A dump in place may put this many times its even share of pages on one die; the rest spills.
const IN_PLACE_SKEW: u64 = 4;

/// The capacitors of a drive, and what its dumps cost.
#[derive(Clone, Debug)]
pub struct PowerSupply {
    pub(super) config: leyden_power::Config,
    pub(super) costs: Costs,
    pub(super) supply: Supply,
    pages_per_block: u32,
    blocks_per_dump: u32,
    root_pages: u32,
    /// Of all programs, those that fail.
    failure_share: Ratio,
}

impl PowerSupply {
    /// The supply of a drive that may have to save `demand`.
    ///
    /// # Errors
    /// If a value is impossible, or the bank too small.
    ///
    /// # Panics
    /// If `config` has no power table.
    pub(crate) fn new(
        config: &Config,
        geometry: Geometry,
        demand: Demand,
    ) -> Result<Self, ConfigError> {
        Self::with_room(config, geometry, demand, room_per_die)
    }

    /// The supply of a zoned drive. In place, its pages go where their zones go on, however many of those
    /// lie on one die; the dump area is for the root, and for zones that have no block.
    ///
    /// # Errors
    /// As [`PowerSupply::new`].
    ///
    /// # Panics
    /// As [`PowerSupply::new`].
    pub(crate) fn of_zones(
        config: &Config,
        geometry: Geometry,
        demand: Demand,
    ) -> Result<Self, ConfigError> {
        let power = config.power.as_ref();
        if power.is_some_and(|power| power.dump.is_in_place() && power.failed_programs > 0) {
            // Left out of the model: what follows a zone's own page that fails would have to go elsewhere.
            let problem = "programs of a zoned drive's dump in place do not fail: leave it 0, or use another device.power.dump";
            return Err(ConfigError::new("power.failed_programs", problem));
        }
        Self::with_room(config, geometry, demand, |power, costs, demand| {
            let even = worst_case(demand, costs, &power.balanced()).room_per_die;
            if power.dump.is_in_place() { even.max(demand.journal_pages) } else { even }
        })
    }

    fn with_room(
        config: &Config,
        geometry: Geometry,
        mut demand: Demand,
        room_per_die: impl Fn(&leyden_power::Config, &Costs, &mut Demand) -> u64,
    ) -> Result<Self, ConfigError> {
        let power = config.power.as_ref().expect("a demand comes of a power table");
        let within = |error: ConfigError| error.within("power");
        power.check().map_err(within)?;
        let costs = Costs::new(power, &config.nand, geometry);
        let root_pages = demand.journal_pages as u32;
        let room = room_per_die(power, &costs, &mut demand);
        let pages_per_block = power.dump.pages_per_block(geometry.pages_per_block());
        let supply = provision(power, &costs, &demand).map_err(within)?;
        let blocks = room.div_ceil(u64::from(pages_per_block)) as u32;
        Ok(Self {
            config: power.clone(),
            costs,
            supply,
            pages_per_block,
            blocks_per_dump: blocks,
            root_pages,
            failure_share: config.nand.faults.program_failures,
        })
    }

    /// Pages that say what a dump holds.
    pub const fn root_pages(&self) -> u32 {
        self.root_pages
    }
    /// Pages that a block holds of a dump: fewer in SLC mode.
    pub const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }
    /// Blocks of each die that a dump may have. Twice as many are kept back: a dump may be needed
    /// while the one before is being erased.
    pub const fn blocks_per_dump(&self) -> u32 {
        self.blocks_per_dump
    }
    /// True if each page goes to the die that its address names.
    pub const fn is_in_place(&self) -> bool {
        self.config.dump.is_in_place()
    }
    /// The bank, and the most that may be asked of it.
    pub(crate) const fn supply(&self) -> Supply {
        self.supply
    }
    /// How long the bank takes to charge.
    pub(super) fn charge_time(&self) -> Span {
        self.supply.bank.charge_time(self.config.charge_power)
    }
    /// The energy budget of the bank.
    pub(super) fn budget(&self) -> Budget {
        self.supply.budget(&self.config)
    }

    /// Which programs of a dump that begins at `now` fail.
    pub(super) fn failures(&self, now: Time) -> Failures {
        Failures::new(self.failure_share, self.config.failed_programs, now)
    }

    /// The durability that the FTL must provide with this supply.
    pub(crate) fn durability(supply: Option<&Self>) -> Durability {
        supply.map_or(Durability::default(), |supply| Durability {
            power_cuts: true,
            may_lose_map: supply.config.allow_underprovisioned,
            dump_blocks_per_die: 2 * supply.blocks_per_dump,
        })
    }
}

/// Pages of a dump for which every die keeps room.
fn room_per_die(power: &leyden_power::Config, costs: &Costs, demand: &mut Demand) -> u64 {
    if !power.dump.is_in_place() {
        return worst_case(demand, costs, power).room_per_die;
    }
    let pages = demand.pages(power, costs) + u64::from(power.failed_programs);
    let share = pages.div_ceil(u64::from(costs.geometry.dies()));
    let room = (share * IN_PLACE_SKEW).min(pages);
    let pages_per_block = u64::from(power.dump.pages_per_block(costs.geometry.pages_per_block()));
    // Whole blocks are kept back: pages may use all of that.
    demand.most_on_one_die = Some(room.next_multiple_of(pages_per_block));
    room
}

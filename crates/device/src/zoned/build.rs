//! How a zoned drive is put together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use leyden_buffer::zoned::{BufferShape, ZoneBuffer, ZonePoolSizes};
use leyden_ftl::zoned::{ZoneShape, ZonedFtl, zone_root_bytes};
use leyden_nand::{Geometry, Medium};
use leyden_power::Demand;
use leyden_sim::{Bytes, ConfigError, Ratio};

use super::dispatch::DispatchOrder;
use super::waiters::FlashWaiters;
use super::{ZnsSsd, Zoned, ZonedStats};
use crate::controller::power::PowerSupply;
use crate::controller::{Built, Controller};
use crate::{Config, Payload};

/// The sizes and settings with which a zoned drive's parts are made.
pub(super) struct Parts {
    pub(super) geometry: Geometry,
    pub(super) zones: ZoneShape,
    pub(super) pools: ZonePoolSizes,
    pub(super) power: Option<PowerSupply>,
}

impl Parts {
    pub(super) fn of(config: &Config) -> Result<Self, ConfigError> {
        config.frontend.check().map_err(|error| error.within("frontend"))?;
        let Some(zoned) = &config.zoned else {
            let problem = "a zoned drive has this table: add it";
            return Err(ConfigError::new("zoned", problem));
        };
        if config.atomic.is_some() {
            let problem =
                "a zoned drive promises no atomic writes beyond a logical block: leave it out";
            return Err(ConfigError::new("atomic", problem));
        }
        let geometry = config.geometry()?;
        // The root lists as many zones as there are without blocks kept back; there are fewer.
        let most = zoned.shape(&geometry, 0).map_err(|error| error.within("zoned"))?;
        let pools = pools(config, &geometry, &most)?;
        let demand = config
            .power
            .as_ref()
            .map(|power| demand(&geometry, &most, pools, power.dump.is_in_place()));
        let power =
            demand.map(|demand| PowerSupply::of_zones(config, geometry, demand)).transpose()?;
        let kept = PowerSupply::durability(power.as_ref()).dump_blocks_per_die;
        let zones = zoned.shape(&geometry, kept).map_err(|error| error.within("zoned"))?;
        Ok(Self { geometry, zones, pools, power })
    }

    fn drive<P: Payload>(
        self,
        config: &Config,
        medium: Medium<P>,
    ) -> Result<ZnsSsd<P>, ConfigError> {
        let durability = PowerSupply::durability(self.power.as_ref());
        let cycles = config.nand.endurance_cycles;
        let zoned = config.zoned.as_ref().expect("a zoned drive");
        let ftl = ZonedFtl::on_medium(zoned, cycles, medium, durability);
        let ftl = ftl.map_err(|error| error.within("zoned"))?;
        let buffer = ZoneBuffer::new(
            config.buffer.flush_threshold,
            config.buffer.drain_to.unwrap_or(Ratio::ZERO),
            self.pools,
            BufferShape {
                zones: self.zones.zones,
                capacity: self.zones.capacity,
                page_units: self.geometry.units_per_page(),
            },
        );
        let dispatch = DispatchOrder::new(self.geometry.dies(), self.zones.zones)
            .with_schedule(config.buffer.zones.schedule.clone());
        let namespace = Zoned {
            ftl,
            buffer,
            region: config.buffer.region,
            below_protected: config.buffer.zones.below_protected,
            during_flush: config.buffer.zones.during_flush,
            flushes: 0,
            dispatch,
            waiting: [VecDeque::new(), VecDeque::new()],
            waiters: FlashWaiters::new(self.zones.zones),
            copies: BTreeMap::new(),
            plain: BTreeSet::new(),
            is_halted: false,
            lost: Vec::new(),
            counters: ZonedStats::default(),
        };
        Ok(Controller::with(&config.frontend, self.power, namespace))
    }
}

fn pools(
    config: &Config,
    geometry: &Geometry,
    zones: &ZoneShape,
) -> Result<ZonePoolSizes, ConfigError> {
    let (unit, page) = (geometry.unit_bytes(), geometry.units_per_page());
    let (active, areas) = (zones.max_active, zones.zrwa_count);
    let pools = config.buffer.pools(unit, page, active, zones.zrwa_size, areas);
    pools.map_err(|error| error.within("buffer"))
}

/// The most that such a drive may have to save: all of the protected pool, and the root. In place,
/// the units of a zone share pages with no other zone's.
fn demand(
    geometry: &Geometry,
    zones: &ZoneShape,
    pools: ZonePoolSizes,
    is_in_place: bool,
) -> Demand {
    let partial = if is_in_place { pools.protected.min(zones.zones) } else { 0 };
    let padding = u64::from(partial) * u64::from(geometry.units_per_page() - 1);
    let units = u64::from(pools.protected) + padding;
    let root = zone_root_bytes(zones, geometry.blocks());
    Demand {
        buffer: Bytes::new(units * u64::from(geometry.unit_bytes())),
        mapping_pages: 0,
        journal_pages: root.div_ceil(u64::from(geometry.page_bytes())),
        most_on_one_die: None,
    }
}

impl<P: Payload> Built<P> for Zoned<P> {
    fn build(config: &Config, seed: u64) -> Result<ZnsSsd<P>, ConfigError> {
        Self::on_medium(config, ZnsSsd::blank_medium(config, seed)?)
    }

    fn on_medium(config: &Config, medium: Medium<P>) -> Result<ZnsSsd<P>, ConfigError> {
        Parts::of(config)?.drive(config, medium)
    }
}

impl<P: Payload> ZnsSsd<P> {
    /// A medium for the drive that `config` describes, with nothing on it.
    ///
    /// # Errors
    /// As [`Controller::new`].
    pub fn blank_medium(config: &Config, seed: u64) -> Result<Medium<P>, ConfigError> {
        let parts = Parts::of(config)?;
        let keeps = ZonedFtl::<P>::keeps(PowerSupply::durability(parts.power.as_ref()));
        Ok(Medium::new(&config.nand, parts.geometry, seed, keeps))
    }

    /// The medium, which alone is left of a drive that has lost its power.
    ///
    /// # Panics
    /// If the power is on.
    pub fn into_medium(self) -> Medium<P> {
        self.into_namespace().ftl.into_medium()
    }

    /// Erases of every block; `None` for bad ones.
    pub fn wear(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.namespace().ftl.wear()
    }
}

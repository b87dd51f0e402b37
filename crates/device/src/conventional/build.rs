//! How a drive is put together.

use std::collections::VecDeque;

use leyden_buffer::schedule::{ScheduleConfig, Shape};
use leyden_buffer::{PoolSizes, Region, WriteBuffer};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::page_mapped::Ftl;
use leyden_nand::{Geometry, Medium};
use leyden_sim::ConfigError;

use super::dump::demand;
use super::writer::Writer;
use super::{Conventional, Ssd, SsdStats};
use crate::atomic::{AtomicConfig, Atomicity};
use crate::controller::power::PowerSupply;
use crate::controller::{Built, Controller};
use crate::{Config, Payload};

/// The flash's shape, and the buffer's.
pub(crate) fn shape(config: &Config) -> Result<(Geometry, PoolSizes), ConfigError> {
    let geometry = config.geometry()?;
    let pools = config
        .buffer
        .slots(geometry.unit_bytes(), geometry.units_per_page(), config.ftl.streams().of_host())
        .map_err(|error| error.within("buffer"))?;
    Ok((geometry, pools))
}

/// Refuses what only zoned drives can be.
fn check_kind(config: &Config) -> Result<(), ConfigError> {
    if config.zoned.is_some() {
        let problem = "a drive with this table has zones: leave it out for a conventional one";
        return Err(ConfigError::new("zoned", problem));
    }
    Ok(())
}

/// The sizes and settings with which a drive's parts are made.
struct Parts {
    geometry: Geometry,
    pools: PoolSizes,
    power: Option<PowerSupply>,
    atomic: Option<Atomicity>,
}

impl Parts {
    fn of(config: &Config) -> Result<Self, ConfigError> {
        config.frontend.check().map_err(|error| error.within("frontend"))?;
        check_kind(config)?;
        let (geometry, pools) = shape(config)?;
        let buffer = &config.buffer;
        let resolve =
            |table: &AtomicConfig| table.resolve(&geometry, buffer.region, buffer.coalesce, &pools);
        let atomic = config.atomic.as_ref().map(resolve).transpose();
        let atomic = atomic.map_err(|error| error.within("atomic"))?;
        let demand = demand(config, &geometry, &pools)?;
        let power = demand.map(|demand| PowerSupply::new(config, geometry, demand)).transpose()?;
        Ok(Self { geometry, pools, power, atomic })
    }

    fn blank_medium<P: Payload>(&self, config: &Config, seed: u64) -> Medium<P> {
        let keeps = PowerSupply::durability(self.power.as_ref()).keeps();
        Medium::new(&config.nand, self.geometry, seed, keeps)
    }

    fn drive<P: Payload>(self, config: &Config, medium: Medium<P>) -> Result<Ssd<P>, ConfigError> {
        let durability = PowerSupply::durability(self.power.as_ref());
        let cycles = config.nand.endurance_cycles;
        let ftl = Ftl::on_medium(&config.ftl, cycles, medium, durability);
        let mut ftl = ftl.map_err(|error| error.within("ftl"))?;
        let shape = Shape {
            slots: self.pools.iter().map(|pool| pool.slots).sum(),
            mapping_pages: ftl.map().pages(),
            entries_per_mapping_page: ftl.map().entries_per_page(),
            batch_units: self.geometry.dies() * self.geometry.units_per_page(),
            is_table_protected: matches!(config.ftl.map.protection, ProtectionConfig::Full(_)),
        };
        let mut buffer = WriteBuffer::new(&config.buffer, shape, &self.pools);
        if self.atomic.is_some() && config.buffer.region != Region::Full {
            buffer.keep_groups();
        }
        if config.buffer.schedule != ScheduleConfig::default() {
            ftl.store_mut().watch();
        }
        let streams = config.ftl.streams().of_host();
        let namespace = Conventional {
            buffer_config: config.buffer.clone(),
            writer: Writer::new(buffer, &ftl, streams),
            ftl,
            region: config.buffer.region,
            atomic: self.atomic,
            waiting: [VecDeque::new(), VecDeque::new()],
            flushes: VecDeque::new(),
            trims: VecDeque::new(),
            dropped: Vec::new(),
            is_halted: false,
            counters: SsdStats::default(),
        };
        Ok(Controller::with(&config.frontend, self.power, namespace))
    }
}

impl<P: Payload> Built<P> for Conventional<P> {
    fn build(config: &Config, seed: u64) -> Result<Ssd<P>, ConfigError> {
        let parts = Parts::of(config)?;
        let medium = parts.blank_medium(config, seed);
        parts.drive(config, medium)
    }

    fn on_medium(config: &Config, medium: Medium<P>) -> Result<Ssd<P>, ConfigError> {
        Parts::of(config)?.drive(config, medium)
    }
}

impl<P: Payload> Ssd<P> {
    /// A medium for the drive that `config` describes, with nothing on it.
    ///
    /// # Errors
    /// As [`Controller::new`].
    pub fn blank_medium(config: &Config, seed: u64) -> Result<Medium<P>, ConfigError> {
        Ok(Parts::of(config)?.blank_medium(config, seed))
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

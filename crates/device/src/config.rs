//! The drive's configuration: the layers' own, and the front end.

use leyden_buffer::Region;
use leyden_ftl::map::ProtectionConfig;
use leyden_nand::Geometry;
use leyden_sim::{BytesPerSec, ConfigError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::AtomicConfig;

/// A drive. Every default is Hexa's drive (section V of the paper); see each table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The path from the host's queues to the drive.
    pub frontend: FrontendConfig,
    /// The DRAM write buffer.
    pub buffer: leyden_buffer::Config,
    /// The flash translation layer.
    pub ftl: leyden_ftl::Config,
    /// The flash.
    pub nand: leyden_nand::Config,
    /// With this table the drive has a zoned namespace, and no mapping table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zoned: Option<leyden_ftl::zoned::Config>,
    /// Atomic writes of a conventional drive: whole to reads, and whole after a power cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic: Option<AtomicConfig>,
    /// Power loss. Without this table the power is never cut, and nothing is
    /// kept back for a dump.
    pub power: Option<leyden_power::Config>,
}

impl Config {
    /// The flash's shape, with what it is counted in.
    ///
    /// # Errors
    /// If a value of the flash is impossible, or one of the FTL's that other layers are built on.
    pub fn geometry(&self) -> Result<Geometry, ConfigError> {
        self.ftl.check_basis().map_err(|error| error.within("ftl"))?;
        self.nand.geometry(self.ftl.mapping_unit).map_err(|error| error.within("nand"))
    }

    /// True if a FLUSH ends when the trims before it are on flash: no capacitor saves them then.
    pub fn flushes_trims(&self) -> bool {
        let is_unprotected = matches!(self.ftl.map.protection, ProtectionConfig::None(_));
        self.buffer.region != Region::Full && is_unprotected
    }
}

/// The host interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FrontendConfig {
    /// Time the controller spends on each command, one at a time.
    pub command: Span,
    /// Bandwidth of the link, each way.
    pub link_rate: BytesPerSec,
    /// Submission queues.
    pub queues: u32,
    /// Commands that each queue holds; more wait in the host.
    pub queue_depth: u32,
}

impl Default for FrontendConfig {
    fn default() -> Self {
        Self {
            // A controller that can do a million commands a second, on PCIe 3.0 x4.
            command: Span::from_us(1),
            link_rate: BytesPerSec::new(3_200_000_000),
            queues: 8,
            queue_depth: 1024,
        }
    }
}

impl FrontendConfig {
    /// Checks every value.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.command > Span::from_ms(1_000) {
            return Err(ConfigError::new("command", format!("{} is more than 1 s", self.command)));
        }
        if self.link_rate.get() < 1_000 {
            return Err(ConfigError::new(
                "link_rate",
                format!("{} is less than 1 kB/s", self.link_rate),
            ));
        }
        // NVM Express Base 2.0: up to 65,535 I/O queues of up to 65,536 entries.
        for (key, value) in [("queues", self.queues), ("queue_depth", self.queue_depth)] {
            if !(1..=65_536).contains(&value) {
                return Err(ConfigError::new(key, format!("{value} is not in 1..=65536")));
            }
        }
        Ok(())
    }
}

//! The FTL's configuration.

use leyden_sim::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gc::VictimConfig;
use crate::map::ProtectionConfig;
use crate::place::PlacementConfig;

/// The flash translation layer of a page-mapped drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Flash beyond what the host can address, over what it can: physical / logical - 1.
    pub over_provisioning: Ratio,
    /// What the host can address, if given: overrides `over_provisioning`.
    pub capacity: Option<Bytes>,
    /// The unit of mapping: each has a 4-byte entry in the table. Smaller writes are
    /// read-modify-write.
    pub mapping_unit: Bytes,
    /// Garbage collection.
    pub gc: GcConfig,
    /// Which data shares blocks.
    pub placement: PlacementConfig,
    /// The mapping table.
    pub map: MapConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            over_provisioning: Ratio::from_percent(7),
            capacity: None,
            mapping_unit: Bytes::new(4096),
            gc: GcConfig::default(),
            placement: PlacementConfig::default(),
            map: MapConfig::default(),
        }
    }
}

/// When garbage is collected, and from where. Each die collects its own blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// Which block is collected next.
    pub victim: VictimConfig,
    /// At this many free blocks on a die or fewer, it collects in the background: when it has
    /// nothing to do for the host.
    pub soft_free_blocks: u32,
    /// At this many free blocks on a die or fewer, collecting goes before the host's writes. At
    /// least 1: the block that a collection moves its victim's data to.
    pub hard_free_blocks: u32,
}

impl Default for GcConfig {
    fn default() -> Self {
        Self {
            victim: VictimConfig::default(),
            soft_free_blocks: 2,
            hard_free_blocks: 1,
        }
    }
}

/// The mapping table and its protection against power loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapConfig {
    /// How much of it capacitors protect, and what is done about the rest.
    pub protection: ProtectionConfig,
}

//! The write buffer's configuration.

use leyden_sim::{Bytes, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::ScheduleConfig;

/// The DRAM that holds acknowledged writes until they are on flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What capacitors protect.
    pub region: Region,
    /// Its size, data only.
    pub size: Bytes,
    /// Share of the buffer that dirty data may fill before it is written out. Hexa (section IV):
    /// half.
    pub flush_threshold: Ratio,
    /// Which pages go to flash next.
    pub schedule: ScheduleConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            region: Region::Full,
            size: Bytes::new(64 << 20),
            flush_threshold: Ratio::from_percent(50),
            schedule: ScheduleConfig::default(),
        }
    }
}

/// What capacitors protect of the buffer, and so what FLUSH and FUA cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// Nothing: FLUSH and FUA wait until the data is on flash.
    None,
    /// All of it: FLUSH and FUA cost nothing.
    #[default]
    Full,
}

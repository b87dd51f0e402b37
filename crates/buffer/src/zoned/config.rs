//! How the buffer of a zoned drive is cut into pools: the table `[device.buffer.zones]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::ZoneScheduleConfig;

/// The buffer of a zoned drive, beyond what every drive's has: its size, its region, and the share that
/// dirty data may fill of each pool before it is written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZonePoolConfig {
    /// Which zone is written to flash next.
    pub schedule: ZoneScheduleConfig,
    /// What a protected write does above unprotected data of its zone that flash does not hold.
    pub below_protected: BelowProtected,
    /// What becomes of writes that arrive while a FLUSH writes out their pool.
    pub during_flush: DuringFlush,
}

/// What becomes of a write that arrives while a FLUSH writes out its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DuringFlush {
    /// It enters the buffer if there is room.
    #[default]
    Admit,
    /// It waits until the FLUSH has ended (Selective-PLP, section 4.3: new requests are suspended until then, to
    /// keep writes in order). A FLUSH does not write out the protected pool, and suspends nothing there.
    Suspend,
}

/// What a protected write does above unprotected data of its zone: it is worth nothing without that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BelowProtected {
    /// That data gets protected too; or, if there is no room for it, is written to flash first.
    #[default]
    Promote,
    /// The write fails, with Command Sequence Error (0h / 0Ch).
    Refuse,
}

/// What the pools come to, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonePoolSizes {
    /// Of the protected pool; 0 if there is none.
    pub protected: u32,
    /// Of the unprotected pool; 0 if there is none.
    pub plain: u32,
    /// What of the protected pool is set aside for Zone Random Write Areas.
    pub zrwa: u32,
}

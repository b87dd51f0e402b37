//! How the buffer of a zoned drive is cut into pools: the table `[device.buffer.zones]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::ZoneScheduleConfig;

/// The buffer of a zoned drive, beyond the keys of every drive: its region, and the share that
/// dirty data may fill of each pool before it is written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZonePoolConfig {
    /// Which zone is written to flash next.
    pub schedule: ZoneScheduleConfig,
    /// A protected write above unprotected data of its zone that is not on flash.
    pub below_protected: BelowProtected,
    /// Writes that arrive while a FLUSH writes out their pool.
    pub during_flush: DuringFlush,
}

/// The treatment of a write that arrives while a FLUSH writes out its pool.
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

/// A protected write above unprotected data of its zone, without which it is worthless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BelowProtected {
    /// That data gets protected too; or, if there is no room for it, is written to flash first.
    #[default]
    Promote,
    /// The write fails, with Command Sequence Error (0h / 0Ch).
    Refuse,
}

/// The sizes of the pools, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonePoolSizes {
    /// Of the protected pool; 0 if there is none.
    pub protected: u32,
    /// Of the unprotected pool; 0 if there is none.
    pub plain: u32,
    /// The part of the protected pool that is set aside for Zone Random Write Areas.
    pub zrwa: u32,
}

//! How the buffer of a zoned drive is cut into pools: the table `[device.buffer.zones]`.

use leyden_sim::{Bytes, ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schedule::ZoneScheduleConfig;
use crate::{Config, Region};

/// The buffer of a zoned drive, beyond what every drive's has: its size, its region, and the share that
/// dirty data may fill of each pool before it is written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZonePoolConfig {
    /// Which zone is written to flash next.
    pub schedule: ZoneScheduleConfig,
    /// Once a pool is written out, it is until dirty data fills no more than this share of it.
    /// Selective-PLP (section 4.3) writes out all of it.
    pub drain_to: Ratio,
    /// What a protected write does above unprotected data of its zone that flash does not hold.
    pub below_protected: BelowProtected,
    /// What becomes of writes that arrive while a FLUSH writes out their pool.
    pub during_flush: DuringFlush,
}

impl Default for ZonePoolConfig {
    fn default() -> Self {
        Self {
            schedule: ZoneScheduleConfig::default(),
            drain_to: Ratio::ZERO,
            below_protected: BelowProtected::default(),
            during_flush: DuringFlush::default(),
        }
    }
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

impl Config {
    /// Cuts the buffer into pools. Each that there is must hold a page less a unit of each of
    /// `active_zones` and one unit more, so that when it is full there is a full page to program; and the
    /// protected one, besides, `zrwa_count` Zone Random Write Areas of `zrwa_size`, and what one of them
    /// commits at once.
    ///
    /// # Errors
    /// Names the key that is impossible.
    pub fn pools(
        &self,
        unit_bytes: u32,
        page_units: u32,
        active_zones: u32,
        (zrwa_size, zrwa_count): (u32, u32),
    ) -> Result<ZonePoolSizes, ConfigError> {
        let zrwa_units = u64::from(zrwa_size) * u64::from(zrwa_count);
        let slots = |size: Bytes| size.get() / u64::from(unit_bytes);
        let all = slots(self.size);
        let (protected, plain) = match self.region {
            Region::None => (0, all),
            Region::Full => (all, 0),
            Region::Selective => {
                let protected = slots(self.protected_size);
                if protected == 0 || protected >= all {
                    let problem = format!(
                        "{} is not between a mapping unit and buffer.size ({}): with all of it \
                         protected the region is \"full\"",
                        self.protected_size, self.size
                    );
                    return Err(ConfigError::new("protected_size", problem));
                }
                (protected, all - protected)
            }
        };
        if protected == 0 && zrwa_units > 0 {
            let problem = "\"none\" protects nothing, and Zone Random Write Areas need protection: \
                           leave zoned.zrwa out, or protect a region";
            return Err(ConfigError::new("region", problem));
        }
        let least = u64::from(active_zones) * (u64::from(page_units) - 1) + u64::from(page_units);
        let pools = [(protected, least + zrwa_units + u64::from(zrwa_size)), (plain, least)];
        for (slots, least) in pools.into_iter().filter(|&(slots, _)| slots > 0) {
            if slots < least || slots > 1 << 30 {
                let problem = format!(
                    "a pool of {} is not between {} (what {active_zones} active zones gather for a page \
                     each, and Zone Random Write Areas) and 2^30 mapping units: change the sizes of \
                     the buffer, or zoned.max_active",
                    Bytes::new(slots * u64::from(unit_bytes)),
                    Bytes::new(least * u64::from(unit_bytes)),
                );
                let key = if self.region == Region::Selective { "protected_size" } else { "size" };
                return Err(ConfigError::new(key, problem));
            }
        }
        if self.flush_threshold == Ratio::ZERO || self.flush_threshold > Ratio::ONE {
            let problem = format!("{} is not above 0 % and up to 100 %", self.flush_threshold);
            return Err(ConfigError::new("flush_threshold", problem));
        }
        let zrwa = zrwa_units as u32;
        Ok(ZonePoolSizes { protected: protected as u32, plain: plain as u32, zrwa })
    }
}

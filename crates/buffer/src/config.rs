//! The write buffer's configuration.

use leyden_sim::{Bytes, ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::region::{PoolSize, PoolSizes, Region};
use crate::schedule::ScheduleConfig;
use crate::zoned::{ZonePoolConfig, ZonePoolSizes};

/// The DRAM that holds acknowledged writes until they are on flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The part that capacitors protect.
    pub region: Region,
    /// Its size, data only.
    pub size: Bytes,
    /// The protected part of this, with the region `selective`.
    #[serde(skip_serializing_if = "is_not_given")]
    pub protected_size: Bytes,
    /// Share of the buffer that dirty data may fill before it is written out. Hexa (section IV):
    /// half.
    pub flush_threshold: Ratio,
    /// Once a pool is written out, it is until dirty data fills no more than this share of it. Unless given,
    /// `flush_threshold` on conventional drives, and nothing on zoned ones (Selective-PLP, section 4.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_to: Option<Ratio>,
    /// A write to data that still waits in the buffer replaces it. With `false` both versions are written to
    /// flash, in
    /// their order: a reading of papers whose buffer may be a queue of requests.
    #[serde(skip_serializing_if = "is_true")]
    pub coalesce: bool,
    /// Which pages go to flash next. Zoned drives have `zones.schedule` instead.
    pub schedule: ScheduleConfig,
    /// Further keys for a zoned drive's buffer.
    #[serde(skip_serializing_if = "is_default")]
    pub zones: ZonePoolConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            region: Region::Full,
            size: Bytes::new(64 << 20),
            protected_size: Bytes::new(0),
            flush_threshold: Ratio::from_percent(50),
            drain_to: None,
            coalesce: true,
            schedule: ScheduleConfig::default(),
            zones: ZonePoolConfig::default(),
        }
    }
}

fn is_default(zones: &ZonePoolConfig) -> bool {
    *zones == ZonePoolConfig::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_true(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_not_given(size: &Bytes) -> bool {
    size.get() == 0
}

impl Config {
    /// Checks every value, and computes the pools of a conventional drive's buffer, in mapping units.
    /// `page_units` are the mapping units of a flash page, `streams` how many pages are gathered at once.
    ///
    /// # Errors
    /// Names the key that is impossible.
    pub fn slots(
        &self,
        unit_bytes: u32,
        page_units: u32,
        streams: u8,
    ) -> Result<PoolSizes, ConfigError> {
        self.check_shares()?;
        // A page of each stream may wait for its last unit; twice that, so that one page can be on
        // its way while the next is gathered.
        let least = u64::from(page_units) * u64::from(streams) * 2;
        let pool = |size: Bytes, key: &str| {
            let slots = size.get() / u64::from(unit_bytes);
            if slots < least || slots > 1 << 30 {
                return Err(ConfigError::new(
                    key,
                    format!(
                        "{size} is not between {} (two pages for each of {streams} streams) and {}",
                        Bytes::new(least * u64::from(unit_bytes)),
                        Bytes::new(u64::from(unit_bytes) << 30),
                    ),
                ));
            }
            let threshold = self.flush_threshold.of(slots).clamp(least / 2, slots);
            let low = self.drain_to.map_or(threshold, |share| share.of(slots).min(threshold));
            Ok(PoolSize { slots: slots as u32, threshold: threshold as u32, low: low as u32 })
        };
        let none = PoolSize::default();
        match self.region {
            Region::Full => Ok([pool(self.size, "size")?, none]),
            Region::None => Ok([none, pool(self.size, "size")?]),
            Region::Selective => {
                let protected = pool(self.protected_size, "protected_size")?;
                let rest = self.size.get().saturating_sub(self.protected_size.get());
                let plain = pool(Bytes::new(rest), "size").map_err(|_| {
                    let problem = format!(
                        "beside protected_size ({}) it leaves {} for unprotected data, and that takes {}",
                        self.protected_size,
                        Bytes::new(rest),
                        Bytes::new(least * u64::from(unit_bytes)),
                    );
                    ConfigError::new("size", problem)
                })?;
                Ok([protected, plain])
            }
        }
    }

    /// Cuts a zoned drive's buffer into pools. Each that there is must hold a page less a unit of each of
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
        zrwa_size: u32,
        zrwa_count: u32,
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
                    "a pool of {} is not between {} (a page of data for each of {active_zones} \
                     active zones, and Zone Random Write Areas) and 2^30 mapping units: change the sizes of \
                     the buffer, or zoned.max_active",
                    Bytes::new(slots * u64::from(unit_bytes)),
                    Bytes::new(least * u64::from(unit_bytes)),
                );
                let key = if self.region == Region::Selective { "protected_size" } else { "size" };
                return Err(ConfigError::new(key, problem));
            }
        }
        self.check_shares()?;
        let zrwa = zrwa_units as u32;
        Ok(ZonePoolSizes { protected: protected as u32, plain: plain as u32, zrwa })
    }

    fn check_shares(&self) -> Result<(), ConfigError> {
        let threshold = self.flush_threshold;
        if threshold == Ratio::ZERO || threshold > Ratio::ONE {
            let problem = format!("{threshold} is not above 0 % and up to 100 %");
            return Err(ConfigError::new("flush_threshold", problem));
        }
        match self.drain_to {
            Some(share) if share > threshold => {
                let problem = format!("{share} is more than flush_threshold, {threshold}");
                Err(ConfigError::new("drain_to", problem))
            }
            _ => Ok(()),
        }
    }
}
